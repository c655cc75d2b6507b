"""The oracle is right: it decides as the real engine did, at every step."""

from __future__ import annotations

import pytest

from llmsim.scenarios.log_comparison import first_difference
from llmsim.tests.support.golden import golden_case, golden_names
from llmsim.tests.support.plain_vllm import decision_log


def test_all_golden_cases_are_here() -> None:
    assert len(golden_names("vllm")) == 34


@pytest.mark.parametrize("name", golden_names("vllm"))
def test_the_plain_scheduler_decides_as_the_real_one(name: str) -> None:
    case = golden_case("vllm", name)
    assert first_difference(case["log"], decision_log(case)) is None
