"""The next token, greedy or drawn, in plain torch (numbers as in `kernels.sampling.numbers`).

A NaN counts as the least likely logit there is. Top-k keeps what is at least as likely as the k-th in order; top-p, of
those, what is at least as likely as the one that completes the share: equals of the last one kept are kept too.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..sampling import numbers

FIRST_SORTED = 1024
"""So many of a row are sorted at first; all only where these do not tell what is kept."""

_U64 = 1 << 64
_POWERS = (numbers.POWER_5, numbers.POWER_4, numbers.POWER_3, numbers.POWER_2, numbers.POWER_1, numbers.POWER_0)


def greedy(logits: Tensor) -> Tensor:
    """The likeliest token of each row of logits [S, vocab]: [S] int64, the first of equals."""
    return _comparable(logits).argmax(dim=-1)


def sample(
    logits: Tensor, temperatures: Tensor, top_ks: Tensor, top_ps: Tensor, seeds: Tensor, positions: Tensor
) -> Tensor:
    """A token for each row of logits [S, vocab]: [S] int64; the other arguments are [S], as in the contract.

    Only rows with a temperature are sorted. Finding them waits for the device, if there is one.
    """
    tokens = greedy(logits)
    drawn = temperatures > 0
    if bool(drawn.any()):
        weights = kept_weights(logits[drawn], temperatures[drawn], top_ks[drawn], top_ps[drawn])
        tokens[drawn] = draw(weights, dice(seeds[drawn], positions[drawn]))
    return tokens


def kept_weights(logits: Tensor, temperatures: Tensor, top_ks: Tensor, top_ps: Tensor) -> Tensor:
    """Each token's weight [S, vocab] int64; 0 for what top-k and top-p leave out. Temperatures are positive."""
    values = _comparable(logits).float()
    weights = token_weights(values, values.amax(dim=-1), temperatures)
    floor, known = _floor(values, weights, temperatures, top_ks, top_ps, min(FIRST_SORTED, values.shape[-1]))
    if not bool(known.all()):
        floor, _ = _floor(values, weights, temperatures, top_ks, top_ps, values.shape[-1])
    return weights.masked_fill_(values < floor.unsqueeze(-1), 0)


def _floor(
    values: Tensor, weights: Tensor, temperatures: Tensor, top_ks: Tensor, top_ps: Tensor, num_sorted: int
) -> tuple[Tensor, Tensor]:
    """The smallest logit [S] that is kept, as the likeliest `num_sorted` tell; and whether they suffice to know it."""
    ordered = values.topk(num_sorted, dim=-1).values
    everything = num_sorted == values.shape[-1]
    has_k = (top_ks > 0) & (top_ks < values.shape[-1])
    last = torch.where(has_k, top_ks, num_sorted).clamp_(max=num_sorted).long().unsqueeze(-1) - 1
    top_k_floor = ordered.gather(-1, last)
    mass = token_weights(ordered, ordered[:, 0], temperatures).masked_fill_(ordered < top_k_floor, 0).cumsum_(-1)
    needed = _share(torch.where(has_k, mass[:, -1], weights.sum(dim=-1)), top_ps)
    enough = torch.searchsorted(mass, needed.unsqueeze(-1)).clamp_(max=num_sorted - 1)
    floor = ordered.gather(-1, enough).squeeze(-1)
    uncut = ~has_k & (top_ps >= 1.0)
    # Equals of the k-th may stand beyond what is sorted, unless its last is smaller.
    known = (ordered[:, -1] < top_k_floor.squeeze(-1)) | ~has_k
    return floor.masked_fill(uncut, float("-inf")), uncut | (known & (mass[:, -1] >= needed)) | everything


def token_weights(values: Tensor, largest: Tensor, temperatures: Tensor) -> Tensor:
    """The weights [S, n] int64 of fp32 logits [S, n], before anything is left out; `largest` [S] is the row's."""
    largest = largest.unsqueeze(-1)
    slope = (torch.full_like(temperatures, numbers.LOG2_E) / temperatures).unsqueeze(-1)
    exponent = torch.where(values == largest, 0.0, (values - largest) * slope).clamp_(min=numbers.LOWEST_EXPONENT)
    fixed = exponent.mul_(1 << numbers.FRACTION_BITS).long()
    fraction = (fixed & ((1 << numbers.FRACTION_BITS) - 1)) << (32 - numbers.FRACTION_BITS)
    power = torch.full_like(fraction, numbers.POWER_6)
    for coefficient in _POWERS:
        power.mul_(fraction).bitwise_right_shift_(32).add_(coefficient)
    halvings = (-(fixed >> numbers.FRACTION_BITS)).clamp_(max=63)
    return (power << (numbers.WEIGHT_BITS - numbers.POWER_BITS)) >> halvings


def draw(weights: Tensor, dice: Tensor) -> Tensor:
    """The token at the place that the dice [S] name in the row of weights [S, vocab], laid end to end."""
    ends = weights.cumsum(dim=-1)
    high, low = _halves(ends[:, -1])
    bits = numbers.SPLIT_BITS
    place = (high * dice + ((low * dice) >> bits)) >> (32 - bits)
    return torch.searchsorted(ends, place.unsqueeze(-1), right=True).squeeze(-1)


def dice(seeds: Tensor, positions: Tensor) -> Tensor:
    """32 random bits [S] int64 of each seed and position, both [S] int64."""
    gamma = _signed(numbers.GOLDEN_GAMMA)
    return _shifted(_mixed(_mixed(seeds + gamma) + gamma * (positions + 1)), 32)


def _share(total: Tensor, top_ps: Tensor) -> Tensor:
    """How much of a total weight top_p asks for; at least 1, so that the likeliest token is kept."""
    parts = (top_ps.clamp(0.0, 1.0) * (1 << numbers.SHARE_BITS)).long()
    high, low = _halves(total)
    bits = numbers.SPLIT_BITS
    whole = (high * parts) << (bits - numbers.SHARE_BITS)
    return (whole + ((low * parts) >> numbers.SHARE_BITS)).clamp_(min=1)


def _comparable(logits: Tensor) -> Tensor:
    """Logits with every NaN as the least likely."""
    return logits.masked_fill(logits.isnan(), float("-inf"))


def _halves(total: Tensor) -> tuple[Tensor, Tensor]:
    return total >> numbers.SPLIT_BITS, total & ((1 << numbers.SPLIT_BITS) - 1)


def _mixed(state: Tensor) -> Tensor:
    """SplitMix64's output function."""
    state = (state ^ _shifted(state, 30)) * _signed(numbers.MIX_1)
    state = (state ^ _shifted(state, 27)) * _signed(numbers.MIX_2)
    return state ^ _shifted(state, 31)


def _shifted(value: Tensor, bits: int) -> Tensor:
    """A right shift that brings in zeros; torch's brings in the sign."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    """The int64 of the same bits."""
    return value - _U64 if value >= _U64 // 2 else value
