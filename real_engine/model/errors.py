"""What is wrong with a model that a user named; each message is one line.

ModelError             one of its files is no JSON
    UnsupportedModel   its config.json or catalog entry asks for what this engine does not compute
    BadWeights         its safetensors are missing, damaged, or not those of its config.json
    BadTokenizer       its tokenizer or chat template is missing or cannot be read
"""

from __future__ import annotations


class ModelError(ValueError):
    """A model cannot be loaded, or one of its files not read."""


class UnsupportedModel(ModelError):
    """`field` of the model's description is missing, malformed, or asks for what is not supported."""

    def __init__(self, source: str, field: str, says: str) -> None:
        super().__init__(f"{source}: {field}: {says}")
        self.source = source
        self.field = field
        self.says = says


class BadWeights(ModelError):
    """Weights are missing, damaged, or of other names or shapes than the model has."""


class BadTokenizer(ModelError):
    """A tokenizer or chat template is missing or cannot be read."""
