"""Finds in shell commands the programs whose flags are known: servers and benchmarks of vLLM and SGLang."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

from ..errors import ScenarioError
from .draft import Draft
from .shell import ShellCommand, split_commands


class Program(Enum):
    """A program that can be imported; its value is its name for people."""

    VLLM_SERVE = "vllm serve"
    VLLM_BENCH_SERVE = "vllm bench serve"
    VLLM_BENCH_THROUGHPUT = "vllm bench throughput"
    VLLM_BENCH_LATENCY = "vllm bench latency"
    SGLANG_SERVE = "sglang.launch_server"
    SGLANG_BENCH_SERVING = "sglang.bench_serving"
    SGLANG_BENCH_OFFLINE = "sglang.bench_offline_throughput"


_COMMANDS = {
    ("vllm", "serve"): Program.VLLM_SERVE,
    ("vllm", "bench", "serve"): Program.VLLM_BENCH_SERVE,
    ("vllm", "bench", "throughput"): Program.VLLM_BENCH_THROUGHPUT,
    ("vllm", "bench", "latency"): Program.VLLM_BENCH_LATENCY,
    ("sglang", "serve"): Program.SGLANG_SERVE,
}
_MODULES = {
    "vllm.entrypoints.openai.api_server": Program.VLLM_SERVE,
    "sglang.launch_server": Program.SGLANG_SERVE,
    "sglang.bench_serving": Program.SGLANG_BENCH_SERVING,
    "sglang.benchmark.serving": Program.SGLANG_BENCH_SERVING,
    "sglang.bench_offline_throughput": Program.SGLANG_BENCH_OFFLINE,
    "sglang.benchmark.offline_throughput": Program.SGLANG_BENCH_OFFLINE,
}
_SCRIPTS = {
    "benchmark_serving.py": Program.VLLM_BENCH_SERVE,
    "benchmark_throughput.py": Program.VLLM_BENCH_THROUGHPUT,
    "benchmark_latency.py": Program.VLLM_BENCH_LATENCY,
}
SERVERS = frozenset({Program.VLLM_SERVE, Program.SGLANG_SERVE})
_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_VLLM_IMAGE = re.compile(r"(.*/)?vllm-openai(-\w+)?(:.*)?")


@dataclass(frozen=True, slots=True)
class Call:
    """A program and the words after its name."""

    program: Program
    words: tuple[str, ...]


def find_calls(text: str, draft: Draft) -> list[Call]:
    """The server and the benchmark that a text calls, each at most once; `draft` is told of all else in it.

    Raises ScenarioError where it calls neither, or one of them twice.
    """
    calls: list[Call] = []
    others: list[ShellCommand] = []
    for command in split_commands(text):
        if (call := _call(command, draft)) is None:
            others.append(command)
            continue
        calls.append(call)
        for name in command.environment:
            draft.not_carried(name, "is not carried over: an environment variable")
    if not calls:
        raise ScenarioError("command", None, _nothing_known(others))
    for command in others:
        draft.not_carried(f"`{_beginning(command)}`", "is not carried over: it is no server or benchmark")
    _check_once("servers", [call for call in calls if call.program in SERVERS])
    _check_once("benchmarks", [call for call in calls if call.program not in SERVERS])
    return calls


def _nothing_known(others: list[ShellCommand]) -> str:
    known = ", ".join(program.value for program in Program)
    if not others:
        return f"is empty; give one of {known}, with its flags"
    return f"'{_beginning(others[0])}' is none of {known}"


def _beginning(command: ShellCommand) -> str:
    words = " ".join(command.words[:3])
    return words if len(words) <= 40 else f"{words[:39]}…"


def _check_once(noun: str, calls: list[Call]) -> None:
    if len(calls) > 1:
        names = " and ".join(call.program.value for call in calls)
        raise ScenarioError(
            "command", None, f"holds {len(calls)} {noun}, {names}: a scenario has one; import one at a time"
        )


def _call(command: ShellCommand, draft: Draft) -> Call | None:
    words = command.words
    for place in range(len(words)):
        found = _program_at(words[place:])
        if found is None and _VLLM_IMAGE.fullmatch(words[place]):  # of a container that is a server by itself
            found = Program.VLLM_SERVE, 1
            if _program_at(words[place + 1 :]) is not None:
                continue
        if found is not None:
            program, length = found
            if place:
                draft.not_carried(f"`{_beginning(command)}` before {program.value}", "has no meaning here")
            return Call(program, words[place + length :])
    return None


def _program_at(words: tuple[str, ...]) -> tuple[Program, int] | None:
    """The program that these words begin with, and how many of them are its name."""
    if not words:
        return None
    name = PurePosixPath(words[0]).name
    for command, program in _COMMANDS.items():
        if (name, *words[1 : len(command)]) == command:
            return program, len(command)
    if name in _SCRIPTS:
        return _SCRIPTS[name], 1
    if _PYTHON.fullmatch(name) and "-m" in words[:4]:
        place = words.index("-m") + 1
        if words[place : place + 1] and words[place] in _MODULES:
            return _MODULES[words[place]], place + 1
        if words[place : place + 1] == ("vllm",) or words[place : place + 1] == ("vllm.entrypoints.cli.main",):
            inner = _program_at(("vllm", *words[place + 1 :]))
            return (inner[0], place + inner[1]) if inner else None
    return None
