from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from llmsim.policies.core.model_spec import ModelSpec
from llmsim.real_engine.model.checkpoint import INDEX, SINGLE, has_weights, read_weights
from llmsim.real_engine.model.errors import BadWeights, ModelError
from llmsim.real_engine.model.weights import allocate, places

CPU = torch.device("cpu")
Tensors = dict[str, Tensor]

SPEC = ModelSpec(
    name="small",
    num_layers=2,
    hidden_size=8,
    intermediate_size=12,
    num_heads=4,
    num_kv_heads=2,
    head_dim=4,
    vocab_size=10,
    max_position_embeddings=32,
    attention_bias=True,
    output_bias=True,
    qk_norm=True,
)


def checkpoint(dtype: torch.dtype = torch.float32) -> Tensors:
    """Every tensor that a checkpoint of SPEC has, by shapes that are written down here once more."""
    generator = torch.Generator().manual_seed(0)
    layer = {
        "input_layernorm.weight": (8,),
        "self_attn.q_proj.weight": (16, 8),
        "self_attn.k_proj.weight": (8, 8),
        "self_attn.v_proj.weight": (8, 8),
        "self_attn.q_proj.bias": (16,),
        "self_attn.k_proj.bias": (8,),
        "self_attn.v_proj.bias": (8,),
        "self_attn.q_norm.weight": (4,),
        "self_attn.k_norm.weight": (4,),
        "self_attn.o_proj.weight": (8, 16),
        "self_attn.o_proj.bias": (8,),
        "post_attention_layernorm.weight": (8,),
        "mlp.gate_proj.weight": (12, 8),
        "mlp.up_proj.weight": (12, 8),
        "mlp.down_proj.weight": (8, 12),
    }
    shapes = {f"model.layers.{number}.{name}": shape for number in range(2) for name, shape in layer.items()}
    shapes |= {"model.embed_tokens.weight": (10, 8), "model.norm.weight": (8,), "lm_head.weight": (10, 8)}
    return {name: torch.randn(shape, generator=generator).to(dtype) for name, shape in shapes.items()}


def save_in_shards(tensors: Tensors, folder: Path) -> None:
    names = sorted(tensors)
    shards = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for shard, held in shards.items():
        save_file({name: tensors[name] for name in held}, folder / shard)
    weight_map = {name: shard for shard, held in shards.items() for name in held}
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))


def save_whole(tensors: Tensors, folder: Path) -> None:
    save_file(tensors, folder / SINGLE)


@pytest.mark.parametrize("save", [save_whole, save_in_shards])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tensors_lie_where_the_forward_pass_looks_for_them(
    save: Callable[[Tensors, Path], None], dtype: torch.dtype, tmp_path: Path
) -> None:
    tensors = checkpoint()
    save(tensors, tmp_path)
    assert has_weights(tmp_path)
    weights = allocate(SPEC, dtype, CPU)
    read_weights(tmp_path, places(weights, SPEC))
    expected = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    layer, prefix = weights.layers[1], "model.layers.1"
    attention = [expected[f"{prefix}.self_attn.{part}_proj.weight"] for part in "qkv"]
    biases = [expected[f"{prefix}.self_attn.{part}_proj.bias"] for part in "qkv"]
    mlp = [expected[f"{prefix}.mlp.{part}_proj.weight"] for part in ("gate", "up")]
    assert torch.equal(layer.qkv, torch.cat(attention))
    assert layer.qkv_bias is not None
    assert torch.equal(layer.qkv_bias, torch.cat(biases))
    assert torch.equal(layer.gate_up, torch.cat(mlp))
    assert torch.equal(layer.down, expected[f"{prefix}.mlp.down_proj.weight"])
    assert torch.equal(weights.lm_head, expected["lm_head.weight"])
    assert all(torch.equal(view, expected[name]) for name, view in places(weights, SPEC))


def test_every_weight_has_a_place() -> None:
    weights = allocate(SPEC, torch.float32, CPU)
    for _, view in places(weights, SPEC):
        view.fill_(7.0)
    flat = [weights.embedding, weights.final_norm, weights.lm_head]
    flat += [getattr(layer, name) for layer in weights.layers for name in layer.__slots__]
    assert all(bool((tensor == 7).all()) for tensor in flat)
    assert sum(tensor.numel() for tensor in flat) == SPEC.num_parameters


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16])
def test_other_floats_are_cast(stored: torch.dtype, tmp_path: Path) -> None:
    tensors = checkpoint(stored)
    save_whole(tensors, tmp_path)
    weights = allocate(SPEC, torch.float32, CPU)
    read_weights(tmp_path, places(weights, SPEC))
    assert torch.equal(weights.embedding, tensors["model.embed_tokens.weight"].float())


