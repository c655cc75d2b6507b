"""Small random models of Hugging Face's transformers, saved as checkpoints, and what they generate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

os.environ["HF_HUB_OFFLINE"] = "1"  # Before transformers is imported: nothing here comes from a hub.

from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    logging,
)

logging.disable_progress_bar()

SIZES: dict[str, Any] = {
    "vocab_size": 199,
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
}

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
"""Scaled so that a head has long, short and blended waves, and that prompts of tests are longer than the shortest."""

FAMILIES: dict[str, tuple[type, type]] = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "mistral": (MistralConfig, MistralForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}


def random_model(family: str, **fields: Any) -> PreTrainedModel:
    """A model whose norms and biases are random too, and whose activations are as large as a trained one's."""
    config_class, model_class = FAMILIES[family]
    torch.manual_seed(0)
    model: PreTrainedModel = model_class(config_class(**SIZES | fields)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(std=0.2)
    return model


def saved(model: PreTrainedModel, folder: Path, **options: Any) -> Path:
    """The folder, with the model's config.json and safetensors."""
    model.save_pretrained(folder, **options)
    return folder


def greedy(model: PreTrainedModel, prompt: Sequence[int], num_tokens: int) -> list[int]:
    """The likeliest tokens after the prompt, one after another, whatever ends an answer or pads a prompt elsewhere."""
    assert model.generation_config is not None
    model.generation_config.eos_token_id = None
    tokens = torch.tensor([list(prompt)])
    generated = model.generate(
        tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=num_tokens, do_sample=False
    )
    outputs: list[int] = generated[0, len(prompt) :].tolist()
    return outputs


def logits_of(model: PreTrainedModel, tokens: Sequence[int], num_tokens: int) -> Tensor:
    """[num_tokens, vocab]: the logits of the last positions."""
    with torch.inference_mode():
        logits: Tensor = model(torch.tensor([list(tokens)])).logits
    return logits[0, -num_tokens:]
