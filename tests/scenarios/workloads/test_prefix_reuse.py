"""Requests by a table of rows: its lengths, its reuse, at the distances that it asks for."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from itertools import count, islice
from pathlib import Path
from random import Random

import numpy as np
import pytest

from llmsim.policies.core.request import Arrival, Prompt
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.fitting.sample import Prefixes
from llmsim.scenarios.schema_generators import PrefixReuseSettings
from llmsim.scenarios.workloads.prefix_reuse import prefix_reuse_drafts
from llmsim.scenarios.workloads.recency import Reuse
from llmsim.scenarios.workloads.reuse_rows import ReuseRow, read_reuse_rows, reuse_rows_csv
from llmsim.tests.support.generators import workload_of

BLOCK = 16


def chat_rows(num: int, seed: int = 3) -> list[ReuseRow]:
    """Rows of made-up chats: a common block, then all that was said; a few requests share nothing."""
    draw, prefixes, rows = Random(seed), Prefixes(BLOCK), []
    chats: list[list[tuple[int, int, int]]] = []
    for number in range(num):
        said = [] if draw.random() < 0.1 else [(1, 0, BLOCK)]
        if said and len(chats) > 15:
            said = chats.pop(draw.randrange(len(chats)))
        said = [*said, *((100 * (number + 1) + place, 0, BLOCK) for place in range(draw.randint(0, 6)))]
        if len(said) < 25:
            chats.append(said)
        prompt = Prompt([*said, (-number - 1, 0, draw.randint(1, BLOCK))])
        rows.append(ReuseRow(prompt.num_tokens, draw.randint(1, 99), prefixes.add(prompt)))
    return rows


def arrivals_of(folder: Path, rows: list[ReuseRow], num: int, seed: int = 0) -> list[Arrival]:
    path = folder / "rows.csv"
    path.write_text(reuse_rows_csv(rows))
    workload = workload_of("prefix_reuse", seed, requests=num, rows={"path": str(path)})
    return list(workload.arrivals())


def found_in(arrivals: list[Arrival]) -> list[ReuseRow]:
    """What each request really reuses, measured as a trace's is."""
    prefixes = Prefixes(BLOCK)
    return [ReuseRow(a.request.prompt.num_tokens, a.output.length, prefixes.add(a.request.prompt)) for a in arrivals]


def test_each_round_has_each_row_once(tmp_path: Path) -> None:
    rows = [ReuseRow(BLOCK * n + 7, n, Reuse(0, 0, 0)) for n in range(1, 31)]
    for reuse in (Reuse(0, 0, 0), Reuse(1, 0, 0)):  # without reuse, and with it
        rows[-1] = rows[-1]._replace(reuse=reuse)
        drawn = [(a.request.prompt.num_tokens, a.output.length) for a in arrivals_of(tmp_path, rows, 90)]
        for start in (0, 30, 60):
            assert sorted(drawn[start : start + 30]) == [(row.prompt_tokens, row.output_tokens) for row in rows]
        assert drawn[:30] != drawn[30:60]


def test_lengths_reuse_and_distances_are_those_of_the_table(tmp_path: Path) -> None:
    rows = chat_rows(1000)
    found = found_in(arrivals_of(tmp_path, rows, 4000))
    asked, given = (
        np.array([(row.prompt_tokens, row.output_tokens, *row.reuse) for row in table]) for table in (rows, found)
    )
    assert given[:, :2].mean(axis=0) == pytest.approx(asked[:, :2].mean(axis=0), rel=0.01)
    for rank in (50, 90, 99):
        assert np.percentile(given[:, 0], rank) == pytest.approx(np.percentile(asked[:, 0], rank), rel=0.02)
    shares = [table[:, 2].sum() * BLOCK / table[:, 0].sum() for table in (asked, given)]
    assert shares[1] == pytest.approx(shares[0], abs=0.01)
    for rank in (50, 75, 90):  # of reuse beyond the common block
        one, other = (np.percentile(table[table[:, 2] > 1, 3], rank) for table in (asked, given))
        assert other == pytest.approx(one, rel=0.2)


def test_prompts_of_whole_blocks_end_with_one_of_their_own_that_later_ones_reuse(tmp_path: Path) -> None:
    rows = [ReuseRow(BLOCK * 2, 1, Reuse(1, 0, 0)), ReuseRow(BLOCK * 3, 1, Reuse(2, 0, 0))]
    arrivals = arrivals_of(tmp_path, rows, 40)
    assert {a.request.prompt.num_tokens for a in arrivals} == {BLOCK * 2, BLOCK * 3}
    assert len({a.request.prompt.contents[-1] for a in arrivals}) == 40
    reused = [row.reuse.num_blocks for row in found_in(arrivals)]
    assert Counter(reused[1:]) == Counter(len(a.request.prompt.contents) - 1 for a in arrivals[1:])


