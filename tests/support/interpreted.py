"""Repairs of triton's CPU interpreter (checked on 3.6.0), for tests alone: bf16 as on a GPU, integers out of tensors.

The interpreter keeps bf16 as its 16 bits and computes with these as if they were integers. Here `tl.dot` and casts take
them as numbers, rounded to nearest even as GPUs do, and any other arithmetic on bf16 raises: a kernel has to widen to
fp32 first, which costs nothing on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

Handle = interpreter.TensorHandle
Builder = interpreter.InterpreterBuilder

_CASTS = (
    "create_fp_ext",
    "create_fp_trunc",
    "create_si_to_fp",
    "create_ui_to_fp",
    "create_fp_to_si",
    "create_fp_to_ui",
)
_ARITHMETIC = ("binary_op", "unary_op", "create_fma", "create_fabs", "create_rsqrt", "create_erf")


def repair() -> None:
    """Puts the repairs in place; doing so again changes nothing."""
    if hasattr(Builder, "repaired"):
        return
    Builder.repaired = True
    for name in _ARITHMETIC:
        setattr(Builder, name, _refusing_bf16(getattr(Builder, name)))
    Builder.create_dot = _widening_dot(Builder.create_dot)
    Builder.cast_impl = _rounding_cast(Builder.cast_impl)
    for name in _CASTS:
        setattr(Builder, name, lambda self, source, target: self.cast_impl(source, target))
    Builder.create_fp_to_fp = _rounding_conversion(Builder.create_fp_to_fp)
    interpreter.ReduceScanOpInterface.check_tensor = _reduction_refusing_bf16(
        interpreter.ReduceScanOpInterface.check_tensor
    )
    interpreter.GridExecutor.__call__ = np.errstate(all="ignore")(interpreter.GridExecutor.__call__)  # as a GPU: silent
    interpreter._patch_lang_tensor = _with_index(interpreter._patch_lang_tensor)


def widened(bits: np.ndarray) -> np.ndarray:
    """The fp32 numbers that bf16 bits stand for."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: np.ndarray) -> np.ndarray:
    """The bf16 bits nearest to fp32 numbers, the even one of two; a NaN stays one."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    nearest = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), nearest)


def _is_bf16(handle: Any) -> bool:
    return bool(handle.dtype.scalar == tl.bfloat16)


def _refusing_bf16(operation: Callable[..., Any]) -> Callable[..., Any]:
    def refusing(self: Any, *arguments: Any) -> Any:
        if any(_is_bf16(argument) for argument in arguments if isinstance(argument, Handle)):
            raise TypeError("arithmetic on bf16, which the interpreter gets wrong: cast to fp32 first")
        return operation(self, *arguments)

    return refusing


def _reduction_refusing_bf16(check: Callable[..., None]) -> Callable[..., None]:
    def refusing(self: Any, tensors: Any) -> None:
        if any(tensor.dtype == tl.bfloat16 for tensor in tensors):
            raise TypeError("a reduction of bf16, which the interpreter gets wrong: cast to fp32 first")
        check(self, tensors)

    return refusing


def _widening_dot(dot: Callable[..., Any]) -> Callable[..., Any]:
    def widening(self: Any, a: Any, b: Any, accumulator: Any, *options: Any) -> Any:
        a, b = (Handle(widened(x.data), tl.float32) if _is_bf16(x) else x for x in (a, b))
        return dot(self, a, b, accumulator, *options)

    return widening


def _rounding_cast(cast: Callable[..., Any]) -> Callable[..., Any]:
    def rounding(self: Any, source: Any, target: Any) -> Any:
        if source.dtype.scalar == target.scalar:
            return source
        if _is_bf16(source):
            source = Handle(widened(source.data), tl.float32)
        if target.scalar == tl.bfloat16:
            return Handle(narrowed(source.data.astype(np.float32)), tl.bfloat16)
        return cast(self, source, target) if source.dtype.scalar != target.scalar else source

    return rounding


def _rounding_conversion(convert: Callable[..., Any]) -> Callable[..., Any]:
    def rounding(self: Any, source: Any, target: Any, mode: Any) -> Any:
        if tl.bfloat16 in (source.dtype.scalar, target.scalar):
            return self.cast_impl(source, target)
        return convert(self, source, target, mode)

    return rounding


def _with_index(patch: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy deprecates (from 2.4: refuses) the integer of an array of one, which the interpreter's scalars are."""

    def patching(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(np.asarray(self.handle.data).item()))

    return patching
