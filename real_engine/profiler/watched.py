"""The model with marks around its kernels: each is timed where it runs, on the tensors and the caches of a step.

What lies between two kernels is a linear layer, so the marks of the kernels tell the linear layers' times as well, and
the sum of all is the step's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from ...kernels.contract import Kernels
from ..attention_inputs import AttentionInputs, KVStorage
from ..model.transformer import Transformer
from .marks import Interval, Marks

KERNELS = {
    "rms_norm": "final_norm",
    "add_rms_norm": "norm",
    "qk_norm": "qk_norm",
    "rope": "rope",
    "write_kv": "kv_write",
    "silu_mul": "act",
    "decode_attention": "decode_attention",
    "extend_attention": "extend_attention",
    "logits": "lm_head",
    "greedy": "sampler",
}
"""What is marked, and what a profile calls it. The norm before all layers stands for the one after them, whose residual
is added in the last layer's second norm: a step has as many of each."""

BETWEEN = {
    ("forward(", "rms_norm("): "embedding",
    ("rms_norm)", "qk_norm("): "qkv",
    ("rms_norm)", "rope("): "qkv",
    ("add_rms_norm)", "qk_norm("): "qkv",
    ("add_rms_norm)", "rope("): "qkv",
    ("decode_attention)", "add_rms_norm("): "o",
    ("extend_attention)", "add_rms_norm("): "o",
    ("add_rms_norm)", "silu_mul("): "gate_up",
    ("silu_mul)", "add_rms_norm("): "down",
}
"""The linear layers and the embedding, by the marks around them."""


class WatchedKernels:
    """Kernels that set marks before and after each. A `Kernels`."""

    def __init__(self, kernels: Kernels, marks: Marks) -> None:
        self.name = kernels.name
        self._kernels = kernels
        self._marks = marks

    def __getattr__(self, name: str) -> Any:
        kernel, marks = getattr(self._kernels, name), self._marks
        if not callable(kernel):
            return kernel
        before, after = f"{name}(", f"{name})"

        def watched(*arguments: Any) -> Any:
            marks.set(before)
            result = kernel(*arguments)
            marks.set(after)
            return result

        setattr(self, name, watched)  # the next call finds it without coming here
        return watched


class WatchedModel(Transformer):
    """The same weights, with marks."""

    def __init__(self, model: Transformer, marks: Marks) -> None:
        super().__init__(model.config, model.weights, WatchedKernels(model.kernels, marks))
        self._marks = marks

    def forward(self, tokens: Tensor, inputs: AttentionInputs, kv: KVStorage) -> Tensor:
        """As the model's."""
        self._marks.set("forward(")
        hidden: Tensor = super().forward(tokens, inputs, kv)
        self._marks.set("forward)")
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """As the model's."""
        self._marks.set("logits(")
        logits: Tensor = super().logits(hidden)
        self._marks.set("logits)")
        return logits


def kernel_times(intervals: Iterable[Interval]) -> dict[str, list[float]]:
    """Microseconds of each launch, by kernel."""
    times: dict[str, list[float]] = {}
    for begins, ends, us in intervals:
        name = BETWEEN.get((begins, ends))
        if name is None and begins[:-1] == ends[:-1]:
            name = KERNELS.get(begins[:-1])
        if name is not None:
            times.setdefault(name, []).append(us)
    return times
