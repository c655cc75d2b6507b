"""A model's folder as `llmsim generate` wants it: tiny, with random weights and a tokenizer of one token a byte."""

from __future__ import annotations

import json
from pathlib import Path

import tokenizers
import torch
from safetensors.torch import save_file
from tokenizers import decoders, models, pre_tokenizers

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.real_engine.model.loading import load_model
from llmsim.real_engine.model.weights import places

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "max_position_embeddings": 256,
    "torch_dtype": "float32",
}


def text_model(folder: Path, *, eos_token_id: int | None = None) -> Path:
    """The folder, with config.json, model.safetensors and tokenizer.json."""
    folder.mkdir(exist_ok=True)
    config = folder / "config.json"
    config.write_text(json.dumps(CONFIG | ({} if eos_token_id is None else {"eos_token_id": eos_token_id})))
    model = load_model(
        config, device=torch.device("cpu"), dtype=torch.float32, seed=0, kernels=TorchKernels(), random=True
    )
    tensors = {name: view.clone() for name, view in places(model.weights, model.config.spec)}
    save_file(tensors, folder / "model.safetensors")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(models.BPE({sign: place for place, sign in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
