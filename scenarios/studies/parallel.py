"""Runs a function for many items on all cores, and gives back what is done as it is done."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from ..errors import ScenarioError

GC_THRESHOLDS = (50_000, 20, 100)
"""A run makes millions of small objects and few cycles: looking for those as often as Python does costs a quarter."""

Item = TypeVar("Item")
Value = TypeVar("Value")


def in_parallel(function: Callable[[Item], Value], items: Iterable[Item], jobs: int | None = None) -> Iterator[Value]:
    """The values in the order in which they are ready; `jobs` processes, None is one a core, 1 is this process.

    Relative paths mean the same in all of them. Raises what the function raises, and ScenarioError where a process was
    killed.
    """
    import joblib  # here, since it would slow the start of every command

    here = os.getcwd()
    workers = joblib.Parallel(n_jobs=jobs or joblib.cpu_count(), return_as="generator_unordered")
    try:
        yield from workers(joblib.delayed(_called)(function, item, here) for item in items)
    except BrokenProcessPool:
        message = "a process of the study was killed, for want of memory perhaps: run it again with fewer jobs"
        raise ScenarioError("--jobs", None, message) from None


def _called(function: Callable[[Item], Value], item: Item, here: str) -> Value:
    os.chdir(here)  # processes are used again, and the caller may have moved since they began
    gc.set_threshold(*GC_THRESHOLDS)
    return function(item)
