"""Commands that are imported in tests, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.importing.imported import Wishes, import_commands
from llmsim.scenarios.yaml_reading import parse_yaml

SERVE = "vllm serve meta-llama/Llama-3.1-8B-Instruct"
BENCH = "vllm bench serve --model meta-llama/Llama-3.1-8B-Instruct"
LAUNCH = "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct"
SERVING = "python -m sglang.bench_serving --model meta-llama/Llama-3.1-8B-Instruct"


def scenario_of(command: str, **wishes: Any) -> dict[str, Any]:
    """The YAML that a command becomes, as a mapping."""
    whole = parse_yaml(import_commands(command, Wishes(**wishes)).text, "command")
    assert isinstance(whole, dict)
    return whole


def workload_of(flags: str, bench: str = BENCH) -> dict[str, Any]:
    """The workload that a benchmark with these flags becomes."""
    workload: dict[str, Any] = scenario_of(f"{bench} {flags}")["workload"]
    return workload


def refusal(command: str, **wishes: Any) -> str:
    """The one line that a wrong command gets."""
    with pytest.raises(ScenarioError) as caught:
        import_commands(command, Wishes(**wishes))
    text = str(caught.value)
    assert "\n" not in text
    return text