def complaint(folder: Path, change: Callable[[Tensors], object]) -> str:
    """What the reader says of a checkpoint so changed; nothing may have been read by then."""
    tensors = checkpoint()
    change(tensors)
    save_whole(tensors, folder)
    weights = allocate(SPEC, torch.float32, CPU)
    weights.embedding.fill_(7.0)
    with pytest.raises(BadWeights) as refusal:
        read_weights(folder, places(weights, SPEC))
    assert bool((weights.embedding == 7).all())
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_a_missing_tensor_is_named_with_its_shape(tmp_path: Path) -> None:
    says = complaint(tmp_path, lambda t: t.pop("model.layers.1.mlp.up_proj.weight"))
    expected = "tensor model.layers.1.mlp.up_proj.weight is missing, expected of shape [12, 8]"
    assert says == f"{tmp_path}: {expected}"


def test_several_missing_tensors_are_counted(tmp_path: Path) -> None:
    says = complaint(tmp_path, lambda t: [t.pop(f"model.layers.1.self_attn.{part}_proj.bias") for part in "qkv"])
    assert says.endswith("self_attn.q_proj.bias is missing, expected of shape [16] (and 2 more like it)")


def test_an_unexpected_tensor_is_named(tmp_path: Path) -> None:
    says = complaint(tmp_path, lambda t: t.update({"model.layers.2.input_layernorm.weight": torch.ones(8)}))
    assert says == f"{tmp_path}: tensor model.layers.2.input_layernorm.weight is not of this model"


def test_a_misshaped_tensor_is_named_with_both_shapes(tmp_path: Path) -> None:
    says = complaint(tmp_path, lambda t: t.update({"model.norm.weight": torch.ones(9)}))
    assert says == f"{tmp_path / SINGLE}: tensor model.norm.weight is of shape [9], expected [8]"


def test_a_tensor_that_is_no_float_is_named(tmp_path: Path) -> None:
    says = complaint(tmp_path, lambda t: t.update({"model.norm.weight": torch.ones(8, dtype=torch.int8)}))
    assert says.endswith("tensor model.norm.weight is of dtype I8, expected one of BF16, F16, F32")


def test_a_tied_head_and_old_rotary_tables_are_left_out(tmp_path: Path) -> None:
    from dataclasses import replace

    tied = replace(SPEC, tied_embeddings=True)
    save_whole(checkpoint() | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)}, tmp_path)
    weights = allocate(tied, torch.float32, CPU)
    read_weights(tmp_path, places(weights, tied))
    assert weights.lm_head is weights.embedding
    assert torch.equal(weights.embedding, checkpoint()["model.embed_tokens.weight"])


def refused(folder: Path) -> str:
    with pytest.raises(ModelError) as refusal:
        read_weights(folder, places(allocate(SPEC, torch.float32, CPU), SPEC))
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_a_folder_without_safetensors_is_one_line(tmp_path: Path) -> None:
    assert not has_weights(tmp_path)
    assert refused(tmp_path) == f"{tmp_path}: there is neither {SINGLE} nor {INDEX}"


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / SINGLE).write_bytes(b"not safetensors at all")
    assert refused(tmp_path).startswith(f"{tmp_path / SINGLE}: cannot be read as safetensors: ")


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    save_in_shards(checkpoint(), tmp_path)
    (tmp_path / "two.safetensors").unlink()
    assert refused(tmp_path) == f"{tmp_path / 'two.safetensors'}: the file is missing, though {INDEX} names it"


def test_an_index_that_lies_is_told_so(tmp_path: Path) -> None:
    save_in_shards(checkpoint(), tmp_path)
    weight_map = json.loads((tmp_path / INDEX).read_text())["weight_map"]
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(weight_map, "one.safetensors")}))
    assert refused(tmp_path).endswith(f"is missing, though {INDEX} says that it is there")


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ("{", "is not JSON"),
        ("{}", "weight_map must name"),
        ('{"weight_map": {"lm_head.weight": "../one.safetensors"}}', "weight_map must name"),
    ],
)
def test_an_index_that_is_none_is_one_line(index: str, says: str, tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(index)
    assert refused(tmp_path).startswith(f"{tmp_path / INDEX}: {says}")
