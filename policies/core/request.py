"""What a client asks for: a prompt as spans of content, and the request around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

Content = int | tuple[int, ...] | list[int]
"""A content id (tokens known only by name), or literal tokens: a tuple, or a list while it still grows."""


class Prompt:
    """A prompt as spans `(content id, start, length)` in one canonical form: equal spans are equal tokens.

    The tokens of a content id are never materialised, so a prompt of 100k tokens costs a few integers. Literal
    tokens are one span whose content is the token list itself. Neighbouring spans that continue one another are
    merged, so two prompts with the same tokens are the same spans.
    """

    __slots__ = ("contents", "num_tokens", "offsets", "starts")

    def __init__(self, spans: Iterable[tuple[int, int, int]] = ()) -> None:
        self.starts: list[int] = []  # position of a span's first token in the prompt
        self.contents: list[Content] = []
        self.offsets: list[int] = []  # where in its content the span begins
        self.num_tokens = 0
        for content, start, length in spans:
            self._append(content, start, length)

    @classmethod
    def of_tokens(cls, tokens: Iterable[int]) -> Prompt:
        """A prompt of literal token ids."""
        prompt, literal = cls(), tuple(tokens)
        if literal:
            prompt.starts, prompt.contents, prompt.offsets = [0], [literal], [0]
            prompt.num_tokens = len(literal)
        return prompt

    @classmethod
    def following(cls, before: Prompt, spans: Iterable[tuple[int, int, int]]) -> Prompt:
        """A prompt that begins with all of `before` and goes on with `spans`."""
        prompt = cls()
        prompt.starts, prompt.contents, prompt.offsets = before.starts[:], before.contents[:], before.offsets[:]
        prompt.num_tokens = before.num_tokens
        for content, start, length in spans:
            prompt._append(content, start, length)
        return prompt

    def _append(self, content: int, start: int, length: int) -> None:
        if length < 0 or start < 0:
            raise ValueError(f"span ({content}, {start}, {length}) has a negative start or length")
        if length == 0:
            return
        if self.starts and self.contents[-1] == content and self._end_offset() == start:
            self.num_tokens += length
            return
        self.starts.append(self.num_tokens)
        self.contents.append(content)
        self.offsets.append(start)
        self.num_tokens += length

    def _end_offset(self) -> int:
        """Where in its content the last span ends."""
        return self.offsets[-1] + self.num_tokens - self.starts[-1]

    def spans(self) -> list[tuple[Content, int, int]]:
        """The spans as `(content, start, length)`."""
        borders = pairwise([*self.starts, self.num_tokens])
        return [
            (content, offset, end - start)
            for content, offset, (start, end) in zip(self.contents, self.offsets, borders, strict=True)
        ]

    def __len__(self) -> int:
        return self.num_tokens

    def __repr__(self) -> str:
        return f"Prompt({self.spans()!r})"


@dataclass(frozen=True, slots=True)
class Request:
    """What the engine is told of a request. Not its true output length: that is the executor's (`Output`)."""

    id: str
    arrival_ns: int
    prompt: Prompt
    max_tokens: int
    output_content: int
    """Content id of the tokens it will generate: the j-th output token is the content's j-th token."""
    priority: int = 0
    """Smaller is more urgent."""
    tenant: str | None = None
    session: str | None = None
    deadline_ns: int | None = None
    """By when its client wants its first token, or all of it: which, the workload decides."""
    predicted_tokens: int | None = None
    """A prediction of its output's length, with the error that the scenario gives it; never the length itself."""
    ignore_eos: bool = False
    """It is certain to generate all of `max_tokens`, and the engine is told so."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a request will really generate; known to the workload and the executor alone."""

    length: int
    tokens: tuple[int, ...] | None = None
    """Literal tokens to force, or None: the request's `output_content`."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request on its way to the engine. With `refusal`, a row that cannot be served, and why."""

    time_ns: int
    request: Request
    output: Output
    refusal: str | None = field(default=None)
    patience_ns: int | None = None
    """How long its client waits from `time_ns` on before it gives up; the engine is not told."""