def test_rows_that_ask_for_an_older_past_than_there_is_wait_so_traffic_begins_cold(tmp_path: Path) -> None:
    alone, later = ReuseRow(BLOCK * 4, 1, Reuse(0, 0, 0)), ReuseRow(BLOCK * 4, 1, Reuse(2, 100, 0))
    found = found_in(arrivals_of(tmp_path, [alone] * 50 + [later] * 50, 100))
    reused = [row.reuse.num_blocks for row in found]
    assert reused[:25] == [0] * 25  # 25 prompts of 4 blocks are a past of 100
    assert Counter(reused) == {0: 50, 2: 50}
    assert min(row.reuse.distance_blocks for row in found if row.reuse.num_blocks) > 90


def test_a_row_that_reuses_more_than_any_prompt_has_reuses_all_of_the_longest(tmp_path: Path) -> None:
    rows = [ReuseRow(BLOCK * 4, 1, Reuse(0, 0, 0)), ReuseRow(BLOCK * 50, 1, Reuse(40, 0, 0))]
    reused = [row.reuse.num_blocks for row in found_in(arrivals_of(tmp_path, rows, 40))]
    long = [num for num in reused if num]
    assert long == [4] + [40] * (len(long) - 1)  # the first finds a short one alone
    assert len(long) >= 19


def test_a_table_whose_rows_all_ask_for_a_past_begins_with_the_shortest(tmp_path: Path) -> None:
    rows = [ReuseRow(BLOCK * 4, n, Reuse(2, 5 * n, 0)) for n in (3, 1, 2)]
    arrivals = arrivals_of(tmp_path, rows, 30)
    assert arrivals[0].output.length == 1
    assert Counter(a.output.length for a in arrivals) == dict.fromkeys((1, 2, 3), 10)


def test_memory_stays_as_the_traffic_goes_on(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(
        reuse_rows_csv([row for row in chat_rows(200) if row.reuse.distance_blocks < 150])
    )
    asked = PrefixReuseSettings.model_validate(
        {"type": "prefix_reuse", "rows": {"path": "rows.csv"}, "block_tokens": BLOCK}, context={"folder": tmp_path}
    )
    drafts = prefix_reuse_drafts(asked, 0, count())
    held = []
    tracemalloc.start()
    for num in (3000, 12_000):
        for _ in islice(drafts, num):
            pass
        gc.collect()  # and the free lists of small tuples with it
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[1] < 1.5 * held[0] + 100_000  # what the interpreter keeps for itself; a request takes about 1 KB


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = chat_rows(50)
    (tmp_path / "rows.csv").write_text(reuse_rows_csv(rows))
    assert read_reuse_rows(tmp_path / "rows.csv", BLOCK) == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file of rows"),
        ("", "the trace is empty"),
        ("prompt_tokens,output_tokens\n1,1\n", "line 1: reused_blocks: is missing; the header must hold prompt_tokens"),
        ("{header}\n", "the trace has a header but no rows"),
        ("{header}\n0,1,0,0,0\n", "line 2: prompt_tokens: 0 is out of range: must be at least 1"),
        ("{header}\n9,0,0,0,0\n", "line 2: output_tokens: 0 is out of range: must be at least 1"),
        ("{header}\n32,1,2,0,0\n", "line 2: reused_blocks: 2 blocks of 16 leave nothing of a prompt of 32 tokens"),
        ("{header}\n99,1,2,0,2\n", "line 2: younger_blocks: 2 must be fewer than the 2 that are reused"),
        ("{header}\n99,1,0,0,1\n", "line 2: younger_blocks: 1 must be fewer than the 0 that are reused"),
        ("{header}\n99,1,1,-4,0\n", "line 2: distance_blocks: must be a whole number of at least 0, not '-4'"),
        ("{header}\n9999999999,1,1,1,0\n", "line 2: prompt_tokens: 9999999999 is out of range: must be at most"),
        ("{header}\n99,1,1,1\n", "line 2: has 4 columns, but the header has 5"),
    ],
)
def test_a_wrong_file_of_rows_is_one_line_before_anything_runs(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "rows.csv"
    if text is not None:
        path.write_text(text.format(header="prompt_tokens,output_tokens,reused_blocks,distance_blocks,younger_blocks"))
    with pytest.raises(ScenarioError) as caught:
        workload_of("prefix_reuse", rows={"path": str(path)})
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)
