"""LLMServingSim's bundles."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from llmsim.calibrate.importers import import_timings
from llmsim.calibrate.importers.request import ImportRequest
from llmsim.sim.cost_model.timings import ProfileError, Timing

META = """
vllm_version: 0.19.0
cuda_version: '12.8'
gpu: NVIDIA GeForce RTX 4090
model: meta-llama/Llama-3.1-8B
tp_degrees: [1]
profiled_at: '2026-08-17'
engine_effective: {enforce_eager: true, hf_overrides: {num_attention_heads: 32, intermediate_size: 14336}}
measurement_iterations: 3
"""
TABLES = {
    "attention": "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,2,64,12.5\n16,32,0,0,20\n",
    "dense": "layer,tokens,time_us\nqkv_proj,8,60\nlayernorm,8,2\n",
    "per_sequence": "layer,sequences,time_us\nlm_head,4,1100\n",
    "skew": "regime,n,pc,kp,kv_mean,kv_big,t_skew_us\npure,2,0,0,320,512,90\n",
}


def bundle(folder: Path, *, meta: str = META, **tables: str) -> Path:
    """A bundle, with other tables where given."""
    (folder / "tp1").mkdir()
    (folder / "meta.yaml").write_text(meta, encoding="utf-8")
    for name, text in {**TABLES, **tables}.items():
        (folder / "tp1" / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def imported(folder: Path, **request: object) -> list[Timing]:
    """Its timings."""
    return import_timings(ImportRequest(str(folder), **request)).timings


def test_kernels_get_our_names_and_shapes(tmp_path):
    found = {(t.kernel, t.shape): t.time_us for t in imported(bundle(tmp_path))}
    assert found == {
        ("attention", (0, 0, 2, 64, 64)): 12.5,
        ("attention", (16, 32, 0, 0, 0)): 20.0,
        ("attention", (0, 0, 2, 320, 512)): 30.0,  # a sum over three iterations
        ("qkv", (8,)): 60.0,
        ("norm", (8,)): 2.0,
        ("lm_head", (4,)): 1100.0,
    }


def test_the_header_tells_device_software_and_source(tmp_path):
    header = import_timings(ImportRequest(str(bundle(tmp_path)))).header
    assert (header.gpu, header.device) == ("rtx-4090", "NVIDIA GeForce RTX 4090")
    assert header.software == "vLLM 0.19.0, CUDA 12.8, eager"
    assert (header.model.name, header.tensor_parallel, header.measured_at) == ("llama-3.1-8b", 1, "2026-08-17")


@pytest.mark.parametrize(
    ("table", "text", "says"),
    [
        ("dense", "layer,tokens\nqkv_proj,8\n", "dense.csv.gz: column time_us is missing"),
        (
            "dense",
            "layer,tokens,time_us\nqkv_proj,8,-1\n",
            "dense.csv.gz: row 2: time_us is -1; a time must be above zero",
        ),
        (
            "dense",
            "layer,tokens,time_us\nqkv_proj,8,0\n",
            "dense.csv.gz: row 2: time_us is 0; a time must be above zero",
        ),
        ("dense", "layer,tokens,time_us\nqkv_proj,8,nan\n", "row 2: time_us is nan; a time must be above zero"),
        ("dense", "layer,tokens,time_us\nqkv_proj,x,1\n", "row 2: tokens is 'x'; it must be a whole number"),
        ("dense", "layer,tokens,time_us\nqkv_proj,8\n", "row 2: has another number of cells than the header"),
        ("dense", "layer,tokens,time_us\nmamba,8,1\n", "row 2: layer 'mamba' is unknown; choose embedding, layernorm"),
        ("attention", "a,b\n1,2\n", "column prefill_chunk, kv_prefill, n_decode, kv_decode, time_us is missing"),
    ],
)
def test_a_bad_table_is_told_with_file_and_row(tmp_path, table, text, says):
    with pytest.raises(ProfileError) as refused:
        imported(bundle(tmp_path, **{table: text}))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"tensor_parallel": 2}, "has timings for tensor parallelism 1; choose with --tensor-parallel"),
        ({"model": "qwen3-32b"}, "meta.yaml: num_attention_heads is 32, that of qwen3-32b over 1 GPUs 64"),
        ({"model": "gpt-9"}, "model 'gpt-9' is unknown"),
        ({"gpu": "voodoo2"}, "GPU 'voodoo2' is unknown"),
    ],
)
def test_what_does_not_go_with_the_bundle_is_refused(tmp_path, request_, says):
    with pytest.raises(ProfileError) as refused:
        imported(bundle(tmp_path), **request_)
    assert says in str(refused.value)


def test_a_folder_of_something_else_is_refused_with_what_is_known(tmp_path):
    with pytest.raises(ProfileError, match="is none of the known sources"):
        imported(tmp_path)
    with pytest.raises(ProfileError, match="there is no such folder"):
        imported(tmp_path / "nowhere")
