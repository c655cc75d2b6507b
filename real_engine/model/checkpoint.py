"""Reads a folder's safetensors into a model's weights, tensor by tensor: no second copy of the model is ever held."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError, safe_open

from .errors import BadWeights
from .json_file import read_json
from .weights import Place

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"

DTYPES = ("BF16", "F16", "F32")

NOT_WEIGHTS = re.compile(r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq")
"""Old checkpoints of Llama carry the rotary frequencies, which follow from the config.json."""


def has_weights(folder: Path) -> bool:
    """Whether the folder has safetensors that `read_weights` would read."""
    return (folder / INDEX).exists() or (folder / SINGLE).exists()


def read_weights(folder: Path, places: Iterable[Place]) -> None:
    """Fill the places, cast to their dtype. Everything is checked before anything is read.

    Raises BadWeights where a tensor is missing, of another shape, not a float of 16 or 32 bits, or unknown, and
    ModelError where the index is no JSON.
    """
    by_name = {place.name: place for place in places}
    files = _files(folder)
    _check_names(folder, files, by_name)
    for path in dict.fromkeys(files.values()):
        _check_shapes(path, _in_file(path, files, by_name))
    for path in dict.fromkeys(files.values()):
        _read(path, _in_file(path, files, by_name))


def _in_file(path: Path, files: Mapping[str, Path], places: Mapping[str, Place]) -> list[Place]:
    return [place for name, place in places.items() if files[name] == path]


def _files(folder: Path) -> dict[str, Path]:
    """Where each tensor of the checkpoint is."""
    if (folder / INDEX).exists():
        return _indexed_files(folder)
    if not (folder / SINGLE).exists():
        raise BadWeights(f"{folder}: there is neither {SINGLE} nor {INDEX}")
    with _opened(folder / SINGLE) as file:
        return dict.fromkeys(file.keys(), folder / SINGLE)


def _indexed_files(folder: Path) -> dict[str, Path]:
    shards = read_json(folder / INDEX).get("weight_map")
    if not isinstance(shards, dict) or not all(isinstance(s, str) and Path(s).name == s for s in shards.values()):
        raise BadWeights(f"{folder / INDEX}: weight_map must name, for each tensor, a file of the folder")
    return {name: folder / shard for name, shard in shards.items()}


def _check_names(folder: Path, files: Mapping[str, Path], places: Mapping[str, Place]) -> None:
    missing = [place for name, place in places.items() if name not in files]
    if missing:
        expected = list(missing[0].view.shape)
        raise BadWeights(
            f"{folder}: tensor {missing[0].name} is missing, expected of shape {expected}{_others(missing)}"
        )
    tied = "lm_head.weight" not in places
    unknown = [name for name in files if name not in places and not (tied and name == "lm_head.weight")]
    unknown = [name for name in unknown if not NOT_WEIGHTS.fullmatch(name)]
    if unknown:
        raise BadWeights(f"{folder}: tensor {unknown[0]} is not of this model{_others(unknown)}")


def _others(found: list[Place] | list[str]) -> str:
    return f" (and {len(found) - 1} more like it)" if len(found) > 1 else ""


def _check_shapes(path: Path, places: Iterable[Place]) -> None:
    with _opened(path) as file:
        held = set(file.keys())
        for name, view in places:
            if name not in held:
                raise BadWeights(f"{path}: tensor {name} is missing, though {INDEX} says that it is there")
            found = file.get_slice(name)
            shape, dtype = found.get_shape(), found.get_dtype()
            if shape != list(view.shape):
                raise BadWeights(f"{path}: tensor {name} is of shape {shape}, expected {list(view.shape)}")
            if dtype not in DTYPES:
                raise BadWeights(f"{path}: tensor {name} is of dtype {dtype}, expected one of {', '.join(DTYPES)}")


def _read(path: Path, places: Iterable[Place]) -> None:
    with _opened(path) as file:
        for name, view in places:
            view.copy_(file.get_tensor(name))


@contextmanager
def _opened(path: Path) -> Iterator[safe_open]:
    """The file, mapped into memory; on the way to a GPU a tensor is copied once."""
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            yield file
    except FileNotFoundError:
        raise BadWeights(f"{path}: the file is missing, though {INDEX} names it") from None
    except (SafetensorError, OSError) as error:
        raise BadWeights(f"{path}: cannot be read as safetensors: {error}") from None
