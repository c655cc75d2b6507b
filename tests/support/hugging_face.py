"""A small random model of Hugging Face transformers that remembers what it has generated behind a prompt."""

from __future__ import annotations

from pathlib import Path

from llmsim.tests.support.hf_models import greedy, random_model, saved

VOCAB = 199


class HuggingFaceModel:
    """Saved in a folder; generates greedily in fp32."""

    def __init__(self, family: str, folder: Path) -> None:
        """`family`: llama, qwen3, … as in `hf_models.FAMILIES`."""
        self._model = random_model(family)
        self.folder = saved(self._model, folder)
        self._known: dict[tuple[int, ...], list[int]] = {}

    def generate(self, prompt: list[int], num_tokens: int) -> list[int]:
        """The likeliest tokens behind a prompt."""
        known = self._known.setdefault(tuple(prompt), [])
        if len(known) < num_tokens:
            known[:] = greedy(self._model, prompt, num_tokens)
        return known[:num_tokens]
