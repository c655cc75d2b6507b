"""The integers of `numbers` on the device: keys, weights, dice, and what is computed with totals."""

from __future__ import annotations

import triton
import triton.language as tl

from . import numbers

FRACTION_BITS = tl.constexpr(numbers.FRACTION_BITS)
FRACTION_ONE = tl.constexpr(1 << numbers.FRACTION_BITS)
FRACTION_MASK = tl.constexpr((1 << numbers.FRACTION_BITS) - 1)
FRACTION_SHIFT = tl.constexpr(32 - numbers.FRACTION_BITS)
LOWEST_EXPONENT = tl.constexpr(numbers.LOWEST_EXPONENT)
LOG2_E = tl.constexpr(numbers.LOG2_E)
POWER_0 = tl.constexpr(numbers.POWER_0)
POWER_1 = tl.constexpr(numbers.POWER_1)
POWER_2 = tl.constexpr(numbers.POWER_2)
POWER_3 = tl.constexpr(numbers.POWER_3)
POWER_4 = tl.constexpr(numbers.POWER_4)
POWER_5 = tl.constexpr(numbers.POWER_5)
POWER_6 = tl.constexpr(numbers.POWER_6)
RAISED_BITS = tl.constexpr(numbers.WEIGHT_BITS - numbers.POWER_BITS)
GOLDEN_GAMMA = tl.constexpr(numbers.GOLDEN_GAMMA)
MIX_1 = tl.constexpr(numbers.MIX_1)
MIX_2 = tl.constexpr(numbers.MIX_2)
SHARE_BITS = tl.constexpr(numbers.SHARE_BITS)
SHARE_ONE = tl.constexpr(1 << numbers.SHARE_BITS)
SHARE_SHIFT = tl.constexpr(numbers.SPLIT_BITS - numbers.SHARE_BITS)
SPLIT_BITS = tl.constexpr(numbers.SPLIT_BITS)
SPLIT_MASK = tl.constexpr((1 << numbers.SPLIT_BITS) - 1)
PLACE_SHIFT = tl.constexpr(32 - numbers.SPLIT_BITS)
LARGEST_KEY = tl.constexpr(2**31 - 1)


@triton.jit
def key_of(logits):
    """Integers in the order of fp32 numbers (none of which is -0 or NaN)."""
    bits = logits.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & LARGEST_KEY)


@triton.jit
def weights_of(logits, largest, slope):
    """Each token's weight in int64; slope is log2(e) / temperature."""
    exponent = tl.where(logits == largest, 0.0, (logits - largest) * slope)
    fixed = (tl.maximum(exponent, LOWEST_EXPONENT) * FRACTION_ONE).to(tl.int32)
    fraction = ((fixed & FRACTION_MASK) << FRACTION_SHIFT).to(tl.uint32, bitcast=True)
    power = tl.full(fraction.shape, POWER_6, tl.uint32)
    power = tl.umulhi(power, fraction) + POWER_5
    power = tl.umulhi(power, fraction) + POWER_4
    power = tl.umulhi(power, fraction) + POWER_3
    power = tl.umulhi(power, fraction) + POWER_2
    power = tl.umulhi(power, fraction) + POWER_1
    power = tl.umulhi(power, fraction) + POWER_0
    halvings = tl.minimum(-(fixed >> FRACTION_BITS), 63)
    return (power.to(tl.int64) << RAISED_BITS) >> halvings.to(tl.int64)


@triton.jit
def _mixed(state):
    state = (state ^ (state >> 30)) * MIX_1
    state = (state ^ (state >> 27)) * MIX_2
    return state ^ (state >> 31)


@triton.jit
def dice_of(seed, position):
    """32 random bits, in int64."""
    state = _mixed(seed.to(tl.uint64) + GOLDEN_GAMMA)
    return (_mixed(state + GOLDEN_GAMMA * (position + 1).to(tl.uint64)) >> 32).to(tl.int64)


@triton.jit
def share_of(total, top_p):
    """How much of a total weight top_p asks for, at least 1."""
    parts = (tl.minimum(tl.maximum(top_p, 0.0), 1.0) * SHARE_ONE).to(tl.int64)
    high = (total >> SPLIT_BITS) * parts
    low = (total & SPLIT_MASK) * parts
    return tl.maximum((high << SHARE_SHIFT) + (low >> SHARE_BITS), 1)


@triton.jit
def place_of(total, dice):
    """The place that the dice name in a row of weights with this total, laid end to end."""
    high = (total >> SPLIT_BITS) * dice
    low = (total & SPLIT_MASK) * dice
    return (high + (low >> SPLIT_BITS)) >> PLACE_SHIFT
