"""From what a driver calls its GPU to the catalog's name of it."""

from __future__ import annotations

KNOWN = {
    "NVIDIA A100-SXM4-40GB": "a100-40g",
    "NVIDIA A100-SXM4-80GB": "a100-80g",
    "NVIDIA B200": "b200",
    "NVIDIA GH200 480GB": "gh200-96g",  # the 480 GB are the processor's
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "NVIDIA H100 PCIe": "h100-pcie",
    "NVIDIA H200": "h200-sxm",
    "NVIDIA L4": "l4",
    "NVIDIA L40S": "l40s",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "rtx-pro-6000",
    "AMD Instinct MI300X": "mi300x",
}


def catalog_name(device: str) -> str | None:
    """The catalog's name, None where the driver's is not known."""
    return KNOWN.get(device)
