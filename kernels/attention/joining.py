"""Parts of one attention, each over some of the keys, joined into one: shared by both attention kernels.

A part is the weighted sum of values [D], the highest score that its weights are relative to (-inf: it saw no key), and
the sum of the weights, all fp32. Keeping the latter two apart, rather than the logarithm of the sum of exponentials,
rounds no digits away.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def joined(total_ptr, highest_ptr, weight_ptr, slot, step, count, scale_log2, D: tl.constexpr, SLOTS: tl.constexpr):
    """The attention [D] of which `count` parts stand at `slot`, `slot + step`, ...; `SLOTS` are read at once.

    Scores times `scale_log2` are logarithms to base 2.
    """
    dim = tl.arange(0, D)[None, :]
    highest = tl.full([SLOTS], float("-inf"), tl.float32)
    weights = tl.zeros([SLOTS], tl.float32)
    total = tl.zeros([SLOTS, D], tl.float32)
    for start in range(0, count, SLOTS):
        part = start + tl.arange(0, SLOTS)
        place = slot + part.to(tl.int64) * step
        part_highest = tl.load(highest_ptr + place, mask=part < count, other=float("-inf"))
        is_part = part_highest > float("-inf")
        part_weight = tl.load(weight_ptr + place, mask=is_part, other=0.0)
        part_total = tl.load(total_ptr + place[:, None] * D + dim, mask=is_part[:, None], other=0.0)
        # Lane by lane, joined after the loop; a lane may have seen nothing yet.
        higher = tl.maximum(highest, part_highest)
        safe = tl.where(higher == float("-inf"), 0.0, higher)
        shrink = tl.exp2((highest - safe) * scale_log2)
        part_shrink = tl.exp2((part_highest - safe) * scale_log2)
        weights = weights * shrink + part_weight * part_shrink
        total = total * shrink[:, None] + part_total * part_shrink[:, None]
        highest = higher
    shrink = tl.exp2((highest - tl.max(highest, 0)) * scale_log2)
    return tl.sum(total * shrink[:, None], 0) / tl.sum(weights * shrink, 0)
