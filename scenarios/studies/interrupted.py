"""Ctrl-C during a study that keeps what it has."""

from __future__ import annotations


class StudyInterrupted(Exception):
    """The message says what is kept, and how to go on."""
