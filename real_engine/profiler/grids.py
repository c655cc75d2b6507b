"""Which steps are timed: by tokens, decodes by batch and context, chunks by new and cached tokens, and whole steps.

small  for a CPU and a small model: minutes
full   for a GPU: linear layers on both sides of each tile edge, chunks on a grid of factors of two
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from .steps import BLOCK_SIZE, TimedStep

GridName = Literal["small", "full"]


@dataclass(frozen=True, slots=True)
class Grid:
    """Sizes, before those that the model or the memory have no room for are left out."""

    tokens: tuple[int, ...]
    """Of chunks without cached tokens, whose linear layers are of interest."""
    rows: tuple[int, ...]
    """Of further decode batches, whose linear layers and lm_head are: sizes between, with a few contexts only."""
    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    most_context: int
    """Summed over a batch."""
    chunks: tuple[int, ...]
    cached: tuple[int, ...]
    most_pairs: int
    """(query, key) pairs of a chunk."""
    num_unequal: int
    """Decode batches of unequal contexts."""
    num_joint: int
    """Launches of several chunks."""
    num_whole: int
    """Whole steps of each kind: decodes, prefill, both."""
    most_step_tokens: int
    """Of a whole step."""
    host_batches: tuple[int, ...]


SMALL = Grid(
    tokens=(24, 48, 96, 192, 384, 768, 1024),
    rows=(5, 7, 9, 10, 11, 13, 14, 15, 18, 20, 21, 22, 23, 28, 35, 40, 45, 56, 57, 59),
    batches=(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    contexts=(16, 64, 128, 256, 512, 1024, 2048, 4096),
    most_context=16384,
    chunks=(2, 4, 8, 16, 32, 64, 128, 256, 512),
    cached=(0, 64, 256, 512, 1024, 2048, 3072),
    most_pairs=1 << 21,
    num_unequal=40,
    num_joint=8,
    num_whole=16,
    most_step_tokens=384,
    host_batches=(1, 2, 4, 8, 16, 32, 64),
)

FULL = Grid(
    tokens=(
        *(15, 17, 24, 31, 33, 48, 63, 65, 96, 127, 129, 192, 255, 257, 384, 511, 513, 768, 1023, 1025),
        *(1536, 3072, 6144, 8192),
    ),
    rows=(3, 5, 6, 7, 10, 15, 20, 31, 40, 63, 80, 127, 160, 255, 320),
    batches=(1, 2, 4, 8, 12, 16, 17, 24, 32, 33, 48, 64, 65, 96, 128, 129, 192, 256, 257, 384, 512),
    contexts=(16, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072),
    most_context=1 << 20,
    chunks=(2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
    cached=(0, 128, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 122880),
    most_pairs=1 << 28,
    num_unequal=80,
    num_joint=16,
    num_whole=40,
    most_step_tokens=8192,
    host_batches=(1, 4, 16, 64, 128, 256),
)


GRIDS: dict[GridName, Grid] = {"small": SMALL, "full": FULL}


def steps_of(grid: Grid, max_context: int, seed: int) -> list[TimedStep]:
    """The steps of a grid for a model of so many positions, each once; the same seed draws the same ones."""
    unequal, joint, whole, common = (np.random.default_rng([seed, number]) for number in range(4))
    steps = [*_by_tokens(grid), *_decodes(grid), *_unequal(grid, unequal), *_chunks(grid), *_joint(grid, joint)]
    steps += _whole(grid, min(max_context, max(grid.contexts)), whole)
    steps += _in_common([step for step in steps if step.is_whole and not step.chunks], common)
    return [step for step in dict.fromkeys(steps) if max(step.lengths) <= max_context]


def _by_tokens(grid: Grid) -> Iterator[TimedStep]:
    yield from (TimedStep(chunks=((tokens, 0),)) for tokens in grid.tokens)


def _decodes(grid: Grid) -> Iterator[TimedStep]:
    for batch, context in product(grid.batches, grid.contexts):
        if batch * context <= grid.most_context:
            yield TimedStep((context,) * batch)
    for rows in grid.rows:
        reached = [context for context in grid.contexts if rows * context <= grid.most_context]
        for context in dict.fromkeys((reached[0], reached[len(reached) // 2], reached[-1])):
            yield TimedStep((context,) * rows)


def _chunks(grid: Grid) -> Iterator[TimedStep]:
    for new, cached in product(grid.chunks, grid.cached):
        if new * (cached + new / 2) <= grid.most_pairs:
            yield TimedStep(chunks=((new, cached),))


def _unequal(grid: Grid, rng: np.random.Generator) -> Iterator[TimedStep]:
    """Half of them spread evenly by half of the mean, half lognormal with a deviation of the mean, as traffic is."""
    shapes = [
        (batch, context)
        for batch, context in product(grid.batches, grid.contexts)
        if batch > 1 and 2 * batch * context <= grid.most_context
    ]
    for number, i in enumerate(rng.permutation(len(shapes))[: grid.num_unequal]):
        batch, context = shapes[i]
        if number % 2:
            contexts = rng.integers(context // 2, context + context // 2 + 1, size=batch)
        else:
            contexts = context * rng.lognormal(-np.log(2) / 2, np.sqrt(np.log(2)), size=batch)
        most = min(max(grid.contexts), grid.most_context // batch)
        yield TimedStep(tuple(np.clip(np.rint(contexts), 1, most).astype(int).tolist()))


def _joint(grid: Grid, rng: np.random.Generator) -> Iterator[TimedStep]:
    """Chunks of the grid together in one launch: what they cost less than one after another."""
    alone = [step.chunks[0] for step in _chunks(grid) if step.num_tokens <= grid.most_step_tokens // 2]
    for _ in range(grid.num_joint):
        together = [alone[i] for i in rng.integers(len(alone), size=int(rng.integers(2, 5)))]
        yield TimedStep(chunks=tuple(together))


def _whole(grid: Grid, max_context: int, rng: np.random.Generator) -> Iterator[TimedStep]:
    """Steps as runs have them, of any sizes within the grid: no point of it but by chance."""
    for kind in ("decode", "prefill", "mixed"):
        for _ in range(grid.num_whole):
            contexts = _any_decodes(grid, max_context, rng) if kind != "prefill" else ()
            room = grid.most_step_tokens - len(contexts)
            chunks = _any_chunks(grid, max_context, room, rng) if kind != "decode" else ()
            yield TimedStep(contexts, chunks, is_whole=True)


def _in_common(decodes: Sequence[TimedStep], rng: np.random.Generator) -> Iterator[TimedStep]:
    """The same steps again, with the first 30 to 100 % of the shortest context in the same blocks."""
    for step in decodes:
        most = (min(step.contexts) - 1) // BLOCK_SIZE  # this step's token is written to a block of its own
        if len(step.contexts) > 1 and most:
            num_blocks = max(1, round(most * rng.uniform(0.3, 1.0)))
            yield step._replace(common=num_blocks * BLOCK_SIZE)


def _any_decodes(grid: Grid, max_context: int, rng: np.random.Generator) -> tuple[int, ...]:
    batch = _log_uniform(1, max(grid.batches), rng)
    longest = min(max_context, grid.most_context // batch)
    typical = _log_uniform(min(32, longest), longest, rng)
    low, high = max(1, typical // 2), min(longest, typical + typical // 2)
    return tuple(rng.integers(low, high + 1, size=batch).tolist())


def _any_chunks(grid: Grid, max_context: int, room: int, rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
    chunks: list[tuple[int, int]] = []
    for _ in range(int(rng.integers(1, 4))):
        if room >= 16:
            new = _log_uniform(8, min(room, max(grid.chunks)), rng)
            most = max(min(max(grid.cached), max_context - new, grid.most_pairs // new - new // 2), 0)
            chunks.append((new, int(rng.integers(0, most + 1)) if rng.random() < 0.6 else 0))
            room -= new
    return tuple(chunks)


def _log_uniform(low: int, high: int, rng: np.random.Generator) -> int:
    return round(float(np.exp(rng.uniform(np.log(low), np.log(max(high, low))))))
