"""Prompts have one canonical form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.policies.core.request import Prompt
from llmsim.policies.core.token_stream import TokenStream

Span = tuple[int, int, int]

SPANS = st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 6), st.integers(0, 9)), max_size=8)


def tokens_of(spans: list[Span]) -> list[tuple[int, int]]:
    """Each token as (content, position in it)."""
    return [(content, start + i) for content, start, length in spans for i in range(length)]


def split(spans: list[Span], cuts: list[int]) -> list[Span]:
    """The same tokens with spans cut in two, some of the halves empty."""
    pieces = []
    for index, (content, start, length) in enumerate(spans):
        cut = cuts[index % len(cuts)] % (length + 1)
        pieces += [(content, start, cut), (content, start + cut, length - cut)]
    return pieces


@given(SPANS, st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_any_split_of_the_same_spans_is_the_same_prompt(spans: list[Span], cuts: list[int]) -> None:
    whole, cut = Prompt(spans), Prompt(split(spans, cuts))
    assert cut.spans() == whole.spans()
    assert len(cut) == len(whole) == len(tokens_of(spans))


@given(SPANS, st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 5))
def test_any_split_of_the_same_spans_gives_equal_block_keys(spans: list[Span], cuts: list[int], size: int) -> None:
    whole, cut = TokenStream(Prompt(spans), -9), TokenStream(Prompt(split(spans, cuts)), -9)
    for start in range(0, len(tokens_of(spans)) + 8, size):
        assert cut.block_key(start, start + size) == whole.block_key(start, start + size)


@given(SPANS, SPANS)
def test_spans_are_equal_exactly_where_tokens_are(a: list[Span], b: list[Span]) -> None:
    assert (Prompt(a).spans() == Prompt(b).spans()) == (tokens_of(a) == tokens_of(b))


@given(SPANS)
def test_the_canonical_spans_hold_the_same_tokens(spans: list[Span]) -> None:
    canonical = Prompt(spans).spans()
    assert tokens_of([(content, start, n) for content, start, n in canonical if isinstance(content, int)]) == tokens_of(
        spans
    )


def test_neighbours_that_continue_one_another_are_merged_over_an_empty_span() -> None:
    assert Prompt([(7, 0, 3), (8, 5, 0), (7, 3, 2)]).spans() == [(7, 0, 5)]


def test_neighbours_of_one_content_with_a_gap_stay_apart() -> None:
    assert Prompt([(7, 0, 3), (7, 4, 2)]).spans() == [(7, 0, 3), (7, 4, 2)]


@pytest.mark.parametrize("span", [(1, 0, -1), (1, -1, 3)])
def test_a_negative_start_or_length_is_refused(span: Span) -> None:
    with pytest.raises(ValueError, match="negative start or length"):
        Prompt([(1, 0, 4), span])


def test_literal_tokens_are_one_span() -> None:
    assert Prompt.of_tokens(iter([5, 6, 7])).spans() == [((5, 6, 7), 0, 3)]
    assert Prompt.of_tokens([]).spans() == []


def test_an_empty_prompt_has_no_spans() -> None:
    assert Prompt().spans() == Prompt([(1, 4, 0)]).spans() == []
    assert repr(Prompt()) == "Prompt([])"
