"""What the benchmarks of vLLM and SGLang both write of each request, and when their clients sent them.

    input_lens   prompt tokens                  ttfts    s from sent to the first chunk
    output_lens  tokens that came back          itls     s between chunks, a list a request
    errors       empty where all went well      start_times   s, of some clock (newer versions of vLLM alone)

Times are the client's: HTTP and detokenising are in them. A request that failed has an error, or no output.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from .errors import RunError
from .measured_run import MeasuredRequest
from .reading import Row

LISTS = ("input_lens", "output_lens", "ttfts", "itls")


def bench_requests(fields: dict[str, Any], path: Path, option: str) -> tuple[list[MeasuredRequest], list[str]]:
    """The requests that went well, at the times at which they were sent, and what had to be assumed or left out.

    `option` is what the benchmark must be run with to write them. Raises RunError.
    """
    columns = _columns(fields, path, option)
    rows = [
        Row(path, f"request {number}", dict(zip(columns, values, strict=True)))
        for number, values in enumerate(zip(*columns.values(), strict=True), start=1)
    ]
    went_well = [row for row in rows if not row.fields.get("errors") and row.tokens("output_lens") > 0]
    if not went_well:
        raise RunError(path, None, f"none of its {len(rows)} requests succeeded")
    num_failed = len(rows) - len(went_well)
    notes = [f"of {len(rows)} requests {num_failed} failed and are left out"] if num_failed else []
    sent_s, how = _sent(fields, went_well, path)
    requests = [_request(row, sent) for row, sent in zip(went_well, sent_s, strict=True)]
    return requests, [*notes, *how]


def _columns(fields: dict[str, Any], path: Path, option: str) -> dict[str, list[Any]]:
    for name in LISTS:
        if not isinstance(fields.get(name), list):
            raise RunError(path, name, f"is missing: the benchmark writes it when run with {option}")
    columns = {name: fields[name] for name in (*LISTS, "errors", "start_times") if isinstance(fields.get(name), list)}
    num_requests = len(columns["input_lens"])
    for name, values in columns.items():
        if len(values) != num_requests:
            says = f"has {len(values)} entries, but there are {num_requests} input_lens"
            raise RunError(path, f"{name}, request {min(len(values), num_requests) + 1}", says)
    asked = fields.get("num_prompts")
    if type(asked) is int and asked != num_requests:
        says = f"is {asked}, but input_lens has {num_requests}: request {min(asked, num_requests) + 1} is in one alone"
        raise RunError(path, "num_prompts", says)
    return columns


def _request(row: Row, sent_s: float) -> MeasuredRequest:
    ttft_s, itls_s = row.seconds("ttfts"), _itls(row)
    first_s = sent_s + ttft_s
    return MeasuredRequest(
        row.where,
        row.tokens("input_lens"),
        row.tokens("output_lens"),
        sent_s,
        first_token_s=first_s,
        last_token_s=first_s + sum(itls_s),
        itls_s=itls_s,
    )


def _itls(row: Row) -> tuple[float, ...]:
    gaps = row.fields["itls"]
    if not isinstance(gaps, list):
        raise row.error("itls", "must be a list of seconds")
    checked = Row(row.path, row.where, {f"itls[{i}]": gap for i, gap in enumerate(gaps)})
    return tuple(checked.seconds(name) for name in checked.fields)


def _sent(fields: dict[str, Any], rows: list[Row], path: Path) -> tuple[list[float], list[str]]:
    """When each request was sent, and how that is known."""
    if isinstance(fields.get("start_times"), list):
        return [row.seconds("start_times") for row in rows], []
    rate = fields.get("request_rate")
    rate = float("inf") if rate == "inf" else rate
    if not isinstance(rate, int | float) or not rate > 0:
        raise RunError(path, "start_times", "is missing, and request_rate does not say when requests were sent")
    if rate == float("inf"):
        return _at_once(fields, rows)
    burstiness = fields.get("burstiness", 1.0)
    if not isinstance(burstiness, int | float) or not 0 < burstiness < float("inf"):
        raise RunError(path, "burstiness", "must be a number above 0")
    says = f"no start_times: arrivals are drawn anew at {rate:g}/s, so requests cannot be matched one by one"
    return _drawn(len(rows), rate, burstiness), [says]


def _drawn(num_requests: int, rate: float, burstiness: float) -> list[float]:
    """Gamma-distributed gaps, as both benchmarks draw them (1 is Poisson's), with a seed of our own."""
    random = Random(0)
    gaps = (random.gammavariate(burstiness, 1 / (rate * burstiness)) for _ in range(num_requests - 1))
    return [0.0, *accumulate(gaps)]


def _at_once(fields: dict[str, Any], rows: list[Row]) -> tuple[list[float], list[str]]:
    """All at once, or each when one of `max_concurrency` clients was free."""
    clients = fields.get("max_concurrency")
    if type(clients) is not int or clients <= 0:
        return [0.0] * len(rows), ["no start_times: all requests were sent at once, as request_rate is inf"]
    lasted_s = [row.seconds("ttfts") + sum(_itls(row)) for row in rows]
    says = f"no start_times: each request is taken as sent when one of {clients} clients was free"
    return _in_turn(lasted_s, clients), [says]


def _in_turn(lasted_s: Iterable[float], clients: int) -> list[float]:
    free_s, sent_s = [0.0] * clients, []
    for lasted in lasted_s:
        sent_s.append(free_s[0])
        heapq.heapreplace(free_s, free_s[0] + lasted)
    return sent_s
