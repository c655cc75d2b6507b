"""Splits text as a shell does: words, quotes, lines that go on, comments, variables, several commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import ScenarioError

_TOKEN = re.compile(
    r"""
    (?P<join>\\[ \t\r]*\n)
    |(?P<blank>[ \t\r]+)
    |(?P<end>\n|&&|\|\||[;|&])
    |(?P<comment>\#[^\n]*)
    |'(?P<literal>[^']*)'
    |\$'(?P<escaped>(?:[^'\\]|\\.)*)'
    |"(?P<quoted>(?:[^"\\]|\\.)*)"
    |(?P<kept>\$\([^()\n]*\)|`[^`\n]*`|<[A-Za-z][^<>|&;\n]*>)
    |(?P<redirect>\d*>>?(?P<descriptor>&\d)?|\d*<)
    |\\(?P<char>.)
    |(?P<variable>\$\w+|\$\{\w+\})
    |(?P<plain>[^\s'"\\$;&|<>`]+|\$)
    """,
    re.VERBOSE | re.DOTALL,
)
"""`kept`: what a shell would run, and the placeholders of documentation, `<path to your data>`, stay as they are."""
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_UNKNOWN = re.compile(r"\$[\w{(]|`")

Variables = dict[str, str]


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """The words of one command, and the names of the environment variables that are set for it."""

    words: tuple[str, ...]
    environment: tuple[str, ...] = ()


def split_commands(text: str) -> list[ShellCommand]:
    """The commands of a text, in order; variables that it sets are put in place, others stay as `$NAME`.

    Raises ScenarioError for quotes that are not closed.
    """
    variables: Variables = {}
    exported: list[str] = []
    commands = []
    for words in _words_of_commands(text, variables):
        if words[0] == "export":
            exported.extend(variables_set(words[1:], variables))
            continue
        own = _leading_assignments(words)
        if len(own) == len(words):
            variables_set(words, variables)
        else:
            names = [word.partition("=")[0] for word in own]
            commands.append(ShellCommand(tuple(words[len(own) :]), tuple(dict.fromkeys([*exported, *names]))))
    return commands


def is_unknown(value: str) -> bool:
    """Whether a value still holds a variable, or what only a shell could run."""
    return _UNKNOWN.search(value) is not None


def variables_set(words: list[str], variables: Variables) -> list[str]:
    """Take note of each `NAME=value`; the names."""
    pairs = [pair for word in words if (pair := _ASSIGNMENT.fullmatch(word))]
    variables.update({pair[1]: pair[2] for pair in pairs})
    return [pair[1] for pair in pairs]


def _leading_assignments(words: list[str]) -> list[str]:
    first = next((place for place, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word)), len(words))
    return words[:first]


def _words_of_commands(text: str, variables: Variables) -> Iterator[list[str]]:
    """The words of each command, without redirections; lazily, so that its reader may set `variables` meanwhile."""
    words: list[str] = []
    word: str | None = None
    dropping = False  # the word under way is where a redirection goes
    place = 0
    while place <= len(text):
        token = _token(text, place) if place < len(text) else None
        kind = str(token.lastgroup) if token else "end"
        if token and kind == "comment" and word is not None:
            word, place = word + "#", place + 1
            continue
        place = token.end() if token else place + 1
        if token and kind not in ("blank", "end", "redirect", "comment", "join"):
            word = (word or "") + _piece(token, kind, variables)
        elif kind != "join":
            if word is not None and not dropping:
                words.append(word)
            dropping = _is_target_next(token, kind) or (dropping and word is None and kind == "blank")
            word = None
        if kind == "end" and words:
            yield words
            words = []


def _is_target_next(token: re.Match[str] | None, kind: str) -> bool:
    return token is not None and kind == "redirect" and token["descriptor"] is None


def _token(text: str, place: int) -> re.Match[str]:
    token = _TOKEN.match(text, place)
    if token is None:
        line = text.count("\n", 0, place) + 1
        says = "the backslash ends it" if text[place] == "\\" else f"the quote {text[place]} is not closed"
        raise ScenarioError("command", f"line {line}", says)
    return token


def _piece(token: re.Match[str], kind: str, variables: Variables) -> str:
    """What a token adds to the word that it stands in."""
    inside = token[kind]
    if kind == "escaped":
        return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), inside)
    if kind == "quoted":
        unescaped = re.sub(r"\\([\"\\$`])|\\\n", lambda match: match[1] or "", inside)
        return _put_in_place(unescaped, variables)
    return _put_in_place(inside, variables) if kind == "variable" else inside


def _put_in_place(text: str, variables: Variables) -> str:
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], match[0]), text)
