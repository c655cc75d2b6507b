"""Reads a CSV that anyone can write: a row a request, all times in seconds on one clock.

| column | what |
|---|---|
| `arrival_s, prompt_tokens, output_tokens` | needed |
| `request_id` | its name; the row's number where left out |
| `first_token_s, last_token_s` | as the client saw them; one of the two columns is needed |
| `queued_s, scheduled_s` | when the scheduler learned of it; when its first step was planned |
| `intended_s` | when the workload meant to send it |
| `hash_ids` | names of its prompt's blocks of 16 tokens, the last partial, with blanks between |

A cell may be empty where a time is not known.
"""

from __future__ import annotations

from pathlib import Path

from .errors import RunError
from .measured_run import MeasuredRequest, MeasuredRun
from .order import check_times, from_first_arrival
from .reading import Row, block_ids, read_table

NEEDED = ("arrival_s", "prompt_tokens", "output_tokens")


def read_plain_csv(path: Path) -> MeasuredRun:
    """The run in `path`; RunError names row and column."""
    requests = []
    for where, cells in read_table(path, NEEDED):
        row = Row(path, where, cells)
        request = _request(row)
        check_times(request, row)
        requests.append(request)
    if not requests:
        raise RunError(path, None, "has no rows")
    if all(request.first_token_s is None and request.last_token_s is None for request in requests):
        raise RunError(path, None, "has neither first_token_s nor last_token_s: there is nothing to compare")
    return MeasuredRun(path, from_first_arrival(requests))


def _request(row: Row) -> MeasuredRequest:
    prompt_tokens = row.tokens("prompt_tokens")
    return MeasuredRequest(
        row.label("request_id") if row.fields.get("request_id") else row.where,
        prompt_tokens,
        row.tokens("output_tokens"),
        row.seconds("arrival_s"),
        intended_s=row.seconds_if_given("intended_s"),
        queued_s=row.seconds_if_given("queued_s"),
        scheduled_s=row.seconds_if_given("scheduled_s"),
        first_token_s=row.seconds_if_given("first_token_s"),
        last_token_s=row.seconds_if_given("last_token_s"),
        block_ids=block_ids(row, "hash_ids", prompt_tokens),
    )
