"""A small table of kernel timings, made by a formula: twice the data sheet's floor and 5 us."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from llmsim.calibrate.fit import fit, floors_of
from llmsim.calibrate.writing import write_profile
from llmsim.policies.core import specs
from llmsim.sim.cost_model.profile import Profile
from llmsim.sim.cost_model.profile_header import ModelShapes, ProfileHeader
from llmsim.sim.cost_model.timings import Shape, Timing

TINY = specs.model("tiny")
TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 129, 256, 512, 1024)
CHUNKS, PRIOR, DECODES, CONTEXTS = (16, 64, 512), (0, 64, 1024), (1, 4, 16, 64), (16, 128, 1024, 8192)
TOKEN_KERNELS = ("embedding", "norm", "qkv", "rope", "o", "gate_up", "act", "down", "final_norm")
HEADER = ProfileHeader(
    name="made-up",
    gpu="h100-sxm",
    device="NVIDIA H100 80GB HBM3",
    model=ModelShapes.of(TINY),
    software="a formula",
    source="tests/support/profiles.py",
    contained=("kv_write",),
)
FLOORS = floors_of(HEADER)


def us(kernel: str, shape: Shape) -> float:
    """What a timing says."""
    return 5.0 + 2.0 * FLOORS.floor_us(kernel, shape)


def attention_shapes() -> Iterator[Shape]:
    """Prefill alone, decodes alone, and all of both together."""
    yield from ((q, kv, 0, 0, 0) for q, kv in product(CHUNKS, PRIOR))
    yield from ((0, 0, n, context, context) for n, context in product(DECODES, CONTEXTS))
    both = product(CHUNKS, PRIOR, DECODES, CONTEXTS)
    yield from ((q, kv, n, context, context) for q, kv, n, context in both)


def timings() -> list[Timing]:
    """All timings of the table."""
    shapes = [(kernel, (size,)) for kernel in (*TOKEN_KERNELS, "lm_head", "sampler") for size in TOKENS]
    shapes += [("attention", shape) for shape in attention_shapes()]
    return [Timing(kernel, shape, us(kernel, shape), f"t.csv: row {i}") for i, (kernel, shape) in enumerate(shapes, 2)]


def table(**header: object) -> Profile:
    """The table, with other fields in its header where given."""
    return Profile(HEADER.model_copy(update=header), timings(), Path("made-up"))


def fitted(**header: object) -> Profile:
    """The profile of the table."""
    return fit(table(**header))


def write_table(folder: Path, **header: object) -> Path:
    """The table as a folder."""
    made = table(**header)
    write_profile(folder, made.header, made.timings)
    return folder


def write_fitted(folder: Path, **header: object) -> Path:
    """The profile as a folder."""
    made = fitted(**header)
    write_profile(folder, made.header, made.timings)
    return folder
