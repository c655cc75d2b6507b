"""A mistake of the user's is one line on stderr and exit code 2, and nothing is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmsim.policies.core import specs
from llmsim.tests.support.command_line import contents, llmsim
from llmsim.tests.support.scenario_files import MINIMAL, write_scenario

Capture = pytest.CaptureFixture[str]
MODELS, GPUS = ", ".join(specs.model_names()), ", ".join(specs.gpu_names())


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`results/`, the default, would be made in the test's own folder."""
    monkeypatch.chdir(tmp_path)


def refusal(capsys: Capture, folder: Path, *arguments: object) -> str:
    """The one line that a mistake gets; asserts all that must hold beside what it says."""
    before = contents(folder), sorted(os.listdir(folder))
    done = llmsim(capsys, *arguments)
    assert (contents(folder), sorted(os.listdir(folder))) == before
    assert done.code == 2, done.err
    assert done.out == ""
    lines = done.err.splitlines()
    assert len(lines) == 1, done.err
    assert lines[0].startswith("error: ")
    return lines[0].removeprefix("error: ")


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("engine.max_num_seq=8", "engine.max_num_seq: unknown key; did you mean 'max_num_seqs'?"),
        ("polices.eviction.name=lru", "polices: unknown key; did you mean 'policies'?"),
        (
            "policies.eviction.name=lur",
            "policies.eviction.name: 'lur' is unknown; choose "
            "cost_aware, fifo, filo, length_aware, lfu, lru, mru, priority, random, slru",
        ),
        ("policies.batching.name=unifed", "policies.batching.name: 'unifed' is unknown; choose prefill_first, static"),
        ("policies.chunk_size={name: fixed, token: 8}", "policies.chunk_size.token: fixed has no such parameter"),
        ("policies.chunk_size={name: fixed, tokens: 0}", "policies.chunk_size.tokens: 0 is out of range"),
        ("engine.max_num_seqs=0", "engine.max_num_seqs: 0 is out of range: must be at least 1"),
        ("engine.gpu_memory_utilization=1.5", "engine.gpu_memory_utilization: 1.5 is out of range"),
        ("engine={max_num_seqs: 8, max_num_batched_tokens: 1}", "engine.max_num_batched_tokens: 1 is out of range"),
        ("workload.rate=.nan", "workload.rate: must be a finite number, not nan"),
        ("workload.prompt_tokens=0", "workload.prompt_tokens: 0 is out of range: must be at least 1"),
        ("workload.output_tokens=0", "workload.output_tokens: 0 is out of range: must be at least 1"),
        ("hardware.gpu=voodoo2", f"hardware.gpu: 'voodoo2' is unknown; choose {GPUS}"),
        ("model=gpt-5", f"model: 'gpt-5' is unknown; choose {MODELS}"),
        ("engine.num_gpu_blocks_override=1000000000000", "model: tiny does not fit h100-sxm"),
        ("nonsense", "--set nonsense: write --set key.path=value"),
        ("model.x=1", "model: holds 'tiny', not a mapping of keys"),
        ("run.seed=[1", "--set run.seed=[1: line 1: "),
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_wrong_value_is_named_with_its_key(
    tmp_path: Path, capsys: Capture, command: str, override: str, says: str
) -> None:
    path = write_scenario(tmp_path)
    assert says in refusal(capsys, tmp_path, command, path, "--set", override)


@pytest.mark.parametrize(
    ("model", "utilization", "says"),
    [("llama-3.1-8b", 0.1, "weights 14.96 GiB + "), ("tiny", 0.001, "(2 blocks) exceed 0.08 GiB (0.001 of ")],
)
def test_a_model_that_does_not_fit_the_gpu_is_refused_with_the_numbers(
    tmp_path: Path, capsys: Capture, model: str, utilization: float, says: str
) -> None:
    settings = ["--set", f"model={model}", "--set", f"engine.gpu_memory_utilization={utilization}"]
    line = refusal(capsys, tmp_path, "run", write_scenario(tmp_path), *settings)
    assert f"{model} does not fit h100-sxm" in line
    assert says in line


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty"),
        (b"- 1\n", "holds a list, not a mapping"),
        (b"name: caf\xe9\n", "line 1: byte 0xe9 is not UTF-8"),
        (b"name: [1\n", "line 2: "),
        (b"name: a\nname: b\n", "line 2: the key 'name' is given twice"),
    ],
)
def test_a_broken_scenario_file_is_named(tmp_path: Path, capsys: Capture, raw: bytes | None, says: str) -> None:
    path = tmp_path / "s.yaml"
    if raw is not None:
        path.write_bytes(raw)
    line = refusal(capsys, tmp_path, "run", path)
    assert line.startswith(f"{path}: ")
    assert says in line


