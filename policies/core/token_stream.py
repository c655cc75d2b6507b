"""The tokens of one request, prompt and output, as spans of content that can be compared without materialising them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from .request import Content, Prompt

BlockKey = tuple[object, ...]
"""Content of one block in canonical form; equal keys are equal tokens."""


class TokenStream:
    """A prompt followed by what the request generates.

    The output is one open-ended span of the request's `output_content`; where an engine delivers literal tokens
    (`push`) they take its place.
    """

    __slots__ = ("contents", "offsets", "starts")

    def __init__(self, prompt: Prompt, output_content: int) -> None:
        self.starts = [*prompt.starts, prompt.num_tokens]
        self.contents: list[Content] = [*prompt.contents, output_content]
        self.offsets = [*prompt.offsets, 0]

    def push(self, tokens: list[int]) -> None:
        """Append literal output tokens; from the first call on the output is literal."""
        output = self.contents[-1]
        if isinstance(output, list):
            output.extend(tokens)
        else:
            self.contents[-1] = list(tokens)

    def block_key(self, start: int, stop: int) -> BlockKey:
        """Content of the tokens in [start, stop)."""
        i = bisect_right(self.starts, start) - 1
        content = self.contents[i]
        if type(content) is int and (i + 1 == len(self.starts) or self.starts[i + 1] >= stop):
            return ((content, self.offsets[i] + start - self.starts[i], stop - start),)
        return self._pieces(i, start, stop)

    def _pieces(self, i: int, start: int, stop: int) -> BlockKey:
        pieces: list[object] = []
        while start < stop:
            end = min(stop, self.starts[i + 1]) if i + 1 < len(self.starts) else stop
            content, offset = self.contents[i], self.offsets[i] + start - self.starts[i]
            if isinstance(content, int):
                pieces.append((content, offset, end - start))
            else:
                pieces.extend(content[offset : offset + end - start])
            start, i = end, i + 1
        return tuple(pieces)

    def spans(self, start: int, stop: int) -> Iterator[tuple[Content, int, int]]:
        """The tokens in [start, stop) as `(content, offset in it, length)`."""
        i = bisect_right(self.starts, start) - 1
        while start < stop:
            end = min(stop, self.starts[i + 1]) if i + 1 < len(self.starts) else stop
            if end > start:
                yield self.contents[i], self.offsets[i] + start - self.starts[i], end - start
            start, i = end, i + 1

    def agreement(self, other: TokenStream, start: int, stop: int) -> int:
        """Position in [start, stop) of the first token at which the streams differ; `stop` if none does."""
        if self is other:
            return stop
        i = bisect_right(self.starts, start) - 1
        j = bisect_right(other.starts, start) - 1
        while start < stop:
            end_i = self.starts[i + 1] if i + 1 < len(self.starts) else stop
            end_j = other.starts[j + 1] if j + 1 < len(other.starts) else stop
            end = min(stop, end_i, end_j)
            mine, theirs = self.contents[i], other.contents[j]
            at, there = self.offsets[i] + start - self.starts[i], other.offsets[j] + start - other.starts[j]
            if isinstance(mine, int) or isinstance(theirs, int):
                if mine != theirs or at != there:
                    return start
            else:
                equal = _common_length(mine, at, theirs, there, end - start)
                if equal < end - start:
                    return start + equal
            start = end
            i += end == end_i
            j += end == end_j
        return stop


def _common_length(a: tuple[int, ...] | list[int], i: int, b: tuple[int, ...] | list[int], j: int, n: int) -> int:
    """Number of leading equal items of a[i : i + n] and b[j : j + n]."""
    if tuple(a[i : i + n]) == tuple(b[j : j + n]):
        return n
    return next(k for k in range(n) if a[i + k] != b[j + k])
