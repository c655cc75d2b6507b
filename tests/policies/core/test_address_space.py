"""First fit over holes gives what a scan of a plain array of blocks gives."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.policies.core.address_space import AddressSpace


class PlainArray:
    """Blocks that are free or not, looked at one by one."""

    def __init__(self, first: int, end: int) -> None:
        self.first = first
        self.is_free = [True] * (end - first)

    def holes(self) -> list[range]:
        """The free stretches."""
        found, at = [], self.first
        for free, group in groupby(self.is_free):
            length = len(list(group))
            if free:
                found.append(range(at, at + length))
            at += length
        return found

    def mark(self, blocks: range, free: bool) -> None:
        """Blocks change hands."""
        for block in blocks:
            assert self.is_free[block - self.first] != free
            self.is_free[block - self.first] = free


@given(st.integers(0, 5), st.integers(1, 40), st.lists(st.tuples(st.integers(1, 12), st.integers(0, 99)), max_size=60))
def test_ranges_are_those_of_a_plain_scan(first: int, size: int, draws: list[tuple[int, int]]) -> None:
    space, plain = AddressSpace(first, first + size), PlainArray(first, first + size)
    held: list[range] = []
    for length, pick in draws:
        fitting = [hole for hole in plain.holes() if len(hole) >= length]
        assert (space.largest >= length) == bool(fitting)
        if fitting and (pick % 2 or not held):
            taken = space.take(length)
            assert taken == fitting[0][:length]
            plain.mark(taken, free=False)
            held.append(taken)
        elif held:
            gone = held.pop(pick % len(held))
            space.release(gone)
            plain.mark(gone, free=True)
        assert space.num_free == sum(plain.is_free)
        assert space.num_holes == len(plain.holes())
        space.check_integrity(held)
    for taken in held:
        space.release(taken)
    assert (space.num_free, space.num_holes, space.largest) == (size, 1, size)


def test_a_range_fits_though_a_later_hole_would_fit_tighter() -> None:
    space = AddressSpace(1, 31)
    a, b, c = space.take(10), space.take(10), space.take(4)
    space.take(6)
    space.release(a)
    space.release(c)
    assert space.take(4) == range(1, 5)
    assert space.largest == 6
    space.release(b)
    assert (space.num_holes, space.largest) == (1, 20)


def test_what_is_free_already_is_not_taken_back() -> None:
    space = AddressSpace(1, 31)
    taken = space.take(10)
    space.release(taken)
    with pytest.raises(AssertionError):
        space.release(taken)
