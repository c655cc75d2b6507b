"""What a header says beside its curves, in lines for people."""

from __future__ import annotations

from typing import Any

import pytest

from llmsim.calibrate.report import found_lines
from llmsim.sim.cost_model.profile_header import Residuals, SharedContexts, UnequalContexts
from llmsim.tests.support.profiles import table


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ({}, []),
        (
            {"residual": Residuals(decode_share=0.015, mixed_s=2e-3)},
            ["residual of steps beyond their kernels: decode +1.5%, mixed +2.000 ms"],
        ),
        (
            {"row_groups": {"qkv": (0.0, 1.5, 4.0)}},
            ["groups of rows (and what those left over cost at most): qkv 3 (4.0 us)"],
        ),
        (
            {"unequal_contexts": UnequalContexts(decode_alpha=0.25, mixed_alpha=0.8)},
            [
                "unequal contexts cost more: decodes 25.0% of longest - mean (not applied), "
                "beside a prefill 80.0% of longest - mean"
            ],
        ),
        (
            {"unequal_contexts": UnequalContexts(applied=True, decode_us=7, decode_each_us=0.5)},
            ["unequal contexts cost more: decodes 7.0 us a launch + 0.5 us a decode"],
        ),
        (
            {"shared_contexts": SharedContexts(alpha=0.4)},
            ["context in the same KV blocks costs 60% of the first reading again"],
        ),
    ],
)
def test_each_has_a_line_where_it_says_something(header: dict[str, Any], says: list[str]) -> None:
    assert found_lines(table(**header).header) == says
