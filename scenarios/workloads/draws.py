"""Random draws that belong to (seed, purpose, request): drawing one thing never moves another.

Each purpose has a stream of its own (Philox, keyed by seed and purpose) with one draw a request, so the
i-th request gets the same arrival, tenant or length whatever else is drawn, and in whatever order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt

_CHUNK = 4096  # drawn at once for speed; no draw depends on it


def generator(seed: int, purpose: str) -> np.random.Generator:
    """The stream of one purpose; the same in every process."""
    digest = hashlib.sha256(purpose.encode()).digest()
    key = np.random.SeedSequence(seed, spawn_key=(int.from_bytes(digest[:8], "big"),))
    return np.random.Generator(np.random.Philox(key))


def exponentials(seed: int, purpose: str) -> Iterator[float]:
    """Draws of mean 1, without end."""
    stream = generator(seed, purpose)
    while True:
        yield from stream.standard_exponential(_CHUNK).tolist()


def log_normals(seed: int, purpose: str, mean: float, cv: float) -> Iterator[float]:
    """Log-normal draws of the given mean and coefficient of variation, without end.

    With s^2 = ln(1 + cv^2), exp(N(ln mean - s^2 / 2, s^2)) has that mean and CV.
    """
    stream = generator(seed, purpose)
    variance = float(np.log1p(cv * cv))
    location, scale = float(np.log(mean)) - variance / 2, variance**0.5
    while True:
        yield from np.exp(location + scale * stream.standard_normal(_CHUNK)).tolist()


def zipf_ranks(seed: int, purpose: str, num_ranks: int, exponent: float) -> Iterator[int]:
    """Ranks from 0, without end: rank k - 1 has a probability proportional to 1 / k^exponent."""
    return weighted(seed, purpose, np.arange(1, num_ranks + 1, dtype=np.float64) ** -exponent)


def weighted(seed: int, purpose: str, weights: npt.ArrayLike) -> Iterator[int]:
    """Indices, without end, with probabilities proportional to `weights`."""
    stream = generator(seed, purpose)
    shares = np.asarray(weights, dtype=np.float64)
    bounds = np.cumsum(shares)[:-1] / shares.sum()  # a draw above the last bound is the last index
    while True:
        yield from np.searchsorted(bounds, stream.random(_CHUNK), side="right").tolist()


def gammas(seed: int, purpose: str, shape: float) -> Iterator[float]:
    """Draws of mean 1 and coefficient of variation 1 / sqrt(shape), without end."""
    stream = generator(seed, purpose)
    while True:
        yield from (stream.standard_gamma(shape, _CHUNK) / shape).tolist()


def whole_numbers(seed: int, purpose: str, lowest: int, highest: int) -> Iterator[int]:
    """Whole numbers from `lowest` to `highest`, both included, equally often and without end."""
    stream = generator(seed, purpose)
    while True:
        yield from stream.integers(lowest, highest, _CHUNK, endpoint=True).tolist()


def picks(seed: int, purpose: str, values: npt.NDArray[np.int64]) -> Iterator[int]:
    """Values, each place of the array equally often, without end."""
    return (int(values[place]) for place in whole_numbers(seed, purpose, 0, len(values) - 1))


def orders(seed: int, purpose: str, num_things: int, shuffled: bool) -> Iterator[list[int]]:
    """Orders of so many things, without end: at random, or always as they are."""
    stream = generator(seed, purpose)
    while True:
        yield stream.permutation(num_things).tolist() if shuffled else list(range(num_things))


def rounds(seed: int, purpose: str, num_things: int) -> Iterator[int]:
    """Things by number, without end: all of them in an order of chance, then all of them in another."""
    return chain.from_iterable(orders(seed, purpose, num_things, shuffled=True))


def derived_seed(seed: int, purpose: str) -> int:
    """A seed whose streams have nothing to do with those of `seed`."""
    return int(generator(seed, purpose).integers(2**63))
