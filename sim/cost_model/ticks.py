"""Times of a step's parts in ticks of 2^-28 ns, as integers: sums are exact in any order.

What a kernel takes is rounded up to a tick and its floors are rounded down, so no sum of kernels beats the
sum of their floors, at any efficiency. A tick is fine enough for the smallest slope, a (query, key) pair of a
tiny model (about 1,000 ticks), and coarse enough for int64 to hold a step of half a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor
from typing import NamedTuple

from .kernel import Kernel
from .roofline import Roofline
from .transformer import AttentionGroup, Transformer

TICK_BITS = 28
TICKS_PER_S = 10**9 << TICK_BITS
ROUND_UP = (1 << TICK_BITS) - 1
"""Added before the shift from ticks to nanoseconds, where a time is rounded up."""


class Ticks(NamedTuple):
    """A time beside its two floors."""

    device: int
    compute: int
    memory: int


class AttentionTicks(NamedTuple):
    """Of attention in layers that reach equally far: launching, a token of context, a query, a (query, key) pair."""

    window: int | None
    gap: int
    context: int
    query: int
    pair: int
    context_floor: int
    query_floor: int
    pair_floor: int

    def price(self, context_tokens: int, num_queries: int, num_pairs: int) -> tuple[int, int, int]:
        """One launch a layer over all sequences: the fields of Ticks."""
        memory = context_tokens * self.context + num_queries * self.query
        compute = num_pairs * self.pair
        return (
            self.gap + (memory if memory > compute else compute),
            num_pairs * self.pair_floor,
            context_tokens * self.context_floor + num_queries * self.query_floor,
        )


class DecodeLines(NamedTuple):
    """Steps of nothing but so many decodes: straight lines, in ticks, over their summed context.

    The device takes the larger of `reading` (attention bound by bytes) and `multiplying` (bound by FLOPs).
    """

    reading: int
    reading_slope: int
    multiplying: int
    multiplying_slope: int
    compute: int
    compute_slope: int
    memory: int
    memory_slope: int


def decode_lines(
    num_decodes: int, linear: Ticks, head: Ticks, groups: Sequence[AttentionTicks], *, beyond: bool = False
) -> DecodeLines:
    """The lines of a batch size. The device's are to be shifted down: its rounding up is in them.

    `beyond` is for contexts whose sum exceeds the batch's windows: sliding layers cost what whole windows do.
    """
    lines = _at_one_cost(Ticks(linear.device + head.device + ROUND_UP, *_floors(linear, head)))
    for group in groups if num_decodes else ():
        if beyond and group.window is not None:
            in_windows = num_decodes * group.window
            more = _at_one_cost(Ticks(*group.price(in_windows, num_decodes, in_windows)))
        else:
            more = _along_context(num_decodes, group)
        lines = DecodeLines(*(a + b for a, b in zip(lines, more, strict=True)))
    return lines


def _floors(linear: Ticks, head: Ticks) -> tuple[int, int]:
    return linear.compute + head.compute, linear.memory + head.memory


def _at_one_cost(ticks: Ticks) -> DecodeLines:
    """What costs the same whatever the context."""
    return DecodeLines(ticks.device, 0, ticks.device, 0, ticks.compute, 0, ticks.memory, 0)


def _along_context(num_decodes: int, group: AttentionTicks) -> DecodeLines:
    return DecodeLines(
        reading=group.gap + num_decodes * group.query,
        reading_slope=group.context,
        multiplying=group.gap,
        multiplying_slope=group.pair,
        compute=0,
        compute_slope=group.pair_floor,
        memory=num_decodes * group.query_floor,
        memory_slope=group.context_floor,
    )


def kernel_ticks(kernels: Iterable[Kernel], roofline: Roofline) -> Ticks:
    """Kernels one after another, all their launches."""
    device = compute = memory = 0
    for kernel in kernels:
        device += kernel.num_launches * ceil(roofline.launch_s(kernel) * TICKS_PER_S)
        compute += kernel.num_launches * floor(roofline.compute_floor_s(kernel) * TICKS_PER_S)
        memory += kernel.num_launches * floor(roofline.memory_floor_s(kernel) * TICKS_PER_S)
    return Ticks(device, compute, memory)


def attention_ticks(transformer: Transformer, roofline: Roofline) -> list[AttentionTicks]:
    """The slopes of each group of layers: a kernel that holds one token of context, one query, or one pair."""
    return [_group_ticks(transformer, roofline, group) for group in transformer.attention_groups()]


def _group_ticks(transformer: Transformer, roofline: Roofline, group: AttentionGroup) -> AttentionTicks:
    context = transformer.attention_kernel("context", group.num_layers, 1, 0, 0)
    query = transformer.attention_kernel("query", group.num_layers, 0, 1, 0)
    pair = transformer.attention_kernel("pair", group.num_layers, 0, 0, 1)
    ticks = TICKS_PER_S * group.num_layers
    return AttentionTicks(
        window=group.window,
        gap=ceil(roofline.efficiencies.kernel_gap_s * ticks),
        context=ceil(roofline.memory_s(context) * ticks),
        query=ceil(roofline.memory_s(query) * ticks),
        pair=ceil(roofline.compute_s(pair) * ticks),
        context_floor=floor(roofline.memory_floor_s(context) * ticks),
        query_floor=floor(roofline.memory_floor_s(query) * ticks),
        pair_floor=floor(roofline.compute_floor_s(pair) * ticks),
    )
