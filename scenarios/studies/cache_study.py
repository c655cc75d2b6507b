"""Hit rates of a prefix cache by size and eviction policy, without time: what could be found of a traffic at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from ...policies import registry
from ..errors import ScenarioError
from .cache_replay import BELADY, Found, replay
from .cache_sources import Advance, Say, Source, record
from .cache_trace import BlockTrace
from .parallel import in_parallel

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Cache sizes where none are given: of all distinct blocks."""
Eviction = Mapping[str, Any]


class Point(NamedTuple):
    """A cache of one size under one policy."""

    label: str
    eviction: Eviction
    num_blocks: int


def parse_blocks(text: str) -> list[int]:
    """Sizes in blocks out of `1000,5859`, rising. Raises ScenarioError."""
    sizes = set()
    for word in text.split(","):
        try:
            size = int(word)
        except ValueError:
            raise ScenarioError("--blocks", None, f"{word.strip()!r} is not a whole number of blocks") from None
        if size < 1:
            raise ScenarioError("--blocks", None, f"{size} is out of range: must be at least 1")
        sizes.add(size)
    return sorted(sizes)


def parse_evictions(text: str) -> dict[str, Eviction]:
    """Policies by label out of `lru,{name: slru, threshold: 3}`; the bound comes last. Raises ScenarioError."""
    try:
        entries = yaml.safe_load(f"[{text}]")
    except yaml.YAMLError:
        entries = []
    if not entries:
        raise ScenarioError("--eviction", None, f"{text!r} is not a list of policies as lru,lfu")
    evictions: dict[str, Eviction] = {}
    for entry in entries:
        spec = entry if isinstance(entry, dict) else {"name": entry}
        if spec != {"name": BELADY}:
            evictions[_label(spec)] = _checked(spec)
    return evictions | {BELADY: {"name": BELADY}}


def _checked(spec: dict[Any, Any]) -> Eviction:
    if spec.get("name") == BELADY:
        raise ScenarioError("--eviction", None, f"{BELADY} takes no parameters")
    try:
        registry.check("eviction", spec)
    except registry.PolicyError as error:
        where = None if error.key == "name" else f"{spec.get('name')}.{error.key}"
        says = str(error).replace("; choose ", f"; choose {BELADY}, ")
        raise ScenarioError("--eviction", where, says) from None
    return spec


def _label(spec: dict[Any, Any]) -> str:
    """`slru threshold=3`."""
    return " ".join([str(spec.get("name")), *(f"{key}={value}" for key, value in spec.items() if key != "name")])


class CacheStudy:
    """The traffic of one source, recorded, and what caches find of it. A context: the recording goes with it."""

    def __init__(self, source: Source, warn: Say, advance: Advance) -> None:
        """Raises ScenarioError for a source without blocks."""
        self._folder = TemporaryDirectory(prefix="llmsim-cache-")
        self.source = source
        try:
            self.trace = record(source, Path(self._folder.name), warn, advance)
            self.trace.write_next_uses()
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> CacheStudy:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def default_blocks(self) -> list[int]:
        """Sizes from a hundredth of the distinct blocks to all of them."""
        return sorted({max(1, round(share * self.trace.num_nodes)) for share in SHARES})

    def run(
        self,
        evictions: Mapping[str, Eviction],
        sizes: Sequence[int],
        jobs: int | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        """The figures as JSON; `advance` is called after each point.

        block_hit_rate    blocks found / blocks asked for, a last one that is not full counted as one
        token_hit_rate    tokens of the blocks found / tokens asked for
        request_hit_rate  the mean over requests of their block hit rate
        """
        points = [Point(label, spec, size) for label, spec in evictions.items() for size in sizes]
        found: dict[tuple[str, int], Found] = {}
        for point, value in in_parallel(partial(_point, self.trace), points, jobs):
            found[point.label, point.num_blocks] = value
            advance()
        rows = [self._row(label, size, found[label, size]) for label in evictions for size in sizes]
        return {"source": str(self.source.path), **_facts(self.trace), "points": rows}

    def _row(self, label: str, size: int, found: Found) -> dict[str, Any]:
        return {
            "eviction": label,
            "blocks": size,
            "block_hit_rate": found.blocks / self.trace.num_uses,
            "token_hit_rate": found.tokens / self.trace.num_tokens,
            "request_hit_rate": found.mean_share,
        }


def _point(trace: BlockTrace, point: Point) -> tuple[Point, Found]:
    return point, replay(trace, point.eviction, point.num_blocks)


def _facts(trace: BlockTrace) -> dict[str, Any]:
    return {
        "num_requests": trace.num_requests,
        "block_tokens": trace.block_tokens,
        "num_blocks": trace.num_uses,
        "num_distinct_blocks": trace.num_nodes,
        "num_tokens": trace.num_tokens,
        "unlimited": {
            "block_hit_rate": trace.found_blocks / trace.num_uses,
            "token_hit_rate": trace.found_tokens / trace.num_tokens,
        },
    }
