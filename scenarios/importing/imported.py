"""The import as a whole: commands in, a checked scenario's YAML out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from .. import known_names
from ..errors import ScenarioError
from ..gpu_reading import is_data_sheet
from ..loading import scenario_from
from ..model_reading import is_config, read_config
from ..yaml_reading import parse_yaml
from .calls import apply_call
from .command_line import SERVERS, find_calls
from .draft import Draft
from .flags import UNKNOWN
from .model_names import known_model
from .traffic import DEFAULT_WORKLOAD
from .writing import nested, yaml_text

DEFAULT_GPU = "h100-sxm"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{,99}")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a command line cannot say, as its reader asks for it; None is a default."""

    gpu: str | None = None
    model: str | None = None
    """A name of the catalogue or the path of a config.json, in place of the command's model."""
    name: str | None = None
    output: Path | None = None
    """Where the YAML will be: its paths are relative to that folder."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A scenario's YAML, and sentences on what it does not hold or was made up."""

    text: str
    notes: list[str]


def import_commands(text: str, wishes: Wishes) -> Imported:
    """The scenario that commands of vLLM or SGLang describe. Raises ScenarioError, in one line, where they do not."""
    draft = Draft()
    calls = find_calls(text, draft)
    presets = [apply_call(call, draft) for call in sorted(calls, key=lambda call: call.program in SERVERS)]
    preset = presets[-1]  # the server's, where there is one
    programs = [call.program.value for call in calls]
    if any(call.program in SERVERS for call in calls):
        draft.assumed.pop("engine", None)
    _set_model(draft, preset, wishes)
    _set_hardware(draft, wishes)
    if "workload" not in draft.keys:
        draft.set("workload", DEFAULT_WORKLOAD, "workload")
        draft.assume("workload", "no benchmark is called: these requests stand in for your traffic")
    _place_paths(draft, wishes.output)
    name = wishes.name or _name_of(wishes.output) or f"{preset}-{_stem(draft.keys['model'])}"
    draft.keys = {"name": name, "engine.preset": preset, **draft.keys}
    whole = yaml_text(draft, programs)
    _check(whole, draft)
    return Imported(whole, [f"{subject} {why}" for subject, why in draft.dropped.items()])


def _set_model(draft: Draft, preset: str, wishes: Wishes) -> None:
    asked = draft.keys.get("model")
    if wishes.model is not None:
        if is_config(wishes.model):
            read_config(Path(wishes.model), wishes.model)
        draft.set("model", wishes.model, f"--model {wishes.model}")
        return
    if asked is None:
        unknown = [flag for flag, why in draft.dropped.items() if why.startswith(UNKNOWN)]
        unless = f", unless it is the value of {unknown[0]}" if unknown else ""
        says = f"names no model{unless}; give --model with one that `llmsim list models` shows"
        raise ScenarioError("command", None, says)
    if (config := Path(asked) / "config.json").is_file():
        draft.set("model", str(config), draft.origins["model"])
        return
    if (known := known_model(asked, known_names.model_names())) is None:
        says = (
            f"'{asked}' is no model of the catalogue; give --model with the name of one that has the same shapes "
            "(`llmsim list models`), or with the path of its config.json"
        )
        raise ScenarioError("command", None, says)
    draft.set("model", known.name, draft.origins["model"])
    if known.quantization and "engine.quantization" not in draft.keys:
        draft.set("engine.quantization", known.quantization, asked)
        draft.assume("engine.quantization", f"{known.quantization}, as the name {asked} says")
    longest = "engine.max_model_len" if preset == "vllm" else "engine.context_length"
    if known.max_len and longest not in draft.keys:
        draft.set(longest, known.max_len, asked)
        draft.assume("model", f"{asked} has the shapes of {known.name} and a context of {known.max_len:,}")


def _set_hardware(draft: Draft, wishes: Wishes) -> None:
    gpu = wishes.gpu or DEFAULT_GPU
    if wishes.gpu is None:
        draft.assume("hardware.gpu", f"{gpu}: no command says which GPU it runs on; give --gpu")
    draft.keys = {"hardware.gpu": gpu, **draft.keys}
    draft.origins["hardware.gpu"] = f"--gpu {gpu}"


def _place_paths(draft: Draft, output: Path | None) -> None:
    """Paths were relative to the working directory; in the YAML they are relative to its folder."""
    if output is None:
        return
    if is_config(model := draft.keys["model"]):
        draft.keys["model"] = _seen_from(output, model)
    if is_data_sheet(gpu := draft.keys["hardware.gpu"]):
        draft.keys["hardware.gpu"] = _seen_from(output, gpu)
    if "path" in (workload := draft.keys["workload"]):
        draft.keys["workload"] = {**workload, "path": _seen_from(output, workload["path"])}


def _seen_from(output: Path, path: str) -> str:
    return path if Path(path).is_absolute() else os.path.relpath(path, output.parent)


def _name_of(output: Path | None) -> str | None:
    return output.stem if output is not None and _NAME.fullmatch(output.stem) else None


def _stem(model: str) -> str:
    """A model's name, of a config.json that of its folder."""
    path = Path(model)
    name = (path.parent.name or path.stem) if is_config(model) else model
    return name if _NAME.fullmatch(name) else "model"


def _check(text: str, draft: Draft) -> None:
    """The YAML loads, or the flag at fault is named."""
    raw = parse_yaml(text, "command")
    assert raw == nested(draft.keys)
    try:
        scenario_from(nested(draft.keys))
    except ScenarioError as error:
        origin = draft.origin_of(error.where)
        raise ScenarioError("command" if origin else None, origin, f"{error.where}: {error.message}") from None
