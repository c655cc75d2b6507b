"""A scenario whose preempted requests are swapped to the host: what must be there for it, and what a run tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.run import run_into
from llmsim.scenarios.tables import swap_sentence

SCENARIO = """
name: s
model: llama-3.1-8b
hardware: {gpu: h100-sxm}
engine: {num_gpu_blocks_override: 300, swap_space_gib: 1}
policies: {preemption: {name: newest, mode: swap}}
workload: {type: independent, rate: inf, requests: 20, prompt_tokens: 300, output_tokens: 300}
"""
SHEET = "{name: mine, memory_gib: 80, bandwidth_gb_s: 3000, bf16_tflop_s: 900}"


def load(folder: Path, *overrides: str) -> Any:
    (folder / "s.yaml").write_text(SCENARIO)
    return assemble(load_scenario(folder / "s.yaml", overrides))


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["engine.swap_space_gib=null"], "policies.preemption.mode: 'swap' needs host memory: give engine.swap_space"),
        (["engine.swap_space_gib=1e-6"], "engine.swap_space_gib: 1e-06 holds no KV block, which takes 2,097,152 bytes"),
        (["engine.swap_space_gib=0"], "engine.swap_space_gib: 0 is out of range: must be above 0"),
        (["engine.swap_space_gib=-4"], "engine.swap_space_gib: -4 is out of range: must be above 0"),
        (["policies.preemption={name: newest}"], "engine.swap_space_gib: nothing is swapped there; policies.preemp"),
        (["policies.preemption.mode=swop"], "policies.preemption.mode: 'swop' is unknown; choose recompute, swap"),
        (["policies.preemption.mode=null"], "policies.preemption.mode: None is unknown; choose recompute, swap"),
        (["hardware.gpu=./gpu.yaml"], "hardware.gpu: mine has no link to host memory in its data sheet: host_link_gb"),
        (["engine={preset: sglang, swap_space_gib: 1}"], "engine.swap_space_gib: is a key of the vllm preset; SGLang"),
        (["engine={preset: sglang}"], "policies.preemption.mode: 'swap' does not go with batching 'prefill_first'"),
        (["policies.batching.name=prefill_first"], "policies.preemption.mode: 'swap' does not go with batching 'pref"),
        (["engine.kv_reservation=contiguous"], "policies.preemption.mode: 'swap' has nothing to do with engine.kv_res"),
        (["engine.swap_space=4"], "engine.swap_space: is vLLM V0's; here it is swap_space_gib"),
    ],
)
def test_what_does_not_go_together_is_one_line(tmp_path: Path, overrides: list[str], says: str) -> None:
    (tmp_path / "gpu.yaml").write_text(SHEET)
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, *overrides)
    assert str(caught.value).startswith(f"{tmp_path}/s.yaml: {says}")
    assert "\n" not in str(caught.value)


MINE = """
from llmsim.policies.preemption.newest import Newest


class Mine(Newest):
    def __init__(self, how: str = "swap"):
        super().__init__()
        self.mode = how
"""


def test_a_policy_of_ones_own_may_swap(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    assembly = load(tmp_path, "policies.preemption={name: './mine.py:Mine'}")
    assert run_into(assembly, tmp_path / "out", warn=print)["swaps"]["num_out"] > 0
    with pytest.raises(
        ScenarioError, match=r"name: '\./mine\.py:Mine' has the mode 'swop'; it must be recompute or swap"
    ):
        load(tmp_path, "policies.preemption={name: './mine.py:Mine', how: swop}")


def test_recomputing_on_purpose_may_have_host_memory_beside_it(tmp_path: Path) -> None:
    assembly = load(tmp_path, "policies.preemption.mode=recompute")
    assert assembly.host_link is None
    assert "swaps" not in run_into(assembly, tmp_path / "out", warn=print)


def test_host_memory_and_bytes_are_those_of_each_gpu(tmp_path: Path) -> None:
    one, two, fp8 = (
        load(tmp_path, *more)
        for more in ([], ["hardware.tensor_parallel=2"], ["engine.kv_cache_dtype=fp8", "engine.swap_space_gib=0.5"])
    )
    assert one.config.num_host_blocks == 512  # 1 GiB of blocks of 16 x 128 KiB
    assert (two.config.num_host_blocks, fp8.config.num_host_blocks) == (1024, 512)
    assert one.host_link.copy_ns(2) == pytest.approx(two.host_link.copy_ns(4), abs=1)
    assert one.host_link.copy_ns(1000) == pytest.approx(1000 * 2**21 / (64e9 * 0.8) * 1e9, abs=1)


@pytest.mark.parametrize("policy", ["newest", "least_urgent", "fewest_outputs", "least_computed"])
def test_a_run_tells_of_its_swaps(tmp_path: Path, policy: str) -> None:
    assembly = load(tmp_path, f"policies.preemption.name={policy}", "engine.swap_space_gib=0.2")
    summary = run_into(assembly, tmp_path / "out", warn=print)
    swaps, block = summary["swaps"], 2**21
    events = pd.read_parquet(tmp_path / "out" / "events.parquet").groupby("kind").num_blocks.agg(["count", "sum"])
    assert swaps["num_out"] == swaps["num_in"] == events.loc["swap_out", "count"] > 0
    assert swaps["num_out"] + swaps["num_host_full"] == summary["num_preemptions"] == events.loc["preempt", "count"]
    assert swaps["out_bytes"] == events.loc["swap_out", "sum"] * block
    assert swaps["in_bytes"] == events.loc["swap_in", "sum"] * block <= swaps["out_bytes"]
    assert 0 < swaps["peak_host_bytes"] <= swaps["host_bytes"] == 102 * block
    assert swaps["time_share"] == pytest.approx(swaps["copy_s"] / summary["duration_s"])
    assert f"swapped to the host {swaps['num_out']} times" in swap_sentence(swaps)
