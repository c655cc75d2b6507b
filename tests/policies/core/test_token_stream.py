"""Spans compare as the tokens that they stand for would."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from llmsim.policies.core.request import Prompt
from llmsim.policies.core.token_stream import TokenStream

Token = int | tuple[int, int]

OPEN_END = 12
"""Tokens of an output of named content that are looked at."""


@dataclass
class Spelled:
    """A stream and its tokens: literal ones as numbers, named ones as (content, position)."""

    stream: TokenStream
    tokens: list[Token]


SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 6)), max_size=5)
LITERAL = st.lists(st.integers(0, 2), max_size=12)
PUSHES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=5)


@st.composite
def spelled(draw: st.DrawFn) -> Spelled:
    """Prompts of spans or literal tokens, outputs named or literal: every mixture."""
    tokens: list[Token]
    if draw(st.booleans()):
        spans = draw(SPANS)
        prompt = Prompt(spans)
        tokens = [(content, start + i) for content, start, length in spans for i in range(length)]
    else:
        literal = draw(LITERAL)
        prompt, tokens = Prompt.of_tokens(literal), list(literal)
    output = draw(st.integers(0, 2))
    stream = TokenStream(prompt, output)
    if draw(st.booleans()):
        for push in draw(PUSHES):
            stream.push(push)
            tokens += push
    else:
        tokens += [(output, i) for i in range(OPEN_END)]
    return Spelled(stream, tokens)


@given(spelled(), spelled(), st.integers(1, 5))
def test_block_keys_are_equal_exactly_where_the_tokens_are(a: Spelled, b: Spelled, size: int) -> None:
    for at in range(0, len(a.tokens) - size + 1, size):
        for there in range(0, len(b.tokens) - size + 1, size):
            equal = a.tokens[at : at + size] == b.tokens[there : there + size]
            assert (a.stream.block_key(at, at + size) == b.stream.block_key(there, there + size)) == equal


@given(spelled(), spelled(), st.integers(0, 20), st.integers(0, 20))
def test_agreement_ends_at_the_first_different_token(a: Spelled, b: Spelled, start: int, stop: int) -> None:
    stop = min(stop, len(a.tokens), len(b.tokens))
    start = min(start, stop)
    want = next((i for i in range(start, stop) if a.tokens[i] != b.tokens[i]), stop)
    assert a.stream.agreement(b.stream, start, stop) == want
    assert b.stream.agreement(a.stream, start, stop) == want


@given(spelled(), st.integers(1, 4))
def test_a_key_that_was_taken_stays_right_while_the_output_grows(a: Spelled, size: int) -> None:
    before = [a.stream.block_key(at, at + size) for at in range(0, len(a.tokens) - size + 1, size)]
    if isinstance(a.stream.contents[-1], list):
        a.stream.push([7, 8, 9])
    assert [a.stream.block_key(i * size, (i + 1) * size) for i in range(len(before))] == before


def test_the_next_turns_prompt_has_the_keys_of_the_last_turn() -> None:
    turn = TokenStream(Prompt([(1, 0, 5)]), 70)
    following = TokenStream(Prompt([(1, 0, 5), (70, 0, 6), (2, 0, 9)]), 71)
    assert turn.agreement(following, 0, 20) == 11
    assert [turn.block_key(i, i + 4) == following.block_key(i, i + 4) for i in (0, 4, 8)] == [True, True, False]


def test_pushed_tokens_are_copied() -> None:
    tokens = [1, 2]
    stream = TokenStream(Prompt(), -1)
    stream.push(tokens)
    tokens.append(3)
    stream.push([9])
    assert stream.block_key(0, 3) == (1, 2, 9)


def test_a_literal_token_is_never_a_named_one() -> None:
    literal, named = TokenStream(Prompt.of_tokens([3]), 0), TokenStream(Prompt([(3, 0, 1)]), 0)
    assert literal.block_key(0, 1) != named.block_key(0, 1)
    assert literal.agreement(named, 0, 1) == 0
