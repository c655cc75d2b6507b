"""Rows of records as columns: the tables of a result folder, and the few columns that the metrics need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..policies.core.records import EventRecord, RequestRecord, Status, StepRecord

Ints: TypeAlias = npt.NDArray[np.signedinteger[Any]]
Floats: TypeAlias = npt.NDArray[np.float64]

NS_PER_S = 1e9
STATUSES = tuple(Status)

_STRINGS = {"request_id", "tenant", "session", "blocked_by", "status", "kind", "by", "reason"}
_REQUEST_FIELDS = (
    *("request_id", "tenant", "session", "intended_ns", "sent_ns", "admitted_ns", "first_scheduled_ns"),
    *("first_token_ns", "last_token_ns", "prompt_tokens", "cached_tokens", "output_tokens"),
    *("num_preemptions", "num_chunks", "blocked_by", "blocked_ns", "status", "priority"),
)
_OPTIONAL_REQUEST_FIELDS = (
    *("tenant", "session", "blocked_by"),
    *("admitted_ns", "first_scheduled_ns", "first_token_ns", "last_token_ns"),
)


class TableLayout:
    """A table's columns: `_ns` fields of the record become `_s` columns of float64 seconds."""

    def __init__(self, fields: Sequence[str], optional: Sequence[str] = ()) -> None:
        self.schema = pa.schema([pa.field(_column(f), _type(f), nullable=f in optional) for f in fields])
        self._getters = [attrgetter(field) for field in fields]

    def table(self, records: Sequence[object]) -> pa.Table:
        """The records as an Arrow table."""
        # A column at a time: a tuple a row would wake the garbage collector over and over.
        return self.table_of([list(map(get, records)) for get in self._getters])

    def table_of(self, columns: Iterable[Sequence[Any] | Ints]) -> pa.Table:
        """The columns, in order of the fields, as an Arrow table."""
        arrays = [_array(field, values) for field, values in zip(self.schema, columns, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def _column(field: str) -> str:
    return field.removesuffix("_ns") + "_s" if field.endswith("_ns") else field


def _type(field: str) -> pa.DataType:
    if field in _STRINGS:
        return pa.string()
    if field == "extrapolated":
        return pa.bool_()
    return pa.float64() if field.endswith("_ns") else pa.int64()


def _array(field: pa.Field, values: Sequence[Any] | Ints) -> pa.Array:
    if field.type == pa.float64() and field.nullable:
        return pa.array(_times(values) / NS_PER_S, from_pandas=True)
    if field.type == pa.float64():
        return pa.array(_ints(values) / NS_PER_S)
    if field.type == pa.int64():
        return pa.array(_ints(values))
    return pa.array(values, field.type)


def _ints(values: Sequence[int] | Ints) -> Ints:
    return np.fromiter(values, np.int64, len(values))


def _times(values: Sequence[int | None] | Ints) -> Floats:
    """Nanoseconds as float64, exact below 2^53; None is NaN."""
    return np.array(values, dtype=np.float64)


STEPS = TableLayout(StepRecord._fields)
EVENTS = TableLayout(EventRecord._fields, optional=["by"])
REQUESTS = TableLayout(_REQUEST_FIELDS, optional=_OPTIONAL_REQUEST_FIELDS)
GAPS = TableLayout(("gap_ns", "num_tokens"))


class StepColumns(NamedTuple):
    """What the metrics need of a chunk of steps, in order; arrays of one length, counts but of tokens in 32 bits."""

    start_ns: Ints
    duration_ns: Ints
    num_running: Ints
    num_waiting: Ints
    free_blocks: Ints
    kv_tokens: Ints
    refused_blocks: Ints
    compute_ns: Ints
    memory_ns: Ints
    host_ns: Ints
    extrapolated: Ints

    @classmethod
    def of_records(cls, records: Sequence[StepRecord]) -> StepColumns:
        """The columns of these records."""
        return cls(*(np.fromiter(map(get, records), dtype, len(records)) for get, dtype in _STEP_GETTERS))

    @classmethod
    def of_table(cls, table: pa.Table) -> StepColumns:
        """The columns out of a table of `STEPS`; the integers of `of_records`, up to 26 days into a run."""
        return cls(*(_integers(table, field) for field in cls._fields))

    @classmethod
    def column_names(cls) -> list[str]:
        """The columns of `STEPS` that `of_table` reads."""
        return [_column(field) for field in cls._fields]


def _step_dtype(field: str) -> type[np.signedinteger[Any]]:
    return np.int64 if field.endswith(("_ns", "_tokens")) else np.int32


_STEP_GETTERS = [(itemgetter(StepRecord._fields.index(field)), _step_dtype(field)) for field in StepColumns._fields]


def _integers(table: pa.Table, field: str) -> Ints:
    values: Floats = table.column(_column(field)).to_numpy()
    # Seconds are ns / 1e9 rounded once: times 1e9 is within half a nanosecond of the integer below 2^51 ns.
    return (np.rint(values * NS_PER_S) if field.endswith("_ns") else values).astype(_step_dtype(field))


class RequestColumns(NamedTuple):
    """What the metrics need of the requests: 65 bytes each.

    Times are float64 nanoseconds (exact), NaN where None; counts have 32 bits.
    """

    sent_ns: Floats
    admitted_ns: Floats
    first_scheduled_ns: Floats
    first_token_ns: Floats
    last_token_ns: Floats
    max_gap_ns: Floats
    prompt_tokens: Ints
    cached_tokens: Ints
    output_tokens: Ints
    num_preemptions: Ints
    status: npt.NDArray[np.int8]
    """Index into `STATUSES`."""

    @classmethod
    def of_records(cls, records: Sequence[RequestRecord]) -> RequestColumns:
        """The columns of these records."""
        columns: list[list[Any]] = [list(map(attrgetter(field), records)) for field in cls._fields]
        times = (_times(values) for values in columns[:6])
        counts = (_ints(values).astype(np.int32) for values in columns[6:10])
        return cls._make([*times, *counts, np.array(list(map(STATUSES.index, columns[10])), dtype=np.int8)])

    @classmethod
    def joined(cls, chunks: Sequence[RequestColumns]) -> RequestColumns:
        """One after another."""
        return cls._make(np.concatenate(parts) for parts in zip(cls.of_records([]), *chunks, strict=True))

    def where(self, mask: npt.NDArray[np.bool_]) -> RequestColumns:
        """Only the requests that the mask picks."""
        return self if mask.all() else RequestColumns._make(column[mask] for column in self)

    def having(self, status: Status) -> npt.NDArray[np.bool_]:
        """Mask of the requests that ended so."""
        return np.asarray(self.status == STATUSES.index(status))
