"""What SGLang lets a prefill batch take: tokens of the step, and memory with a reservation for outputs to come."""

from __future__ import annotations

from ..core.records import Blocked
from ..core.sequence import Sequence

MAX_RESERVED_TOKENS = 4096
"""Outputs beyond so many are not reserved (SGLang's CLIP_MAX_NEW_TOKENS)."""


def left_to_generate(sequence: Sequence, num_known: int) -> int:
    """Output tokens to reserve for, given the tokens of prompt and output that are known."""
    return min(max(sequence.end - num_known, 0), MAX_RESERVED_TOKENS)


class PrefillBudget:
    """One prefill batch under composition. Memory is counted in tokens.

    `free_tokens` are those that can be handed out now, cached ones included: the caller keeps it up to date while
    prefixes are locked. `num_mixed`: decodes that are to run in the same step.
    """

    def __init__(self, page_size: int, input_tokens: int, chunk_tokens: int | None, num_mixed: int) -> None:
        self._page_size = page_size
        self.input_left = input_tokens - num_mixed
        self.chunk_left = None if chunk_tokens is None else chunk_tokens - num_mixed
        self.reserved: float = num_mixed
        """Tokens that are spoken for, outputs to come included."""
        self._taken = num_mixed
        """Tokens that this batch itself takes."""
        self._num_charged = 0
        self.free_tokens = 0

    @property
    def memory_left(self) -> float:
        """Tokens that nobody has reserved."""
        return self.free_tokens - self.reserved

    @property
    def memory_left_now(self) -> int:
        """Tokens left if no running request generated anything more."""
        return self.free_tokens - self._taken

    def ceil_page(self, num_tokens: int) -> int:
        """Whole pages that hold so many tokens, in tokens."""
        return -(-num_tokens // self._page_size) * self._page_size

    def is_used_up(self) -> bool:
        """Whether the step has no tokens for another request."""
        return self.input_left <= 0 or (self.chunk_left is not None and self.chunk_left <= 0)

    def is_short_of_memory(self) -> bool:
        """Whether memory has nothing for another request."""
        return self.memory_left <= 0 or self.memory_left_now <= 0

    def continuing(self, wanted: int) -> int:
        """Tokens for a prompt whose earlier chunks are computed; its memory is not asked for."""
        assert self.chunk_left is not None
        given = min(self.chunk_left, int(self.memory_left))
        return min(wanted, given if given > 0 else self.chunk_left)

    def admit(self, sequence: Sequence, extend: int) -> int | Blocked:
        """Of `extend` tokens behind its locked prefix those that the step holds for a request, or what keeps it out.

        All of them, or a chunk that ends with a page.
        """
        if extend + left_to_generate(sequence, sequence.num_tokens) + self._page_size >= self.memory_left:
            return Blocked.MEMORY
        whole = self.ceil_page(extend)
        if self.chunk_left is None:
            return Blocked.BUDGET if self._num_charged and whole >= self.input_left else extend
        return extend if whole <= self.chunk_left else self._chunk(self.chunk_left // self._page_size * self._page_size)

    def cut(self, extend: int) -> int | Blocked:
        """The same where memory is no question: all of them, or whatever is left of the chunk."""
        if self.chunk_left is None or extend <= self.chunk_left:
            return extend
        return self._chunk(self.chunk_left)

    def _chunk(self, num_tokens: int) -> int | Blocked:
        return num_tokens if num_tokens > 0 else Blocked.CHUNK

    def charge(self, sequence: Sequence, num_tokens: int, *, is_whole: bool) -> None:
        """Take what a request was given; one that is cut reserves for its outputs with its last chunk."""
        tokens = self.ceil_page(num_tokens)
        held = tokens + self._page_size
        outputs = min(sequence.end - sequence.prompt_tokens, MAX_RESERVED_TOKENS) if is_whole else 0
        self.reserved += held + outputs
        self._taken += held
        self._num_charged += 1
        self.input_left -= tokens
        if self.chunk_left is not None:
            self.chunk_left -= tokens
