"""Random token streams that branch off, repeat and continue one another, each with its tokens spelled out."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from llmsim.policies.core.request import Prompt
from llmsim.policies.core.token_stream import TokenStream

CONTENT_TOKENS = 1000
"""Token j of content c is spelled c * CONTENT_TOKENS + j."""

Span = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt as spans and an output of `num_output` tokens of its own content."""

    prompt: list[Span]
    output_content: int
    num_output: int

    @property
    def tokens(self) -> list[int]:
        return _spelled([*self.prompt, (self.output_content, 0, self.num_output)])

    def stream(self, literal: bool) -> TokenStream:
        """A stream of its own, of the tokens themselves or of spans."""
        if not literal:
            return TokenStream(Prompt(self.prompt), self.output_content)
        stream = TokenStream(Prompt.of_tokens(_spelled(self.prompt)), -1)
        stream.push(self.tokens[stream.starts[-1] :])
        return stream


def random_text(rng: Random, earlier: list[Text], page_size: int) -> Text:
    """A text of a few pages: a fresh one, or a beginning of an earlier one with something else behind it."""
    num_tokens = rng.randint(1, 6 * page_size)
    fresh = [(rng.randrange(4), 0, num_tokens)] if rng.random() < 0.3 else [_piece(rng, num_tokens)]
    prompt = fresh
    if earlier and rng.random() < 0.8:
        source = rng.choice(earlier)
        whole = [*source.prompt, (source.output_content, 0, source.num_output)]
        prompt = _beginning(whole, rng.randint(1, sum(length for _, _, length in whole)))
        prompt += fresh if rng.random() < 0.7 else []
    return Text(prompt, 100 + len(earlier), rng.randint(0, 3 * page_size))


def _piece(rng: Random, num_tokens: int) -> Span:
    return rng.randrange(4, 12), rng.randrange(3), num_tokens


def _beginning(spans: list[Span], num_tokens: int) -> list[Span]:
    cut: list[Span] = []
    for content, start, length in spans:
        taken = min(length, num_tokens)
        cut += [(content, start, taken)] if taken else []
        num_tokens -= taken
    return cut


def _spelled(spans: list[Span]) -> list[int]:
    return [content * CONTENT_TOKENS + start + j for content, start, length in spans for j in range(length)]
