"""A specification becomes a policy, or one line says what is wrong with it."""

from __future__ import annotations

from math import inf, nan
from typing import Any, Literal

import pytest

from llmsim.policies import registry
from llmsim.policies.chunk_size.fixed import Fixed
from llmsim.policies.chunk_size.unlimited import Unlimited
from llmsim.policies.core.config import Policies
from llmsim.policies.registry import KINDS, PolicyError, create, policies, register
from llmsim.tests.support.driven_core import VLLM

EVICTIONS = "cost_aware, fifo, filo, length_aware, lfu, lru, mru, priority, random, slru"


@pytest.fixture(autouse=True)
def _known_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    for kind in KINDS:
        policies(kind)
    monkeypatch.setattr(registry, "_classes", {kind: dict(known) for kind, known in registry._classes.items()})


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("batching", {"static", "unified"}),
        ("scheduling", {"fcfs", "priority"}),
        ("preemption", {"least_urgent", "newest"}),
        ("chunk_size", {"fixed", "threshold", "unlimited"}),
        ("eviction", set(EVICTIONS.split(", "))),
    ],
)
def test_every_policy_of_the_house_is_known_in_alphabetical_order(kind: str, names: set[str]) -> None:
    assert names <= set(policies(kind))
    assert list(policies(kind)) == sorted(policies(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_every_policy_says_in_one_sentence_what_it_does(kind: str) -> None:
    assert [name for name, policy in policies(kind).items() if "." not in (policy.__doc__ or "")] == []


def test_a_specification_becomes_a_policy_with_its_parameters() -> None:
    policy = create("chunk_size", {"name": "fixed", "tokens": 7})
    assert isinstance(policy, Fixed)
    assert policy.tokens == 7


def test_each_specification_becomes_a_policy_of_its_own() -> None:
    assert Policies.of(VLLM).eviction is not Policies.of(VLLM).eviction


@pytest.mark.parametrize(
    ("kind", "spec", "key", "message"),
    [
        ("eviction", {"name": "lur"}, "name", f"'lur' is unknown; choose {EVICTIONS}"),
        ("eviction", {"name": "./mine.py"}, "name", "'./mine.py' names a file without a class; write ./mine.py:Class"),
        ("eviction", {}, "name", f"None is unknown; choose {EVICTIONS}"),
        ("eviction", {"name": 3}, "name", f"3 is unknown; choose {EVICTIONS}"),
        ("eviction", {"name": ["lru"]}, "name", f"['lru'] is unknown; choose {EVICTIONS}"),
        ("eviction", {"name": "lru", "size": 3}, "size", "lru has no such parameter; it takes no parameters"),
        (
            "chunk_size",
            {"name": "fixed", "token": 3},
            "token",
            "fixed has no such parameter; it takes tokens",
        ),
        ("chunk_size", {"name": "fixed"}, "tokens", "is missing; fixed needs it"),
        ("chunk_size", {"name": "fixed", "tokens": "8"}, "tokens", "'8' is not of type int"),
        ("chunk_size", {"name": "fixed", "tokens": 8.0}, "tokens", "8.0 is not of type int"),
        ("chunk_size", {"name": "fixed", "tokens": None}, "tokens", "None is not of type int"),
        ("chunk_size", {"name": "fixed", "tokens": True}, "tokens", "True is not of type int"),
        ("chunk_size", {"name": "fixed", "tokens": 0}, "tokens", "0 is out of range; at least 1"),
        ("eviction", {"name": "random", "lifetime": inf}, "lifetime", "must be a finite number, not inf"),
        (
            "batching",
            {"name": "prefill_first", "conservativeness": nan},
            "conservativeness",
            "must be a finite number, not nan",
        ),
        ("scheduling", {"name": "priority", "by": "age"}, "by", "'age' is unknown; choose arrival, entry"),
        ("chunk_size", {"name": "threshold", "tokens": -1}, "tokens", "-1 is out of range; at least 1"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(kind: str, spec: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        create(kind, spec)
    assert (caught.value.key, str(caught.value)) == (key, message)
    with pytest.raises(PolicyError):
        registry.check(kind, spec)


def test_a_number_without_a_point_serves_where_one_with_a_point_is_asked_for() -> None:
    @register("chunk_size", "scaled")
    class Scaled(Unlimited):
        """Takes a factor."""

        def __init__(self, factor: float) -> None:
            self.factor = factor

    assert create("chunk_size", {"name": "scaled", "factor": 2}).factor == 2
    with pytest.raises(PolicyError, match="True is not of type float"):
        create("chunk_size", {"name": "scaled", "factor": True})


def test_a_parameter_that_may_be_left_out_keeps_its_default() -> None:
    @register("chunk_size", "optional")
    class Optional(Unlimited):
        """Takes a limit, or none."""

        def __init__(self, tokens: int | None = None) -> None:
            self.tokens = tokens

    assert create("chunk_size", {"name": "optional"}).tokens is None
    assert create("chunk_size", {"name": "optional", "tokens": 4}).tokens == 4
    assert create("chunk_size", {"name": "optional", "tokens": None}).tokens is None
    for wrong in (True, 1.5, "4"):
        with pytest.raises(PolicyError, match=r"is not of type int \| None"):
            create("chunk_size", {"name": "optional", "tokens": wrong})


def test_a_parameter_without_a_type_takes_anything() -> None:
    @register("chunk_size", "untyped")
    class Untyped(Unlimited):
        """Takes whatever it is given."""

        def __init__(self, tokens) -> None:  # type: ignore[no-untyped-def]
            self.tokens = tokens

    assert create("chunk_size", {"name": "untyped", "tokens": "many"}).tokens == "many"


def test_a_parameter_with_choices_takes_these_alone() -> None:
    @register("chunk_size", "choosy")
    class Choosy(Unlimited):
        """Takes one of two words."""

        def __init__(self, unit: Literal["tokens", "blocks"] = "tokens") -> None:
            self.unit = unit

    assert create("chunk_size", {"name": "choosy", "unit": "blocks"}).unit == "blocks"
    with pytest.raises(PolicyError, match="'steps' is unknown; choose tokens, blocks"):
        create("chunk_size", {"name": "choosy", "unit": "steps"})


def test_a_list_parameter_takes_lists() -> None:
    @register("chunk_size", "listed")
    class Listed(Unlimited):
        """Takes a list."""

        def __init__(self, tokens: list[int]) -> None:
            self.tokens = tokens

    assert create("chunk_size", {"name": "listed", "tokens": [1, 2]}).tokens == [1, 2]
    with pytest.raises(PolicyError, match=r"is not of type list\[int\]"):
        create("chunk_size", {"name": "listed", "tokens": 4})


def test_an_error_of_a_policy_that_names_no_parameter_stands_for_the_whole() -> None:
    @register("chunk_size", "moody")
    class Moody(Unlimited):
        """Never works."""

        def __init__(self) -> None:
            raise ValueError("not today: really")

    with pytest.raises(PolicyError) as caught:
        create("chunk_size", {"name": "moody"})
    assert (caught.value.key, str(caught.value)) == ("name", "not today: really")


def test_two_policies_of_one_name_assert() -> None:
    with pytest.raises(AssertionError, match="two eviction policies: lru"):

        @register("eviction", "lru")
        class Mine:
            """Another one."""
