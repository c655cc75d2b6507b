"""Takes a run's rows as they come, streams them to Parquet, and keeps only what the metrics need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..policies.core.records import EventRecord, RequestRecord, StepRecord
from .columns import EVENTS, GAPS, REQUESTS, STEPS, Ints, RequestColumns, StepColumns, TableLayout
from .gaps import GapPool, Gaps
from .swap_figures import SWAPS

CHUNK_ROWS = 1 << 14
"""Rows buffered as Python objects (at 0.5 kB each) before they become columns, and a Parquet row group."""


class TableWriter:
    """One Parquet file, written a row group at a time with settings that depend on nothing but the layout."""

    def __init__(self, path: Path, layout: TableLayout) -> None:
        self._layout = layout
        strings = [field.name for field in layout.schema if field.type == pa.string()]
        self._writer = pq.ParquetWriter(
            path,
            layout.schema,
            compression="zstd",
            store_schema=False,  # a reader then sees plain Parquet types
            use_dictionary=strings,
            column_encoding={f.name: code for f in layout.schema if (code := _ENCODINGS.get(f.type))},
        )

    def write(self, records: Sequence[object]) -> None:
        """Append these records as one row group."""
        if records:
            self._writer.write_table(self._layout.table(records))

    def write_columns(self, columns: Iterable[Sequence[Any] | Ints]) -> None:
        """Append these columns, in order of the layout's fields, as one row group."""
        self._writer.write_table(self._layout.table_of(columns))

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()


# Counters and clocks hardly change from row to row; so coded, a step takes a few bytes.
_ENCODINGS = {pa.int64(): "DELTA_BINARY_PACKED", pa.float64(): "BYTE_STREAM_SPLIT"}


class Recorder:
    """Takes the records of one run: `on_*` while it lasts, `close`, then the columns for `summarize`.

    With a folder, the rows go to `requests.parquet`, `steps.parquet`, `events.parquet` and `itl.parquet` in
    it, and steps are read back from the file. Without one, the columns of steps that metrics need stay in
    memory (65 bytes a step) and events are dropped, but for swaps.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._writers = {} if folder is None else _open_writers(folder)
        self._steps: list[StepRecord] = []
        self._requests: list[RequestRecord] = []
        self._events: list[EventRecord] = []
        self._swaps: list[EventRecord] = []
        self._step_chunks: list[StepColumns] = []
        self._request_chunks: list[RequestColumns] = []
        self._gaps = GapPool()
        self.on_gap = self._gaps.add
        """`on_gap(gap_ns, count)`: so many tokens of measured requests came `gap_ns` after the one before."""

    def on_step(self, record: StepRecord) -> None:
        """A step was committed; steps come in order."""
        rows = self._steps
        rows.append(record)
        if len(rows) >= CHUNK_ROWS:
            self._flush_steps()

    def on_request(self, record: RequestRecord) -> None:
        """A request ended, or the run did; the record must not change any more."""
        rows = self._requests
        rows.append(record)
        if len(rows) >= CHUNK_ROWS:
            self._flush_requests()

    def on_event(self, record: EventRecord) -> None:
        """Something happened to a request or its KV."""
        if record.kind in SWAPS:
            self._swaps.append(record)
        rows = self._events
        rows.append(record)
        if len(rows) >= CHUNK_ROWS:
            self._flush_events()

    def close(self) -> None:
        """The run is over: write what is buffered and complete the files. Once."""
        self._flush_steps()
        self._flush_requests()
        self._flush_events()
        if self._writers:
            self._writers["itl"].write_columns(self.gaps())
        for writer in self._writers.values():
            writer.close()

    def discard(self) -> None:
        """Let the files go, whatever state an interruption has left them in; they are not to be read."""
        for writer in self._writers.values():
            with suppress(Exception):
                writer.close()

    def step_chunks(self) -> Iterator[StepColumns]:
        """All steps, chunk by chunk, after `close`."""
        if self._folder is None:
            return iter(self._step_chunks)
        return read_step_chunks(self._folder / "steps.parquet")

    def requests(self) -> RequestColumns:
        """All requests, after `close`."""
        self._request_chunks = [RequestColumns.joined(self._request_chunks)]
        return self._request_chunks[0]

    def swaps(self) -> list[EventRecord]:
        """The events of swapping so far."""
        return self._swaps

    def gaps(self) -> Gaps:
        """The pooled gaps so far."""
        return self._gaps.merged()

    def gap_batches(self) -> list[Gaps]:
        """The same as batches in a row."""
        return self._gaps.batches()

    def _flush_steps(self) -> None:
        rows, self._steps = self._steps, []
        if self._writers:
            self._writers["steps"].write(rows)
        elif rows:
            self._step_chunks.append(StepColumns.of_records(rows))

    def _flush_requests(self) -> None:
        rows, self._requests = self._requests, []
        if self._writers:
            self._writers["requests"].write(rows)
        self._request_chunks.append(RequestColumns.of_records(rows))

    def _flush_events(self) -> None:
        rows, self._events = self._events, []
        if self._writers:
            self._writers["events"].write(rows)


def _open_writers(folder: Path) -> dict[str, TableWriter]:
    layouts = {"requests": REQUESTS, "steps": STEPS, "events": EVENTS, "itl": GAPS}
    return {name: TableWriter(folder / f"{name}.parquet", layout) for name, layout in layouts.items()}


def read_step_chunks(path: Path) -> Iterator[StepColumns]:
    """The steps of a `steps.parquet`, a row group at a time."""
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            yield StepColumns.of_table(file.read_row_group(group, columns=StepColumns.column_names()))
