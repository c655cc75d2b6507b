"""Student's t against its published table, and the interval of a mean against its promise."""

from __future__ import annotations

import numpy as np
import pytest

from llmsim.sim.student_t import inside, mean_interval, student_t

TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 29: 2.045, 30: 2.042, 120: 1.980}


@pytest.mark.parametrize(("degrees", "t"), TABLE.items())
def test_quantiles_are_those_of_the_published_table(degrees: int, t: float) -> None:
    assert student_t(degrees) == pytest.approx(t, abs=5e-4)
    assert inside(student_t(degrees), degrees) == pytest.approx(0.95)


def test_other_confidences() -> None:
    assert student_t(2, 0.90) == pytest.approx(2.920, abs=5e-4)
    assert student_t(3, 0.99) == pytest.approx(5.841, abs=5e-4)


def test_the_interval_of_a_mean_covers_it_as_often_as_it_says() -> None:
    samples = np.random.default_rng(0).normal(3.0, 2.0, size=(4000, 4))
    intervals = [mean_interval(list(sample)) for sample in samples]
    covered = np.mean([low <= 3.0 <= high for low, high in filter(None, intervals)])
    assert covered == pytest.approx(0.95, abs=0.014)  # four standard deviations
    assert mean_interval([1.0, 3.0]) == pytest.approx([2 - 12.7062, 2 + 12.7062], abs=1e-4)
    assert mean_interval([5.0, 5.0, 5.0]) == [5.0, 5.0]
    assert mean_interval([1.0]) is None
