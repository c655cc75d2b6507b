"""Writes a draft as YAML: the keys, and above them in comments what was assumed and what was not carried over."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from ..yaml_reading import parse_yaml
from .draft import Draft

_SECTIONS = ("name", "model", "hardware", "engine", "workload", "slo", "run")
WIDTH = 118


def nested(keys: Mapping[str, Any]) -> dict[str, Any]:
    """`{"engine.max_num_seqs": 64}` as the YAML nests it, its sections in their usual order."""
    whole: dict[str, Any] = {}
    for path, value in keys.items():
        section, _, key = path.partition(".")
        if key:
            whole.setdefault(section, {})[key] = value
        else:
            whole[section] = value
    return {section: whole[section] for section in _SECTIONS if section in whole}


def yaml_text(draft: Draft, programs: list[str]) -> str:
    """The scenario's YAML under its comments."""
    lines = [f"# Imported from {' and '.join(programs)}.", *_notes("Assumed", draft.assumed)]
    lines += _notes("Not carried over", draft.dropped)
    whole = nested(draft.keys)
    body = "".join(_section(name, value) for name, value in whole.items())
    return "\n".join(lines) + "\n" + body


def _notes(title: str, notes: Mapping[str, str]) -> Iterator[str]:
    if notes:
        yield from ("#", f"# {title}:")
    for subject, says in notes.items():
        text = "".join(c if c.isprintable() else "?" for c in " ".join(f"{subject}: {says}".split()))
        yield from textwrap.wrap(
            text,
            WIDTH,
            initial_indent="#   ",
            subsequent_indent="#     ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _section(name: str, value: Any) -> str:
    """Keys one below the other, what is inside them on one line."""
    if not isinstance(value, dict):
        return f"{name}: {_on_one_line(value)}\n"
    return f"{name}:\n" + "".join(f"  {key}: {_on_one_line(inside)}\n" for key, inside in value.items())


def _on_one_line(value: Any) -> str:
    """As YAML 1.2 has it; PyYAML would leave bare what only YAML 1.1 takes for text, such as 1e3."""
    plain = yaml.safe_dump([value], default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True)
    if isinstance(value, str) and parse_yaml(plain, "text") != [value]:
        return json.dumps(value)
    return plain.strip()[1:-1]
