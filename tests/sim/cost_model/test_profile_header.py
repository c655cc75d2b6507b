"""A profile's header: what is wrong with it is told by its key, in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from llmsim.sim.cost_model.header_parts import LinearLayer
from llmsim.sim.cost_model.profile import HEADER, read_header
from llmsim.sim.cost_model.tile_curve import GEMMS
from llmsim.sim.cost_model.timings import ProfileError
from llmsim.tests.support.profiles import fitted

NAN, ENDLESS = float("nan"), float("inf")
IN_GROUPS = {"tiles": {}, "threads": 1, "row_groups": {"qkv": [0, 1.5, 2]}}
NO_THREADS = "row_groups: Value error, only a CPU's rows are multiplied in groups, and the header names no threads"


def written(folder: Path, **changes: Any) -> Path:
    """A whole header with some keys changed."""
    path = folder / HEADER
    path.write_text(yaml.safe_dump(fitted().header.model_dump(mode="json") | changes))
    return path


def test_a_header_comes_back_from_its_file(tmp_path: Path) -> None:
    header = read_header(written(tmp_path, **IN_GROUPS, shared_contexts={"alpha": 0.4}))
    assert header.row_groups == {"qkv": (0.0, 1.5, 2.0)}
    assert header.shared_contexts.alpha == 0.4
    assert set(get_args(LinearLayer)) == set(GEMMS)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"row_groups": {"qkv": [0, ENDLESS]}}, "row_groups.qkv.1: Input should be a finite number"),
        ({"row_groups": {"qkv": [0, -1]}}, "row_groups.qkv.1: Input should be greater than or equal to 0"),
        ({"row_groups": {"qkv": [0]}}, "row_groups.qkv: Tuple should have at least 2 items"),
        (
            {"row_groups": {"qkv": [5, 1]}},
            "row_groups.qkv: Value error, the first is of no rows left over, and must be 0",
        ),
        ({"row_groups": {"norm": [0, 1]}}, "row_groups.norm"),
        ({"shared_contexts": {"alpha": 1.5}}, "shared_contexts.alpha: Input should be less than or equal to 1"),
        ({"shared_contexts": {"alpha": NAN}}, "shared_contexts.alpha: Input should be"),
        ({"row_groups": {"qkv": [0, 1e300]}}, "row_groups.qkv.1: Input should be less than or equal to 60000000"),
        ({**IN_GROUPS, "threads": None}, NO_THREADS),
        ({**IN_GROUPS, "tiles": {"qkv": 64}}, "row_groups: Value error, qkv has tiles as well; a layer has one of"),
        ({"tiles": {"norm": 64}}, "tiles.norm"),
        ({"tiles": {"qkv": 10**40}}, "tiles.qkv: Input should be less than or equal to 1000000000"),
        ({"model": {"name": "m", "hidden_size": 10**400}}, "model.hidden_size: Input should be less than or equal"),
        ({"attention": {"shared_us": 1e300}}, "attention.shared_us: Input should be less than or equal to 60000000"),
        ({"residual": {"decode_share": 1e300}}, "residual.decode_share: Input should be less than or equal to 10"),
        ({"residual": {"mixed_share": ENDLESS}}, "residual.mixed_share: Input should be"),
        ({"unequal_contexts": {"decode_alpha": NAN}}, "unequal_contexts.decode_alpha: Input should be"),
        ({"unequal_contexts": {"decode_alpha": 1.1}}, "unequal_contexts.decode_alpha: Input should be less than or"),
        ({"unequal_contexts": {"mixed_alpha": -0.1}}, "unequal_contexts.mixed_alpha: Input should be greater than or"),
        ({"unequal_contexts": {"decode_us": 1e300}}, "unequal_contexts.decode_us: Input should be less than or"),
        ({"unequal_contexts": {"decode_each_us": ENDLESS}}, "unequal_contexts.decode_each_us: Input should be"),
    ],
)
def test_what_cannot_be_is_told_by_its_key(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ProfileError) as raised:
        read_header(written(tmp_path, **changes))
    assert f"{HEADER}: {says}" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("key", ["unequal_contexts_error", "shared_contexts_error"])
def test_errors_of_a_fit_are_finite(tmp_path: Path, key: str) -> None:
    found = fitted().header.fit
    assert found is not None
    raw = found.model_dump(mode="json")
    with pytest.raises(ProfileError, match=f"fit.{key}.1: Input should be a finite number"):
        read_header(written(tmp_path, fit={**raw, key: [0.1, ENDLESS]}))
    with pytest.raises(ProfileError, match=r"fit\.held_out\.p95: Input should be"):
        read_header(written(tmp_path, fit={**raw, "held_out": {"points": 5, "median": 0.1, "p95": NAN}}))
