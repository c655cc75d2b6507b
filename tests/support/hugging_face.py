"""Small random models of Hugging Face transformers: what the real engine's tokens are held against."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch

VOCAB = 97
SHAPES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 60,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
}


class HuggingFaceModel:
    """A random model, saved in a folder; generates greedily, in fp32, a token at a time without any cache."""

    def __init__(self, architecture: str, folder: Path, seed: int = 0, **changes: Any) -> None:
        """`architecture`: Llama or Qwen3."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import transformers

            torch.manual_seed(seed)
            config = getattr(transformers, f"{architecture}Config")(**SHAPES | changes)
            config._attn_implementation = "eager"
            self._model = getattr(transformers, f"{architecture}ForCausalLM")(config).eval()
            self._model.save_pretrained(folder)
        self.folder = folder
        self._known: dict[tuple[int, ...], int] = {}

    def generate(self, prompt: list[int], num_tokens: int) -> list[int]:
        """The likeliest tokens behind a prompt."""
        tokens = list(prompt)
        for _ in range(num_tokens):
            tokens.append(self._next(tuple(tokens)))
        return tokens[len(prompt) :]

    def _next(self, tokens: tuple[int, ...]) -> int:
        if tokens not in self._known:
            with torch.inference_mode():
                logits = self._model(torch.tensor([tokens])).logits[0, -1]
            self._known[tokens] = int(logits.argmax())
        return self._known[tokens]
