"""Literal tokens of a case as spans of named content: as the simulator knows them."""

from __future__ import annotations

UNIQUE_FROM = 1_000_000
"""The first of the tokens that stand for generated ones."""


def span_of_token(token: int) -> tuple[int, int, int]:
    """A token as a span: of an output's content where it is one's, else of a content that holds it alone."""
    if token >= UNIQUE_FROM:
        output, position = divmod(token - UNIQUE_FROM, 100_000)
        return UNIQUE_FROM + output, position, 1
    return token, 0, 1
