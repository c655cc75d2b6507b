"""Text becomes words as in a shell."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.importing.shell import is_unknown, split_commands


def words(text: str) -> list[tuple[str, ...]]:
    return [command.words for command in split_commands(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a  b\tc", [("a", "b", "c")]),
        ("a 'b c' \"d e\"'f'", [("a", "b c", "d ef")]),
        ("a \\\n  b \\  \n c", [("a", "b", "c")]),
        ("a \\\r\n b\r\n", [("a", "b")]),
        ('a \'{"k": 1}\' "{\\"k\\": 2}"', [("a", '{"k": 1}', '{"k": 2}')]),
        ("a $'x\\ny' b\\ c", [("a", "x\ny", "b c")]),
        ("a && b; c & d | e\nf", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",)]),
        ("a # don't\nb#c 'd'#e", [("a",), ("b#c", "d#e")]),
        ("a > log.txt 2>&1 b 2> err c", [("a", "b", "c")]),
        ("a <your data>/c.json '' b", [("a", "<your data>/c.json", "", "b")]),
        ("# nothing\n\n", []),
    ],
)
def test_text_splits_as_a_shell_splits_it(text: str, expected: list[tuple[str, ...]]) -> None:
    assert words(text) == expected


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00")), min_size=1))
def test_quoted_words_come_back_as_they_were(given_words: list[str]) -> None:
    assert words(shlex.join(["program", *given_words])) == [("program", *given_words)]


def test_variables_that_the_text_sets_are_put_in_place_and_others_stay() -> None:
    text = "M=qwen\nexport PORT=1 H=2\nX=9 run $M ${PORT}0 \"$M-$H\" '$M' $OTHER $(date)"
    (command,) = split_commands(text)
    assert command.words == ("run", "qwen", "10", "qwen-2", "$M", "$OTHER", "$(date)")
    assert command.environment == ("PORT", "H", "X")
    assert [is_unknown(word) for word in command.words[-3:]] == [True, True, True]


@pytest.mark.parametrize(
    ("text", "says"),
    [("a\nb 'c", "line 2: the quote ' is not closed"), ('a "b', 'the quote " is not closed'), ("a\\", "the backslash")],
)
def test_what_is_not_closed_is_an_error_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        split_commands(text)
    assert says in str(caught.value)
