"""Where a cache study's blocks come from: a trace with block ids, or the workload of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ...policies.core.token_stream import TokenStream
from ..assembly import assemble
from ..errors import ScenarioError
from ..loading import load_scenario
from ..offered import offered
from ..traces.hash_ids import read_hash_ids
from ..traces.objects import json_object
from ..traces.reading import read_lines
from ..traces.rows import num_tokens, row_error
from ..workloads.building import build_workload
from .cache_trace import BlockTrace, BlockTraceWriter

SCENARIO_SUFFIXES = (".yaml", ".yml")
BLOCK_SIZES = tuple(1 << power for power in range(17))
"""What a trace's block size may be where it is not told: a power of two."""
MOST_ROWS_TO_GUESS = 10_000
ROWS_PER_NOTE = 1000

Say = Callable[[str], None]
Advance = Callable[[int], None]
"""Called now and then with the number of requests so far."""


class Source(NamedTuple):
    """What is replayed, and in which blocks."""

    path: Path
    block_tokens: int | None = None
    """None: as the trace has them, or the scenario's engine."""
    overrides: Sequence[str] = ()
    """Of a scenario's keys."""


def record(source: Source, folder: Path, warn: Say, advance: Advance) -> BlockTrace:
    """Write the requests of a trace or scenario into `folder`. Raises ScenarioError."""
    if source.path.suffix in SCENARIO_SUFFIXES:
        return _record_scenario(source, folder, warn, advance)
    if source.overrides:
        raise ScenarioError("--set", None, f"{source.path} is a trace; only a scenario has keys")
    return _record_trace(source.path, folder, source.block_tokens or block_size_of(source.path), warn, advance)


def block_size_of(path: Path) -> int:
    """The one power of two that makes `hash_ids` as many as every row has. ScenarioError where there is none such."""
    fitting = BLOCK_SIZES
    for (line, text), _ in zip(read_lines(path), range(MOST_ROWS_TO_GUESS), strict=False):
        try:
            fields = json_object(text, path, line, ("input_length", "hash_ids"))
        except ScenarioError as error:
            raise _without_ids(error) if line == 1 else error from None
        length, ids = num_tokens(fields["input_length"], path, line, "input_length"), fields["hash_ids"]
        if not isinstance(ids, list):
            raise row_error(path, line, "hash_ids", "must be a list of whole numbers")
        fitting = tuple(size for size in fitting if -(-length // size) == len(ids))
        if not fitting:
            says = (
                f"no power of two makes {len(ids)} blocks of {length} tokens as of the rows before; give --block-size"
            )
            raise row_error(path, line, "hash_ids", says)
        if len(fitting) == 1:
            return fitting[0]
    choices = ", ".join(map(str, fitting))
    raise ScenarioError(path, None, f"blocks may be of {choices} tokens; give --block-size")


def _without_ids(error: ScenarioError) -> ScenarioError:
    says = f"{error.message}; a cache study needs `input_length` and `hash_ids` in each row, or a scenario (.yaml)"
    return ScenarioError(error.file, error.where, says)


def _record_trace(path: Path, folder: Path, block_tokens: int, warn: Say, advance: Advance) -> BlockTrace:
    writer = BlockTraceWriter(folder, block_tokens)
    latest_ns = num_back = 0
    for row in read_hash_ids(path, block_tokens):
        num_back += row.time_ns < latest_ns
        latest_ns = max(latest_ns, row.time_ns)
        writer.add(row.prompt.contents, row.prompt.num_tokens)  # type: ignore[arg-type]  # a span a block
        _note(writer, advance)
    if num_back:
        warn(f"{path}: {num_back:,} of {writer.num_requests:,} rows go back in time; taken in the file's order")
    return _checked(writer.finish(), path)


def _record_scenario(source: Source, folder: Path, warn: Say, advance: Advance) -> BlockTrace:
    path, assembly = source.path, assemble(load_scenario(source.path, source.overrides))
    size = source.block_tokens or assembly.config.block_size
    writer, num_refused, num_following = BlockTraceWriter(folder, size), 0, 0
    for arrival, follows in offered(build_workload(assembly.scenario, warn)):
        num_following += follows
        if arrival.refusal is not None:
            num_refused += 1
            continue
        request = arrival.request
        stream, length = TokenStream(request.prompt, request.output_content), request.prompt.num_tokens
        keys = [stream.block_key(start, min(start + size, length)) for start in range(0, length, size)]
        writer.add(keys, length, -request.priority)
        _note(writer, advance)
    if num_refused:
        warn(f"{path}: {num_refused:,} requests are refused and left out")
    if num_following:
        says = "requests follow from the end of others, sooner than in a run: service takes no time"
        warn(f"{path}: {num_following:,} {says}")
    return _checked(writer.finish(), path)


def _note(writer: BlockTraceWriter, advance: Advance) -> None:
    if writer.num_requests % ROWS_PER_NOTE == 0:
        advance(writer.num_requests)


def _checked(trace: BlockTrace, path: Path) -> BlockTrace:
    if not trace.num_uses:
        raise ScenarioError(path, None, "no request has a prompt")
    return trace
