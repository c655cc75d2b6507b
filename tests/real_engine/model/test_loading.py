from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.policies.core import specs
from llmsim.real_engine.model.errors import BadWeights, ModelError
from llmsim.real_engine.model.loading import config_of, load_model, rope_bytes, weight_bytes
from llmsim.real_engine.model.transformer import Transformer
from llmsim.tests.support.hf_configs import PUBLISHED

CPU = torch.device("cpu")
SMALL = PUBLISHED["qwen3-0.6b"] | {
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 50,
    "max_position_embeddings": 64,
}


def load(source: Path, *, random: bool = False) -> Transformer:
    return load_model(source, device=CPU, dtype=torch.float32, seed=0, kernels=TorchKernels(), random=random)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    return tmp_path


def test_a_config_alone_gets_random_weights_only_where_asked_for(folder: Path) -> None:
    for source in (folder, folder / "config.json"):
        with pytest.raises(BadWeights) as refusal:
            load(source)
        assert str(refusal.value) == f"{folder}: there are no safetensors, and random weights were not asked for"
        model = load(source, random=True)
        assert model.config.spec.vocab_size == 50
        assert bool(model.weights.embedding.isfinite().all())


def test_a_path_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as refusal:
        load(tmp_path / "nowhere")
    says = "the path: does not exist; choose a model's folder or its config.json"
    assert str(refusal.value) == f"{tmp_path / 'nowhere'}: {says}"


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weight_bytes_are_those_that_are_held(tied: bool, dtype: torch.dtype) -> None:
    spec = replace(specs.model("tiny"), num_layers=2, tied_embeddings=tied, qk_norm=True, attention_bias=True)
    model = load_model(spec, device=torch.device("meta"), dtype=dtype, seed=0, kernels=TorchKernels())
    weights = model.weights
    held = {id(tensor): tensor for tensor in (weights.embedding, weights.lm_head, weights.final_norm)}
    held |= {id(getattr(layer, n)): getattr(layer, n) for layer in weights.layers for n in layer.__slots__}
    num_bytes = sum(tensor.nbytes for tensor in held.values() if tensor is not None)
    assert weight_bytes(model.config, dtype) == num_bytes


def test_the_rotary_table_is_as_large_as_said() -> None:
    config = config_of(specs.model("tiny"))
    spec = config.spec
    table = config.rope.cos_sin(spec.head_dim, spec.max_position_embeddings, CPU)
    assert rope_bytes(config) == table.nbytes
