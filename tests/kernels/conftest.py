"""Kernel tests: the interpreter is repaired, and memory that nobody has written holds NaNs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
import torch

from llmsim.tests.support.kernel_checks import INTERPRETED

if find_spec("triton") is None:  # it comes with the extra `real` on Linux alone
    collect_ignore_glob = ["test_*"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """On a GPU torch warns of what the references use; they add up integers, whose order is all one."""
    item.add_marker(pytest.mark.filterwarnings("ignore:.*does not have a deterministic implementation"))


@pytest.fixture(scope="session", autouse=True)
def repaired_interpreter() -> None:
    if INTERPRETED:
        from llmsim.tests.support.interpreted import repair  # imports triton

        repair()
    elif not torch.cuda.is_available():
        pytest.skip("kernels are not interpreted (TRITON_INTERPRET), and there is no GPU to run them")


@pytest.fixture(autouse=True)
def poisoned_memory() -> Iterator[None]:
    """`torch.empty` is filled with NaNs, or the largest integer: what a kernel leaves out shows."""
    filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = filled
