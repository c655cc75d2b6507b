"""The next token, greedy or drawn, in plain torch (numbers as in `kernels.integer_sampling`).

A NaN counts as the least likely logit there is. Top-k keeps what is at least as likely as the k-th in order; top-p, of
those, what is at least as likely as the one that completes the share: equals of the last one kept are kept too.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .. import integer_sampling as numbers

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
    ordered = values.sort(dim=-1, descending=True).values
    vocab = values.shape[-1]
    last = torch.where((top_ks > 0) & (top_ks < vocab), top_ks, vocab).long().unsqueeze(-1) - 1
    top_k_floor = ordered.gather(-1, last)
    mass = token_weights(ordered, temperatures).masked_fill_(ordered < top_k_floor, 0).cumsum_(-1)
    needed = _share(mass[:, -1], top_ps)
    enough = torch.searchsorted(mass, needed.unsqueeze(-1))
    floor = ordered.gather(-1, enough)
    return token_weights(values, temperatures).masked_fill_(values < floor, 0)


def token_weights(values: Tensor, temperatures: Tensor) -> Tensor:
    """The weights [S, vocab] int64 of fp32 logits, before anything is left out."""
    largest = values.amax(dim=-1, keepdim=True)
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
