"""The table of docs/cost-model.md is what the model predicts today, errors and all."""

from __future__ import annotations

import pytest

from llmsim.tests.benchmarks.measured_figures import (
    RECORDED,
    Figure,
    decode_line,
    figures,
    kv_pools,
    table,
    two_gpus,
    under_load,
)
from llmsim.tests.support.shared import shared
from llmsim.tests.support.tree import ROOT

DOCUMENT = (ROOT / "docs" / "cost-model.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("part", [decode_line, under_load, two_gpus, kv_pools])
def test_every_row_of_the_document_is_what_is_predicted_today(part):
    rows = [figure.row() for figure in part()]
    assert rows
    assert [row for row in rows if row not in DOCUMENT] == []


def test_the_document_holds_the_whole_table_with_the_recorded_runs():
    for name in RECORDED.values():
        shared("measured", name)
    assert f"\n\n{table(figures())}\n\n" in DOCUMENT


def test_a_row_shows_the_error_with_its_sign():
    assert Figure("x", "ms", 2.0, 1.5).row() == "| x | 2 ms | 1.5 ms | -25.0 % |"
    assert Figure("x", "tokens", 1000, 1100).row() == "| x | 1,000 tokens | 1,100 tokens | +10.0 % |"
