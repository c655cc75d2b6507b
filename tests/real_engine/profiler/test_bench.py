"""Steps are timed launch by launch on the path of the engine's own, and their names say what they hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.real_engine.model.loading import load_model
from llmsim.real_engine.profiler.bench import StepBench, blocks_of
from llmsim.real_engine.profiler.grids import GRIDS, steps_of
from llmsim.real_engine.profiler.steps import BLOCK_SIZE, TimedStep
from llmsim.tests.support.profiling import CONFIG

MIXED = TimedStep(contexts=(5, 40, 40), chunks=((7, 20), (3, 0)))
LAYERS = CONFIG["num_hidden_layers"]


@pytest.fixture
def bench(tmp_path: Path) -> StepBench:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | {"architectures": ["Qwen3ForCausalLM"]}))
    torch.set_num_threads(1)
    model = load_model(
        path, device=torch.device("cpu"), dtype=torch.float32, seed=0, kernels=TorchKernels(), random=True
    )
    return StepBench(model, blocks_of(MIXED) + 1, MIXED.num_rows, 64)


def test_every_launch_of_every_kernel_is_timed(bench: StepBench) -> None:
    bench.prepare(MIXED)
    whole, times = bench.watched_us()
    layers = ("qkv", "qk_norm", "rope", "kv_write", "o", "gate_up", "act", "down", "decode_attention")
    counts = dict.fromkeys((*layers, "extend_attention"), LAYERS)
    counts |= {"norm": 2 * LAYERS} | dict.fromkeys(("embedding", "final_norm", "lm_head", "sampler"), 1)
    assert {name: len(found) for name, found in times.items()} == counts
    assert min(min(found) for found in times.values()) > 0
    assert sum(map(sum, times.values())) < whole


def test_only_what_a_step_holds_is_timed(bench: StepBench) -> None:
    bench.prepare(MIXED._replace(chunks=()))
    assert "extend_attention" not in bench.watched_us()[1]
    bench.prepare(MIXED._replace(contexts=()))
    assert "decode_attention" not in bench.watched_us()[1]


def test_a_step_can_be_run_again_and_again(bench: StepBench) -> None:
    bench.prepare(MIXED)
    before = bench._contexts.clone()
    for _ in range(3):
        assert bench.whole_us() > 0
        assert bench.watched_us()[0] > 0
    assert torch.equal(bench._contexts, before)
    assert before.tolist()[: 1 + MIXED.num_rows] == [0, 4, 39, 39, 0, 0]


def test_decodes_read_what_they_have_in_common_from_the_same_blocks(bench: StepBench) -> None:
    step = TimedStep((40, 35, 33), is_whole=True)
    bench.prepare(step)
    apart = bench._state.tables[1:4].clone()
    bench.prepare(step._replace(common=32))
    table = bench._state.tables[1:4]
    assert len(set(apart.flatten().tolist()) - {0}) == 9
    assert torch.equal(table[:, :2], table[:1, :2].expand(3, 2))
    assert len(set(table[:, 2].tolist())) == 3
    assert bench.whole_us() > 0
    assert step._replace(common=32).shape().shared_tokens == 64


@given(
    st.lists(st.integers(1, 4), max_size=6),
    st.lists(st.tuples(st.integers(2, 9), st.integers(0, 9)), max_size=3),
    st.booleans(),
    st.sampled_from((0, 16, 256)),
)
def test_a_step_comes_back_from_its_name(
    contexts: list[int], chunks: list[tuple[int, int]], is_whole: bool, common: int
) -> None:
    assume(contexts or chunks)
    step = TimedStep(tuple(contexts), tuple(chunks), is_whole, common)
    assert TimedStep.of_name(step.name()) == step


@pytest.mark.parametrize("name", ["small", "full"])
def test_a_grid_keeps_to_the_positions_of_the_model(name: str) -> None:
    grid = GRIDS[name]  # type: ignore[index]
    steps = steps_of(grid, 2048, seed=1)
    assert len(set(steps)) == len(steps)
    assert max(max(step.lengths) for step in steps) <= 2048
    assert steps == steps_of(grid, 2048, seed=1)
    assert all(q > 1 for step in steps for q, _ in step.chunks)
    whole = [step for step in steps if step.is_whole]
    assert {bool(step.contexts) + 2 * bool(step.chunks) for step in whole} == {1, 2, 3}
    common = [step for step in whole if step.common]
    assert len(common) > grid.num_whole / 3
    assert {step._replace(common=0) for step in common} < set(whole)
    assert all(0 < step.common < min(step.contexts) and step.common % BLOCK_SIZE == 0 for step in common)
