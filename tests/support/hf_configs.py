"""Fields of published config.json files that matter to the reader."""

from __future__ import annotations


def _config(architecture: str, sizes: tuple[int, ...], **fields: object) -> dict[str, object]:
    """`sizes`: layers, hidden, intermediate, heads, KV heads, vocabulary, positions."""
    names = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads")
    names += ("vocab_size", "max_position_embeddings")
    return {
        "architectures": [architecture],
        **dict(zip(names, sizes, strict=True)),
        "torch_dtype": "bfloat16",
        **fields,
    }


LLAMA_3_2_1B = _config(
    "LlamaForCausalLM",
    (16, 2048, 8192, 32, 8, 128256, 131072),
    attention_bias=False,
    head_dim=64,
    mlp_bias=False,
    model_type="llama",
    rope_scaling={"factor": 32.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    tie_word_embeddings=True,
)

PUBLISHED = {
    "gemma-2-9b": _config(
        "Gemma2ForCausalLM",
        (42, 3584, 14336, 16, 8, 256000, 8192),
        attention_bias=False,
        attn_logit_softcapping=50.0,
        head_dim=256,
        sliding_window=4096,
    ),
    "llama-3.1-8b": _config(
        "LlamaForCausalLM", (32, 4096, 14336, 32, 8, 128256, 131072), attention_bias=False, tie_word_embeddings=False
    ),
    "llama-3.2-1b": LLAMA_3_2_1B,
    "mistral-7b": _config(
        "MistralForCausalLM", (32, 4096, 14336, 32, 8, 32768, 32768), sliding_window=None, tie_word_embeddings=False
    ),
    "qwen2.5-7b": _config(
        "Qwen2ForCausalLM",
        (28, 3584, 18944, 28, 4, 152064, 32768),
        max_window_layers=28,
        sliding_window=131072,
        tie_word_embeddings=False,
        use_sliding_window=False,
    ),
    "qwen3-0.6b": _config(
        "Qwen3ForCausalLM",
        (28, 1024, 3072, 16, 8, 151936, 40960),
        attention_bias=False,
        head_dim=128,
        sliding_window=None,
        tie_word_embeddings=True,
        use_sliding_window=False,
    ),
    "qwen3-30b-a3b": _config(
        "Qwen3MoeForCausalLM",
        (48, 2048, 6144, 32, 4, 151936, 40960),
        attention_bias=False,
        decoder_sparse_step=1,
        head_dim=128,
        mlp_only_layers=[],
        moe_intermediate_size=768,
        num_experts=128,
        num_experts_per_tok=8,
        sliding_window=None,
        tie_word_embeddings=False,
        use_sliding_window=False,
    ),
}
