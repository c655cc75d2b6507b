"""What decodes save that have context in the same blocks, found in pairs of whole steps."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from llmsim.calibrate.fit import fit
from llmsim.calibrate.report import shared_line
from llmsim.calibrate.shared import fit_shared
from llmsim.calibrate.whole_steps import STEPS, WholeStep, model_of, read_steps, steps_csv
from llmsim.calibrate.writing import write_zipped
from llmsim.policies.core.estimator import StepShape
from llmsim.sim.cost_model.profile_header import SharedContexts
from llmsim.tests.support.profiles import TINY, fitted, table


def pairs(alpha: float, slower: float = 1.0) -> list[WholeStep]:
    """Steps with and without blocks in common, priced with such a coefficient; all of them `slower` than that."""
    made = fitted()
    header = made.header.model_copy(update={"shared_contexts": SharedContexts(alpha=alpha)})
    model = model_of(replace(made, header=header), TINY.num_layers)
    alone = [StepShape([], n, n * context, context, n) for n, context in product((4, 9, 33), (100, 700, 3000))]
    shared = [shape._replace(shared_tokens=shape.max_decode_context // 2 * (shape.num_decodes - 1)) for shape in alone]
    return [
        WholeStep(TINY.num_layers, shape, slower * model.step_cost(shape).device_ns / 1e3, 5, 1.0)
        for shape in (*alone, *shared)
    ]


@pytest.mark.parametrize("alpha", [0.0, 0.35, 1.0])
def test_the_coefficient_is_found(alpha: float) -> None:
    found, errors = fit_shared(fitted(), pairs(alpha))
    assert found.alpha == pytest.approx(alpha, abs=1e-3)
    assert errors is not None
    assert errors[1] < 1e-4
    assert errors[0] > 0.01 or not alpha


def test_a_slow_hour_slows_both_of_a_pair() -> None:
    assert fit_shared(fitted(), pairs(0.35, slower=1.2))[0].alpha == pytest.approx(0.35, abs=0.01)


def test_blocks_in_common_are_never_taken_to_cost_more() -> None:
    steps = [step._replace(time_us=step.time_us * (1.1 if step.shape.shared_tokens else 1)) for step in pairs(0.0)]
    assert fit_shared(fitted(), steps)[0].alpha == 0


def test_few_pairs_and_steps_without_their_like_say_nothing() -> None:
    steps = pairs(0.35)
    assert fit_shared(fitted(), [*steps[:3], *steps[9:]]) == (SharedContexts(), None)


def test_a_fit_finds_it_beside_a_residual_and_says_how_much_it_helps(tmp_path: Path) -> None:
    steps = [step._replace(time_us=step.time_us + 300) for step in pairs(0.35)]
    write_zipped(tmp_path / STEPS, steps_csv(steps))
    found = fit(table(), steps=read_steps(tmp_path)).header
    assert found.shared_contexts.alpha == pytest.approx(0.35, abs=0.05)
    assert found.residual.decode_s == pytest.approx(300e-6, rel=0.3)
    assert found.fit is not None
    assert found.fit.shared_contexts_error is not None
    before, after = found.fit.shared_contexts_error
    assert after < before / 3
    assert str(shared_line(found)).startswith("context in the same KV blocks costs 6")
    again = fit(replace(table(), header=table().header.model_copy(update={"shared_contexts": found.shared_contexts})))
    assert again.header.shared_contexts == found.shared_contexts


def test_what_helps_no_pair_that_is_left_out_is_not_applied() -> None:
    """One pair alone says that sharing saves something, the others that it costs."""
    *others, last = pairs(0.0)
    steps = [step._replace(time_us=step.time_us * (1.03 if step.shape.shared_tokens else 1)) for step in others]
    found, errors = fit_shared(fitted(), [*steps, last._replace(time_us=last.time_us * 0.95)])
    assert found.alpha == 0
    assert errors is not None
    assert errors[0] == errors[1] == pytest.approx((8 * 0.03 + 0.05) / 9, abs=1e-3)
