"""Prompts given as text: an estimate of their tokens, and a name for their content by which equal prefixes are equal.

Without the model's tokenizer, a text of n characters counts as n / chars_per_token tokens, rounded up. It is cut into
pieces of 16 tokens, and each piece is named by a hash of itself and of all before it:

    | piece 1 | piece 2 | rest |      names h(1), h(1, 2), h(1, 2, rest)

So two prompts share their tokens up to the last piece that they have in common, a multiple of 16 tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from hashlib import blake2b

PIECE_TOKENS = 16
"""vLLM's block: what is shared is found at the granularity of its cache."""
CHARS_PER_TOKEN = 4.0
"""The rule of thumb for English (OpenAI's help pages); other languages and code have fewer."""

Span = tuple[int, int, int]


class TextPrompt:
    """A prompt that grows by texts and by answers; `spans` is what it holds so far."""

    def __init__(self, chars_per_token: float = CHARS_PER_TOKEN) -> None:
        self._chars_per_token = chars_per_token
        self._digest = b""
        self.spans: list[Span] = []

    def add_text(self, text: str) -> None:
        """Append a text; one that is empty appends nothing."""
        for piece, num_tokens in _pieces(text, self._chars_per_token):
            self._digest = blake2b(piece.encode("utf-8", "surrogatepass"), key=self._digest, digest_size=16).digest()
            self.spans.append((int.from_bytes(self._digest[:8], "big") >> 1, 0, num_tokens))

    def add_answer(self, content: int, num_tokens: int) -> None:
        """Append what a request generated."""
        if num_tokens:
            self._digest = blake2b(b"%d" % content, key=self._digest, digest_size=16).digest()
            self.spans.append((content, 0, num_tokens))


def estimated_tokens(text: str, chars_per_token: float) -> int:
    """Tokens of a text, at so many characters a token, rounded up."""
    return math.ceil(len(text) / chars_per_token)


def estimate_note(chars_per_token: float) -> str:
    """The sentence that goes with every length that was not counted by a tokenizer."""
    return f"lengths of texts are estimates: {chars_per_token:g} characters a token (workload.chars_per_token)"


def _pieces(text: str, chars_per_token: float) -> Iterator[tuple[str, int]]:
    """Pieces of 16 tokens and what is left, with their numbers of tokens."""
    whole, rest = divmod(estimated_tokens(text, chars_per_token), PIECE_TOKENS)
    end = 0
    for index in range(1, whole + 1):
        begin, end = end, math.floor(index * PIECE_TOKENS * chars_per_token)
        yield text[begin:end], PIECE_TOKENS
    if rest:
        yield text[end:], rest
