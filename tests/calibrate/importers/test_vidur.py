"""Vidur's profiling CSVs."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.calibrate.importers import import_timings
from llmsim.calibrate.importers.request import ImportRequest
from llmsim.sim.cost_model.timings import ProfileError

NAMES = (
    *("emb", "input_layernorm", "attn_pre_proj", "attn_rope", "attn_post_proj", "post_attention_layernorm"),
    *("mlp_up_proj", "mlp_act", "mlp_down_proj", "add"),
)
SIZES = {"n_head": 32, "n_kv_head": 8, "n_embd": 4096, "n_expanded_embd": 14336, "vocab_size": 128256}


def csv_of(rows: list[dict[str, object]]) -> str:
    """The rows as a CSV."""
    return "\n".join(",".join(map(str, line)) for line in (rows[0], *(row.values() for row in rows))) + "\n"


def folder(tmp_path: Path, hidden: int = 4096) -> Path:
    """A folder of two tables: two degrees of tensor parallelism, a chunk and a batch of decodes."""
    medians = {f"time_stats.{name}.median": 0.001 * (i + 1) for i, name in enumerate(NAMES)}
    mlp = [{**medians, **SIZES, "n_embd": hidden, "num_tokens": 8, "num_tensor_parallel_workers": tp} for tp in (1, 2)]
    heads = {"n_q_head": 32, "n_kv_head": 8, "n_embd": 4096, "num_tensor_parallel_workers": 1}
    write = {"time_stats.attn_kv_cache_save.median": 0.019}
    prefill = {"time_stats.attn_prefill.median": 0.011, "time_stats.attn_decode.median": 0.0}
    decode = {"time_stats.attn_prefill.median": 0.0, "time_stats.attn_decode.median": 0.03}
    attention = [
        {
            **heads,
            **write,
            **prefill,
            "batch_size": 1,
            "prefill_chunk_size": 64,
            "kv_cache_size": 128,
            "is_prefill": True,
        },
        {
            **heads,
            **write,
            **decode,
            "batch_size": 4,
            "prefill_chunk_size": 0,
            "kv_cache_size": 255,
            "is_prefill": False,
        },
    ]
    (tmp_path / "mlp.csv").write_text(csv_of(mlp), encoding="utf-8")
    (tmp_path / "attention.csv").write_text(csv_of(attention), encoding="utf-8")
    return tmp_path


def test_kernels_get_our_names_shapes_and_microseconds(tmp_path):
    made = import_timings(ImportRequest(str(folder(tmp_path)), "llama-3.1-8b", "a100-80g"))
    found = {(t.kernel, t.shape): round(t.time_us, 6) for t in made.timings}
    assert found == {
        **{("embedding", (8,)): 1.0, ("qkv", (8,)): 3.0, ("rope", (8,)): 4.0, ("o", (8,)): 5.0},
        **{("gate_up", (8,)): 7.0, ("act", (8,)): 8.0, ("down", (8,)): 9.0, ("norm", (8,)): (2 + 6 + 10) / 2},
        **{("attention", (64, 128, 0, 0, 0)): 30.0, ("attention", (0, 0, 4, 256, 256)): 49.0},
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((None, "a100-80g"), "does not say of which model; give --model"),
        (("llama-3.1-8b", None), "does not say of which GPU; give --gpu"),
        (("qwen3-32b", "a100-80g"), "row 2: n_head is 32, that of qwen3-32b 64"),
    ],
)
def test_what_the_tables_do_not_say_must_be_given_and_fit(tmp_path, given, says):
    with pytest.raises(ProfileError) as refused:
        import_timings(ImportRequest(str(folder(tmp_path)), *given))
    assert says in str(refused.value)
