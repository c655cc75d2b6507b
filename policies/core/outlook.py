"""What the next step is going to hold, seen before it is composed: its decodes, and the prefill there is to do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from .decode_batch import in_order
from .estimator import StepShape

if TYPE_CHECKING:
    from .engine import EngineCore


class Prefill(NamedTuple):
    """A prompt, or what is left of one."""

    num_tokens: int
    """Still to be computed."""
    num_before: int
    """Computed before, or cached."""


class Outlook:
    """A look ahead that changes nothing. Memory is not looked at: what is short of it comes later than is seen here."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core

    @property
    def depth(self) -> int:
        """Plans in flight: with 2, host and device work overlap."""
        return self._core.config.depth

    @property
    def num_decodes(self) -> int:
        """Running sequences that decode."""
        batch, loose = self._core.batch, self._core.loose
        return batch.size + (sum(not s.is_prefilling for s in loose.values()) if loose else 0)

    def decodes(self) -> StepShape:
        """A step of the decodes alone."""
        core, batch = self._core, self._core.batch
        number, context, longest, drafts = batch.size, batch.context_tokens + batch.size, batch.max_context() + 1, 0
        for sequence in core.loose.values():
            wanted = 0 if sequence.is_prefilling else core.builder.wanted(sequence)
            if wanted > 0:
                after = sequence.computed + wanted
                number, context, longest = number + 1, context + after, max(longest, after)
                drafts += wanted - 1
        shared = core.kv_cache.num_shared_tokens
        return StepShape((), number, context, longest, number, drafts, shared_tokens=shared)

    def prefills(self) -> Iterator[Prefill]:
        """The prompts in the order in which they get tokens: those that run, then those that the free slots may admit.

        The queue is seen in the order of the last step, and each prompt behind what is cached of it, or on the host.
        """
        core = self._core
        for sequence in in_order(core.loose):
            if sequence.is_prefilling:
                yield Prefill(sequence.num_tokens - sequence.computed, sequence.computed)
        slots = max(0, core.max_num_seqs - len(core.running))
        for sequence in islice(core.waiting, slots):
            if not sequence.resumes_decoding:
                ready = core.peek_prefix(sequence)
                yield Prefill(sequence.num_tokens - ready, ready)
