"""Requests whose prompts go on from where earlier ones are left, as a table of rows says.

    | blocks of an earlier prompt, from its first on | blocks of its own, for later ones to reuse | rest |

A row says how long prompt and output are, how many blocks are reused and how far back these lie (`recency.py`). Each
row is drawn once before any is drawn again. One that asks for an older past than there is yet waits until there is: so
traffic begins cold, as a trace does. Whose prompt it is that a row reuses follows from the rows before it.

In memory are the prompts that lie no further back than the farthest row asks for (and the longest prompt beyond), as
runs of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import islice

from ..schema_generators import PrefixReuseSettings
from .draft import Draft
from .draws import rounds
from .recency import Recency
from .reuse_rows import ReuseRow, read_reuse_rows

Run = tuple[int, int]
"""Blocks whose contents are numbered one after another: the first, and how many."""


def prefix_reuse_drafts(asked: PrefixReuseSettings, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    """Requests without end. Raises ScenarioError for a file that is not one of rows."""
    rows = read_reuse_rows(asked.rows.file, asked.block_tokens)
    if any(row.reuse.num_blocks for row in rows):
        return _growing(_Rows(rows, seed), asked.block_tokens, contents)
    drawn = map(rows.__getitem__, rounds(seed, "rows", len(rows)))
    return (Draft((), row.prompt_tokens, row.output_tokens) for row in drawn)


class _Rows:
    """The rows in the order in which they are drawn, but none before the past is as long as it asks for."""

    def __init__(self, rows: list[ReuseRow], seed: int) -> None:
        self.rows = rows
        self._drawn = rounds(seed, "rows", len(rows))
        self._waiting: list[tuple[int, int]] = []

    def take(self, past_blocks: int) -> ReuseRow:
        """The next one. Where all rows ask for more past than there is, the one that asks for least."""
        waiting = self._waiting
        while not (waiting and waiting[0][0] <= past_blocks) and len(waiting) < len(self.rows):
            place = next(self._drawn)
            distance = self.rows[place].reuse.distance_blocks
            if distance <= past_blocks:
                return self.rows[place]
            heappush(waiting, (distance, place))
        return self.rows[heappop(waiting)[1]]


def _growing(drawn: _Rows, block_tokens: int, contents: Iterator[int]) -> Iterator[Draft]:
    num_blocks = [-(-row.prompt_tokens // block_tokens) for row in drawn.rows]
    farthest = max(row.reuse.distance_blocks for row in drawn.rows)
    fresh = sum(num_blocks) - sum(row.reuse.num_blocks for row in drawn.rows)
    recency = Recency(farthest + max(num_blocks), nearness_blocks=fresh / len(num_blocks))
    prompts: dict[int, list[Run]] = {}
    number = 0
    while True:
        row = drawn.take(recency.num_added_blocks)
        num_full, num_rest = divmod(row.prompt_tokens, block_tokens)
        source, num_reused = recency.source_for(row.reuse) or (None, 0)
        prompt = [] if source is None else _beginning(prompts[source], num_reused)
        if num_full > num_reused:
            prompt.append(_fresh(contents, num_full - num_reused))
        prompts[number] = prompt
        for forgotten in recency.add(num_full + (num_rest > 0), num_full, source, num_reused):
            del prompts[forgotten]
        number += 1
        shared = tuple((first + i, 0, block_tokens) for first, num in prompt for i in range(num))
        yield Draft(shared, num_rest, row.output_tokens)


def _beginning(prompt: list[Run], num_blocks: int) -> list[Run]:
    runs = []
    for first, num in prompt:
        if num_blocks <= 0:
            break
        runs.append((first, min(num, num_blocks)))
        num_blocks -= num
    return runs


def _fresh(contents: Iterator[int], num_blocks: int) -> Run:
    """The next contents, which follow one another."""
    first = next(contents)
    last = next(islice(contents, num_blocks - 2, None)) if num_blocks > 1 else first
    assert last == first + num_blocks - 1, f"contents {first} to {last} are not {num_blocks}"
    return first, num_blocks
