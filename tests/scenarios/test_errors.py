"""A user's mistake prints as one line."""

from __future__ import annotations

import pickle

from llmsim.scenarios.errors import ScenarioError


def test_error_is_one_line_with_file_place_and_message() -> None:
    error = ScenarioError("s.yaml", "run.seed", "-1 is\nout of range")
    assert str(error) == "s.yaml: run.seed: -1 is out of range"


def test_error_leaves_out_what_is_not_known() -> None:
    assert str(ScenarioError(None, None, "broken")) == "broken"


def test_error_survives_the_way_between_processes() -> None:
    error = ScenarioError("s.yaml", "run.seed", "wrong")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
