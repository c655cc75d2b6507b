"""The numbers by which every backend draws the very same token: probabilities and dice as integers.

Floating-point sums depend on their order, and exponentials on who computes them; integers on neither. So a token's
weight is an integer, `2^40 * 2^y` with `y = (logit - largest logit) * log2(e) / temperature <= 0`, built from IEEE
subtraction, division and multiplication and then integers alone:

    Y         y in units of 2^-24, rounded towards 0; below -100 it is -100
    2^Y       2^floor(Y) * p(Y - floor(Y)), p a polynomial of degree 6 by Horner's scheme on integers
    p         exact at 0 and 1 (to 2^-30), elsewhere off by < 1e-8 of its value, and monotone

A token 2^40 times less likely than the likeliest has the weight 0. Sums of 2^18 weights stay below 2^58.

The dice of a row is a function of its seed and position: the output function of SplitMix64 (Steele, Lea and Flood 2014,
"Fast splittable pseudorandom number generators") over a counter, its upper 32 bits. A probability is therefore met to
2^-32.
"""

from __future__ import annotations

FRACTION_BITS = 24
LOWEST_EXPONENT = -100.0
LOG2_E = 1.4426950408889634

POWER_BITS = 30
"""The polynomial's coefficients and values are in units of 2^-30."""
POWER_0 = 1073741824
POWER_1 = 744261073
POWER_2 = 257943498
POWER_3 = 59577491
POWER_4 = 10392321
POWER_5 = 1332281
POWER_6 = 235159

WEIGHT_BITS = 40

GOLDEN_GAMMA = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB

SHARE_BITS = 24
"""top_p is cut to a multiple of 2^-24."""
SPLIT_BITS = 29
"""Products with a total of < 2^58 are taken of its halves of 29 bits, so that they fit 64 bits."""
