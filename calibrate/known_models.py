"""From the names that sources give to the catalog's models and GPUs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ..policies.core import specs
from ..policies.core.hf_config import ConfigError, model_from_config
from ..policies.core.model_spec import ModelSpec
from ..sim.cost_model.timings import ProfileError


def model_named(given: str, file: Path | str) -> ModelSpec:
    """The model of a name, of a Hugging Face id (`meta-llama/Llama-3.1-8B`) or of a config.json."""
    if given.endswith(".json"):
        return _from_config(Path(given))
    name = re.sub(r"^meta-", "", given.rpartition("/")[2].lower())
    known = [known for known in specs.model_names() if name == known or name.startswith(f"{known}-")]
    if not known:
        raise ProfileError(
            f"{file}: model '{given}' is unknown; give --model with a config.json or one of"
            f" {', '.join(specs.model_names())}"
        )
    return specs.model(max(known, key=len))


def gpu_named(given: str, file: Path | str) -> str:
    """The catalog's name of a GPU as drivers call it: `NVIDIA GeForce RTX 4090`."""
    words = re.sub(r"nvidia|geforce|amd|instinct", " ", given.lower())
    name = "-".join(re.findall(r"[a-z0-9]+", words))
    known = [known for known in specs.gpu_names() if name == known or name.startswith(f"{known}-")]
    if not known:
        raise ProfileError(f"{file}: GPU '{given}' is unknown; give --gpu with one of {', '.join(specs.gpu_names())}")
    return max(known, key=len)


def _from_config(path: Path) -> ModelSpec:
    try:
        return model_from_config(json.loads(path.read_bytes()), path.parent.name or path.stem)
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from None
    except ConfigError as error:
        raise ProfileError(f"{path}: {error}") from None
    except (ValueError, AttributeError) as error:
        raise ProfileError(f"{path}: is not a config.json: {error}") from None
