"""Times as people read them."""

from __future__ import annotations

from llmsim.sim.duration_text import duration_text


def test_times_are_written_for_people() -> None:
    assert [duration_text(s) for s in (0.00035, 0.0125, 2.1, 1234.5)] == [
        "350 µs",
        "12.5 ms",
        "2.1 s",
        "1,234 s",
    ]


def test_the_unit_is_that_of_the_rounded_time() -> None:
    assert [duration_text(s) for s in (0.0009996, 0.9996, 999.7)] == ["1 ms", "1 s", "1,000 s"]
