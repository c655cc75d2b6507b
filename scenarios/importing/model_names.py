"""From a model's name on Hugging Face to that of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

_VARIANT = re.compile(r"-(instruct|chat|base|it|hf|v0\.[1-3]|unsloth|bnb)$")
_PRECISION = {
    re.compile(r"-(fp8(-dynamic|-kv)?|dynamic-fp8)$"): "fp8",
    re.compile(r"-(awq(-int4)?|int4-awq)$"): "awq",
    re.compile(r"-(gptq(-int4)?|w4a16|quantized\.w4a16)$"): "gptq",
}
_SAME_SHAPES = {
    "llama-3.3-70b": ("llama-3.1-70b", None),
    "llama-3-8b": ("llama-3.1-8b", 8192),
    "llama-3-70b": ("llama-3.1-70b", 8192),
}
"""Models that differ from one of the catalogue in their longest context alone: None where not in that."""


class KnownModel(NamedTuple):
    """A model of the catalogue, and what its name on Hugging Face says beside."""

    name: str
    quantization: str | None
    max_len: int | None
    """Its longest context, where that is shorter than the catalogue's."""


def known_model(hub_name: str, catalogue: Collection[str]) -> KnownModel | None:
    """`meta-llama/Llama-3.1-8B-Instruct` is `llama-3.1-8b`; None for a model whose shapes the catalogue lacks.

    Organisation, capitals, a prefix of `Meta-` and suffixes such as `-Instruct` or `-FP8` tell no other shapes.
    """
    name = hub_name.rstrip("/").rpartition("/")[2].lower().removeprefix("meta-")
    quantization = None
    while True:
        shorter = _VARIANT.sub("", name)
        for pattern, precision in _PRECISION.items():
            if pattern.search(shorter):
                shorter, quantization = pattern.sub("", shorter), precision
        if shorter == name:
            break
        name = shorter
    name, max_len = _SAME_SHAPES.get(name, (name, None))
    return KnownModel(name, quantization, max_len) if name in catalogue else None