def test_a_folder_is_no_scenario(tmp_path: Path, capsys: Capture) -> None:
    assert refusal(capsys, tmp_path, "run", tmp_path) == f"{tmp_path}: cannot be read: Is a directory"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "Missing argument"),
        (["run", "s.yaml", "--bogus"], "No such option: --bogus"),
        (["run", "s.yaml", "--set"], "--set"),
        (["run", "s.yaml", "more"], "unexpected extra argument"),
        (["runn", "s.yaml"], "No such command 'runn'"),
        (["--bogus"], "No such option: --bogus"),
        (["list", "cities"], "'cities' is unknown; choose models, gpus, profiles, policies"),
        (["decisions", "x.json", "--preset", "orca"], "'orca' is unknown; choose vllm"),
        (["plot", "nowhere"], "nowhere: is not a result folder"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(
    tmp_path: Path, capsys: Capture, arguments: list[str], says: str
) -> None:
    write_scenario(tmp_path)
    assert says in refusal(capsys, tmp_path, *arguments)


@pytest.mark.parametrize("output", ["s.yaml/out", ".", "..", "x" * 300])
@pytest.mark.parametrize(
    "more",
    [[], ["--force"], ["--set", "run.warmup_s=auto"], ["--replications", "2"]],
    ids=["plain", "force", "automatic warm-up", "replications"],
)
def test_a_result_folder_that_cannot_be_made_stops_the_run_before_it_starts(
    tmp_path: Path, capsys: Capture, output: str, more: list[str]
) -> None:
    path = write_scenario(tmp_path, MINIMAL.replace("independent", "independent, requests: 1000000"))
    line = refusal(capsys, tmp_path, "run", path, "-o", output, *more)
    assert line.startswith(f"{output}: ")


@pytest.mark.parametrize(
    "command",
    [
        "cache nowhere",
        "plot half",
        "workload nowhere",
        "calibrate show nowhere",
        "calibrate validate --run nowhere",
        "calibrate fit-run --run nowhere --force",
        "import orca --force",
    ],
)
@pytest.mark.parametrize("output", ["nowhere/x.png", "folder"])
def test_a_file_that_cannot_be_written_is_told_before_the_work(
    tmp_path: Path, capsys: Capture, command: str, output: str
) -> None:
    """So early that what is wrong with the input is not found yet."""
    for folder in ("half", "folder"):
        (tmp_path / folder).mkdir()
    (tmp_path / "half" / "summary.json").write_text("{}")
    why = "Is a directory" if output == "folder" else "No such file or directory"
    assert refusal(capsys, tmp_path, *command.split(), "-o", output) == f"{output}: cannot be made: {why}"


@pytest.mark.parametrize(
    "command", ["calibrate import nowhere", "calibrate fit nowhere", "workload fit half.jsonl --format mooncake"]
)
def test_what_is_made_with_its_folders_is_told_before_the_work(tmp_path: Path, capsys: Capture, command: str) -> None:
    (tmp_path / "half.jsonl").write_text("{}\n")
    (tmp_path / "file").write_text("kept")
    line = refusal(capsys, tmp_path, *command.split(), "-o", "file/below/x.yaml")
    assert line == "file/below/x.yaml: cannot be made: Not a directory"


def test_an_existing_folder_is_refused_without_force_and_replaced_with_it(tmp_path: Path, capsys: Capture) -> None:
    path = write_scenario(tmp_path)
    assert llmsim(capsys, "run", path, "-o", "out", "--set", "workload.requests=3").code == 0
    old = contents(tmp_path / "out")
    line = refusal(capsys, tmp_path, "run", path, "-o", "out", "--set", "workload.requests=4")
    assert line == "out: exists already; choose another folder, or --force to replace it"
    done = llmsim(capsys, "run", path, "-o", "out", "--set", "workload.requests=4", "--force")
    assert done.code == 0
    new = contents(tmp_path / "out")
    assert set(new) == set(old)
    assert new["summary.json"] != old["summary.json"]
    assert sorted(os.listdir(tmp_path)) == ["out", "s.yaml"]


def test_force_does_not_replace_what_is_no_result(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    line = refusal(capsys, tmp_path, "run", write_scenario(tmp_path), "-o", "home", "--force")
    assert line == "home: is not a result folder, so --force does not replace it"


def test_a_run_of_more_than_a_hundred_years_is_refused(tmp_path: Path, capsys: Capture) -> None:
    path = write_scenario(tmp_path)
    settings = ["workload.rate=1e-6", "workload.requests=20000", "workload.output_tokens=1"]
    line = refusal(capsys, tmp_path, "run", path, *(part for text in settings for part in ("--set", text)))
    assert line.startswith("workload: request 3,")
    assert line.endswith("would arrive after more than 100 years")
