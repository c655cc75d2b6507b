"""The oracle of SGLang's preset is right: it decides as the real engine did, at every step."""

from __future__ import annotations

import pytest

from llmsim.scenarios.log_comparison import first_difference
from llmsim.tests.support.golden import golden_case, golden_names
from llmsim.tests.support.plain_sglang import decision_log


def test_all_golden_cases_are_here() -> None:
    assert len(golden_names("sglang")) == 37


@pytest.mark.parametrize("name", golden_names("sglang"))
def test_the_plain_scheduler_decides_as_the_real_one(name: str) -> None:
    case = golden_case("sglang", name)
    lines = decision_log(case)
    assert first_difference(case["log"], lines) is None
    assert [list(line["batch"]) for line in lines] == [list(line["batch"]) for line in case["log"]], "another order"
