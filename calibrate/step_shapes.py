"""Tells which sizes no step has, whatever it was measured on."""

from __future__ import annotations

from ..policies.core.estimator import StepShape


def impossible(shape: StepShape) -> str | None:
    """Why no step is of this shape; None where one may be. A file of steps names its columns so."""
    decodes, context, longest, samples = shape[1:5]
    if not decodes and not shape.prefill_chunks:
        return "holds nothing: num_decodes is 0 and chunks is empty"
    if not decodes and (context or longest):
        return f"context_tokens is {context} and max_context {longest}, and num_decodes 0"
    if context < decodes:
        return f"context_tokens is {context}; each of {decodes} decodes has at least 1"
    if longest > context - max(decodes - 1, 0):
        return f"max_context is {longest}; {decodes} decodes have a context_tokens of {context} together"
    if longest * decodes < context:
        return f"max_context is {longest}; the mean of {decodes} decodes is more, context_tokens being {context}"
    if not decodes <= samples <= decodes + len(shape.prefill_chunks):
        return f"num_samples is {samples}, with {decodes} decodes and {len(shape.prefill_chunks)} chunks"
    cached = [kv for _, kv in shape.prefill_chunks]
    again = context + sum(cached) - max(longest, *cached, 0)
    if shape.shared_tokens > again:
        return f"shared_tokens is {shape.shared_tokens}; at most {again} tokens of this context can be read again"
    return None
