"""The comparison of logs says where they part, and is silent only if they agree."""

from __future__ import annotations

from llmsim.scenarios.log_comparison import first_difference

LINE = {"step": 4, "scheduled": {"a": 2}, "free_blocks": 3}


def test_equal_logs_have_no_difference() -> None:
    assert first_difference([LINE], [dict(LINE)]) is None


def test_a_difference_names_step_key_and_both_values() -> None:
    told = first_difference([LINE], [LINE | {"free_blocks": 5}])
    assert told == "step 4: free_blocks: want 3, got 5"


def test_only_the_keys_of_the_wanted_line_count() -> None:
    assert first_difference([LINE], [LINE | {"prefix_hits": 1}]) is None
    assert first_difference([LINE | {"prefix_hits": 1}], [LINE]) == "step 4: prefix_hits: want 1, got no such key"


def test_a_log_that_ends_early_or_late_differs() -> None:
    late = LINE | {"step": 7}
    assert first_difference([LINE, late], [LINE]) == "step 7: want 2 lines, the log ends after 1"
    assert first_difference([LINE], [LINE, late]) == "step 7: want 1 lines, the log goes on to 2"
