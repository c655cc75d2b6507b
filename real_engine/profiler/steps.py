"""What a step holds that is to be timed; torch is not needed to know it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...policies.core.estimator import StepShape

SHORT_TOKENS = 64
BLOCK_SIZE = 16
"""Tokens of a KV block while profiling."""


class TimedStep(NamedTuple):
    """Decodes and chunks of prompts of one step, each of which samples a token."""

    contexts: tuple[int, ...] = ()
    """Of each decode, this step's token included."""
    chunks: tuple[tuple[int, int], ...] = ()
    """`(q, kv)` of each: new tokens, at least 2, and cached ones."""
    is_whole: bool = False
    """Timed as a whole only, to hold the sum of kernels against it."""
    common: int = 0
    """Tokens at the beginning of their contexts that all decodes have in the same KV blocks; whole blocks."""

    @property
    def num_tokens(self) -> int:
        """Tokens that the step computes."""
        return len(self.contexts) + sum(q for q, _ in self.chunks)

    @property
    def num_rows(self) -> int:
        """Sequences in it, each of which gets a token."""
        return len(self.contexts) + len(self.chunks)

    @property
    def lengths(self) -> list[int]:
        """Tokens of each sequence with this step's, decodes first."""
        return [*self.contexts, *(q + kv for q, kv in self.chunks)]

    @property
    def is_short(self) -> bool:
        """Whether it computes so little that other things on the device weigh much in it."""
        return self.num_tokens <= SHORT_TOKENS

    def shape(self) -> StepShape:
        """The step as a cost model sees it."""
        contexts = self.contexts
        longest = max(contexts, default=0)
        shared = self.common * max(len(contexts) - 1, 0)
        return StepShape(list(self.chunks), len(contexts), sum(contexts), longest, self.num_rows, shared_tokens=shared)

    def name(self) -> str:
        """One word; equal words are equal steps: `d8x1024,2x4096+c512@0` is 8 decodes, 2 longer ones and a chunk.

        `+s256` behind them: the decodes have their first 256 tokens in the same blocks.
        """
        decodes = ",".join(f"{count}x{context}" for context, count in _runs(self.contexts))
        parts = [f"d{decodes}"] if decodes else []
        parts += [f"c{q}@{kv}" for q, kv in self.chunks]
        parts += [f"s{self.common}"] * bool(self.common)
        return ("whole:" if self.is_whole else "") + "+".join(parts)

    @classmethod
    def of_name(cls, name: str) -> TimedStep:
        """The step of a name."""
        whole, _, rest = name.rpartition("whole:")
        del whole
        contexts: list[int] = []
        chunks: list[tuple[int, int]] = []
        common = 0
        for part in rest.split("+"):
            if part.startswith("s"):
                common = int(part[1:])
            elif part.startswith("c"):
                q, _, kv = part[1:].partition("@")
                chunks.append((int(q), int(kv)))
            else:
                for run in part[1:].split(","):
                    count, _, context = run.partition("x")
                    contexts += [int(context)] * int(count)
        return cls(tuple(contexts), tuple(chunks), is_whole="whole:" in name, common=common)


def _runs(contexts: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours of one context as (context, how many)."""
    runs: list[tuple[int, int]] = []
    for context in contexts:
        count = runs.pop()[1] if runs and runs[-1][0] == context else 0
        runs.append((context, count + 1))
    return runs
