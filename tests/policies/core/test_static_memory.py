"""SGLang's memory: a share for weights and KV together, in whole pages."""

from __future__ import annotations

from typing import Any

import pytest

from llmsim.policies.core import specs
from llmsim.policies.core.memory import NON_TORCH_BYTES, DoesNotFit, concurrency_note
from llmsim.policies.core.static_memory import static_memory_budget

LLAMA, H100 = specs.model("llama-3.1-8b"), specs.gpu("h100-sxm")
KV_BYTES = 131_072
LIMITS: dict[str, Any] = {"tensor_parallel": 1, "mem_fraction_static": 0.83, "page_size": 1}


def test_what_the_share_leaves_beside_the_weights_is_kv() -> None:
    budget = static_memory_budget(LLAMA, H100, **LIMITS)
    static = int(0.83 * (H100.memory_bytes - NON_TORCH_BYTES))
    assert budget.num_blocks == (static - LLAMA.weight_bytes()) // KV_BYTES
    parts = budget.weights_bytes + budget.kv_bytes + budget.activations_bytes + budget.buffers_bytes
    assert 0 <= budget.memory_bytes - parts < KV_BYTES


def test_the_pool_holds_whole_pages() -> None:
    tokens = static_memory_budget(LLAMA, H100, **LIMITS).num_blocks
    paged = static_memory_budget(LLAMA, H100, **LIMITS | {"page_size": 64})
    assert (paged.block_size, paged.num_blocks) == (64, tokens // 64)
    pinned = static_memory_budget(LLAMA, H100, **LIMITS | {"page_size": 64}, max_total_tokens=1000)
    assert pinned.num_blocks == 15


def test_a_pinned_pool_overrides_the_share_but_must_fit_the_memory() -> None:
    small = LIMITS | {"mem_fraction_static": 0.1}
    assert static_memory_budget(LLAMA, H100, **small, max_total_tokens=450_000).num_blocks == 450_000
    with pytest.raises(DoesNotFit, match=r"KV 85\.45 GiB \(700,000 tokens\) exceed 78\.95 GiB$"):
        static_memory_budget(LLAMA, H100, **LIMITS, max_total_tokens=700_000)


def test_a_model_larger_than_the_share_does_not_fit() -> None:
    with pytest.raises(
        DoesNotFit, match=r"weights 14\.96 GiB \+ KV 0\.00 GiB \(1 tokens\) exceed 7\.8. GiB \(0\.1 of "
    ):
        static_memory_budget(LLAMA, H100, **LIMITS | {"mem_fraction_static": 0.1})


def test_every_page_can_be_handed_out() -> None:
    budget = static_memory_budget(LLAMA, H100, **LIMITS, max_total_tokens=1000)
    assert concurrency_note(budget, 10, 100) is None
    assert concurrency_note(budget, 11, 100) is not None


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({"mem_fraction_static": 1.5}, "mem_fraction_static is 1.5"),
        ({"page_size": 0}, "page_size and KV bytes"),
        ({"page_size": 16, "max_total_tokens": 15}, "at least a page"),
        ({"tensor_parallel": 3}, "does not divide"),
    ],
)
def test_numbers_out_of_range_are_refused(limits: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        static_memory_budget(LLAMA, H100, **LIMITS | limits)
