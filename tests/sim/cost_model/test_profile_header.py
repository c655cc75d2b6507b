"""A profile's header: what is wrong with it is told by its key, in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from llmsim.sim.cost_model.profile import HEADER, read_header
from llmsim.sim.cost_model.profile_header import LinearLayer
from llmsim.sim.cost_model.tile_curve import GEMMS
from llmsim.sim.cost_model.timings import ProfileError
from llmsim.tests.support.profiles import fitted


def written(folder: Path, **changes: Any) -> Path:
    """A whole header with some keys changed."""
    path = folder / HEADER
    path.write_text(yaml.safe_dump(fitted().header.model_dump(mode="json") | changes))
    return path


def test_a_header_comes_back_from_its_file(tmp_path: Path) -> None:
    header = read_header(written(tmp_path, row_groups={"qkv": [0, 1.5, 2]}, shared_contexts={"alpha": 0.4}))
    assert header.row_groups == {"qkv": (0.0, 1.5, 2.0)}
    assert header.shared_contexts.alpha == 0.4
    assert set(get_args(LinearLayer)) == set(GEMMS)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"row_groups": {"qkv": [0, float("inf")]}}, "row_groups.qkv.1: Input should be a finite number"),
        ({"row_groups": {"qkv": [0, -1]}}, "row_groups.qkv.1: Input should be greater than or equal to 0"),
        ({"row_groups": {"qkv": [0]}}, "row_groups.qkv: Tuple should have at least 2 items"),
        (
            {"row_groups": {"qkv": [5, 1]}},
            "row_groups.qkv: Value error, the first is of no rows left over, and must be 0",
        ),
        ({"row_groups": {"norm": [0, 1]}}, "row_groups.norm"),
        ({"shared_contexts": {"alpha": 1.5}}, "shared_contexts.alpha: Input should be less than or equal to 1"),
        ({"shared_contexts": {"alpha": float("nan")}}, "shared_contexts.alpha: Input should be"),
    ],
)
def test_what_cannot_be_is_told_by_its_key(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ProfileError) as raised:
        read_header(written(tmp_path, **changes))
    assert f"{HEADER}: {says}" in str(raised.value)
    assert "\n" not in str(raised.value)
