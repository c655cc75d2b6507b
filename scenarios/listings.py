"""What a scenario can name, as tables: models, GPUs and profiles."""

from __future__ import annotations

from rich import box
from rich.table import Table

from ..calibrate.shipped import shipped_profiles
from ..policies.core import specs
from ..policies.core.specs import GIB
from ..sim.cost_model.profile import read_profile


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    return table


def model_table() -> Table:
    """Models with their size and the memory that weights and a token of KV take."""
    table = _table("model", "params", "weights", "KV/token", "layers", "heads", "context")
    for name in specs.model_names():
        model = specs.model(name)
        table.add_row(
            name,
            f"{model.num_parameters / 1e9:.2f} B"
            if model.num_parameters >= 1e8
            else f"{model.num_parameters / 1e6:.1f} M",
            f"{model.weight_bytes() / GIB:.2f} GiB",
            f"{model.kv_bytes_per_token() / 1024:.0f} KiB",
            str(model.num_layers),
            f"{model.num_heads}/{model.num_kv_heads}",
            f"{model.max_position_embeddings // 1024} Ki",
        )
    return table


def gpu_table() -> Table:
    """GPUs by their data sheets."""
    table = _table(
        "gpu", "memory\nGiB", "bandwidth\nTB/s", "bf16\nTFLOP/s", "fp8\nTFLOP/s", "to GPUs\nGB/s", "to the host\nGB/s"
    )
    for name in specs.gpu_names():
        gpu = specs.gpu(name)
        fp8, link, host = gpu.fp8_flop_per_s, gpu.interconnect_bytes_per_s, gpu.host_link_bytes_per_s
        table.add_row(
            name,
            f"{gpu.memory_bytes / GIB:.1f}",
            f"{gpu.bandwidth_bytes_per_s / 1e12:.2f}",
            f"{gpu.bf16_flop_per_s / 1e12:.0f}",
            f"{fp8 / 1e12:.0f}" if fp8 else "-",
            f"{link / 1e9:.0f}" if link else "-",
            f"{host / 1e9:.0f}" if host else "-",
        )
    return table


def profile_table() -> Table:
    """Profiles that come with the package: the model, the device, and errors of points that their fits did not see."""
    table = _table("profile", "model", "device", "measured", "held out\nmedian, P95")
    for name, folder in shipped_profiles().items():
        header = read_profile(folder).header
        assert header.fit is not None, f"{name} was shipped without a fit"
        errors = f"{header.fit.held_out.median:.1%}, {header.fit.held_out.p95:.1%}"
        day = (header.measured_at or "-")[:10]
        table.add_row(name, f"{header.model.name}, {header.model.dtype}", header.device, day, errors)
    return table


def known_names(what: str) -> list[str]:
    """The same names without the tables: `what` is models, gpus or profiles."""
    names = {"models": specs.model_names, "gpus": specs.gpu_names, "profiles": shipped_profiles}
    return list(names[what]())
