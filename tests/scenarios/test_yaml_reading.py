"""YAML is read with YAML 1.2's plain types and without surprises."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.yaml_reading import parse_yaml, read_yaml_mapping


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000.0),
        ("-2.5E-1", -0.25),
        (".5", 0.5),
        ("010", 10),
        ("0x10", 16),
        ("+7", 7),
        ("1:30", "1:30"),
        ("off", "off"),
        ("yes", "yes"),
        ("true", True),
        ("2024-01-01", "2024-01-01"),
        ("8_192", "8_192"),
        ("~", None),
        ("'5'", "5"),
        ("-", [None]),
        (".inf", math.inf),
    ],
)
def test_plain_scalars_mean_what_they_look_like(text: str, value: object) -> None:
    parsed = parse_yaml(text, "f")
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: the key 'a' is given twice"),
        ("a:\n  b: 1\n  b: 1\n", "line 3: the key 'b' is given twice"),
        ("a: [1\nb: 2\n", "line 2"),
        ("a: 1\n5: 2\n", "line 2: the key 5 is not text"),
        ("? [a]\n: 2\n", "line 1: the key ['a'] is not text"),
        ("a: 1\n---\nb: 2\n", "line 2"),
        ("a: \x07\n", "line 1: character"),
        ("a: &x {b: *x}\n", "line 1"),
        ("a: *nowhere\n", "line 1"),
        ("a: !!python/object:os.system x\n", "line 1"),
        ("a: " + "9" * 5000, "cannot be read"),
        ("[" * 5000, "cannot be read"),
    ],
)
def test_bad_yaml_is_one_line_with_the_line_number(text: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_yaml(text, "f.yaml")
    assert str(caught.value).startswith("f.yaml: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "is empty"),
        (b"# only a comment\n", "is empty"),
        (b"- a\n", "holds a list, not a mapping"),
        (b"words\n", "holds a str, not a mapping"),
        (b"a: 1\nb: \xff\n", "line 2: byte 0xff is not UTF-8"),
    ],
)
def test_file_without_a_mapping_is_an_error(tmp_path: Path, raw: bytes, says: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(raw)
    with pytest.raises(ScenarioError, match=says) as caught:
        read_yaml_mapping(path)
    assert str(path) in str(caught.value)


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        read_yaml_mapping(tmp_path / "none.yaml")


def test_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_yaml_mapping(tmp_path)


def test_byte_order_mark_is_not_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml_mapping(path) == {"a": 1}
