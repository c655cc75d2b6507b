"""`llmsim calibrate`, and scenarios with a profile, from the command line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.profiles import write_fitted, write_table
from llmsim.tests.support.scenario_files import write_scenario

PROFILED = """
name: profiled
model: tiny
hardware: {profile: profile}
engine: {num_gpu_blocks_override: 2000, max_num_seqs: 32}
workload: {type: independent, rate: 200, requests: 40, prompt_tokens: 300, output_tokens: 20}
"""


def test_a_table_becomes_a_profile_a_picture_and_a_run(tmp_path, capsys):
    table, profile, picture = write_table(tmp_path / "table"), tmp_path / "profile", tmp_path / "p.png"
    fitted = llmsim(capsys, "calibrate", "fit", table, "-o", profile, "--json")
    assert fitted.code == 0
    assert "median error" in fitted.err
    assert fitted.json()["fit"]["held_out"]["points"] > 0
    shown = llmsim(capsys, "calibrate", "show", profile, "-o", picture, "--json")
    assert shown.code == 0
    assert shown.json()["fit"] == fitted.json()["fit"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    ran = llmsim(capsys, "run", write_scenario(tmp_path, PROFILED), "-o", tmp_path / "out", "--json")
    assert ran.code == 0
    summary = ran.json()
    assert summary["gpu"] == "h100-sxm"
    assert summary["priced_by"] == "profile"
    shares = summary["step_time_from"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["measured"] > 0
    assert shares["interpolated"] > 0
    assert "step time: " in ran.err


def test_without_a_profile_all_time_is_from_the_data_sheet(tmp_path, capsys):
    scenario = write_scenario(tmp_path, PROFILED.replace("profile: profile", "gpu: h100-sxm"))
    ran = llmsim(capsys, "run", scenario, "-o", tmp_path / "out", "--json")
    assert ran.json()["step_time_from"]["data_sheet"] == 1
    assert "step time: " not in ran.err


@pytest.mark.parametrize("batching", ["", "--journal"])
def test_shares_are_the_same_in_stretches_and_step_by_step(tmp_path, capsys, batching):
    write_fitted(tmp_path / "profile")
    scenario = write_scenario(tmp_path, PROFILED)
    ran = llmsim(capsys, "run", scenario, "-o", tmp_path / "out", "--json", *batching.split())
    again = llmsim(capsys, "run", scenario, "-o", tmp_path / "again", "--json")
    assert ran.json() == again.json()


@pytest.mark.parametrize(
    ("override", "says"),
    [
        (
            "model=llama-3.1-8b",
            "hardware.profile: {folder}/profile: is a profile of tiny: its hidden_size is 256, that of",
        ),
        (
            "hardware.tensor_parallel=2",
            "hardware.profile: {folder}/profile: was measured with tensor_parallel 1, not 2",
        ),
        ("engine.kv_cache_dtype=fp8", "hardware.profile: {folder}/profile: was measured with a KV cache of 2 bytes"),
        ("hardware.gpu=a100-80g", "hardware.gpu: 'a100-80g' is not the h100-sxm that {folder}/profile was measured on"),
        ("hardware.profile=nowhere", "hardware.profile: there is no file {folder}/nowhere"),
        (
            "hardware.profile=table",
            "hardware.profile: {folder}/table: is a table of timings, not a fitted profile; see",
        ),
        ("hardware.profile=s.yaml", "hardware.profile: {folder}/s.yaml: is not the folder of a profile, nor its"),
    ],
)
def test_a_profile_that_does_not_go_with_the_scenario_is_one_line(tmp_path, capsys, override, says):
    write_fitted(tmp_path / "profile")
    write_table(tmp_path / "table")
    ran = llmsim(capsys, "run", write_scenario(tmp_path, PROFILED), "-o", tmp_path / "out", "--set", override)
    assert ran.code == 2
    assert ran.err.startswith(f"error: {tmp_path}/s.yaml: " + says.format(folder=tmp_path))
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def spoiled(folder: Path, old: str, new: str) -> Path:
    """A table one of whose rows says something else."""
    file = write_table(folder) / "timings.csv.gz"
    text = gzip.decompress(file.read_bytes()).decode()
    assert old in text
    file.write_bytes(gzip.compress(text.replace(old, new, 1).encode()))
    return folder


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("kernel,", "", "timings.csv.gz: column kernel is missing"),
        ("embedding,1,,,,,,,5.", "embedding,1,,,,,,,-5.", "row 2: time_us is -5.0"),
        ("embedding,1,,,,,,,5.", "embedding,1,,,,,,,0.0", "row 2: embedding takes 6.1"),
        ("embedding,1,,,,,,,5.", "embedding,1,,,,,,,5555.", "row 2: embedding takes 5555"),
        ("embedding,2,", "embedding,2.5,", "row 3: tokens is '2.5'; it must be a whole number"),
        ("embedding,2,", "embeding,2,", "row 3: kernel 'embeding' is unknown; choose embedding, norm"),
        ("embedding,2,", "embedding,1e306,", "row 3: tokens is 1e306; it must be at most 1,000,000,000"),
        ("embedding,2,,", "embedding,2,7,", "row 3: embedding has no experts; leave the cell empty"),
    ],
)
def test_a_table_with_a_fault_is_told_in_one_line_and_nothing_is_written(tmp_path, capsys, old, new, says):
    table = spoiled(tmp_path / "table", old, new)
    fitted = llmsim(capsys, "calibrate", "fit", table, "-o", tmp_path / "profile")
    assert fitted.code == 2
    assert says in fitted.err
    assert fitted.err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("gpu: h100-sxm", "gpu: voodoo2", "GPU 'voodoo2' is unknown"),
        ("format: 1", "format: 2", "profile.yaml: format: Input should be 1"),
        ("software:", "softwear:", "profile.yaml: software: Field required"),
        ("name:", "[", "profile.yaml: is not YAML"),
    ],
)
def test_a_header_with_a_fault_is_told_in_one_line(tmp_path, capsys, old, new, says):
    header = write_table(tmp_path / "table") / "profile.yaml"
    header.write_text(header.read_text().replace(old, new, 1))
    fitted = llmsim(capsys, "calibrate", "fit", tmp_path / "table", "-o", tmp_path / "profile")
    assert fitted.code == 2
    assert says in fitted.err
    assert fitted.err.count("\n") == 1


def test_nothing_is_replaced_unless_asked_for_and_only_a_profile(tmp_path, capsys):
    table = write_table(tmp_path / "table")
    (tmp_path / "mine").mkdir()
    for arguments, says in (
        ((table,), "exists already; choose another folder, or --force to replace it"),
        ((tmp_path / "mine", "--force"), "is no profile, so --force does not replace it"),
    ):
        refused = llmsim(capsys, "calibrate", "fit", table, "-o", *arguments)
        assert (refused.code, refused.err.count(says)) == (2, 1)
    profile = write_fitted(tmp_path / "profile")
    options = ("--force", "--seed", 5, "--unequal-contexts")
    assert llmsim(capsys, "calibrate", "fit", table, "-o", profile, *options).code == 0
    header = (profile / "profile.yaml").read_text()
    assert "seed: 5" in header
    assert "unequal_contexts: {applied: true" in header


def test_importing_something_unknown_is_one_line(tmp_path, capsys):
    imported = llmsim(capsys, "calibrate", "import", tmp_path, "-o", tmp_path / "table")
    assert imported.code == 2
    assert "is none of the known sources" in imported.err
    assert imported.err.count("\n") == 1


def test_a_fitted_profile_is_not_fitted_again(tmp_path, capsys):
    refused = llmsim(capsys, "calibrate", "fit", "cpu-reference", "-o", tmp_path / "refit")
    assert refused.code == 2
    assert refused.err.endswith("cpu-reference: is a fitted profile already; fit takes a table of timings\n")
    assert refused.err.count("\n") == 1
    assert not (tmp_path / "refit").exists()


def test_a_profile_that_comes_with_the_package_is_shown_by_name_and_in_words(capsys):
    shown = llmsim(capsys, "calibrate", "show", "cpu-reference")
    assert shown.code == 0
    for words in (
        "whole steps",
        "groups of rows (and what those left over cost at most): qkv 4 (",
        "unequal contexts cost more: decodes ",
        "context in the same KV blocks costs ",
    ):
        assert words in shown.err


@pytest.mark.parametrize("command", [("fit", "-o", "profile"), ("show",)])
@pytest.mark.parametrize("given", ["table", "table/profile.yaml"])
def test_a_profile_that_was_broken_off_is_told_apart_from_none(tmp_path, capsys, monkeypatch, command, given):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "points.jsonl").write_text('{"profile": {}}\n')
    told = llmsim(capsys, "calibrate", command[0], given, *command[1:])
    says = "holds an unfinished profile; the same `llmsim profile` command in the same folder finishes it"
    assert (told.code, told.err) == (2, f"error: {given}: {says}\n")


def test_a_spoiled_archive_is_one_line(tmp_path, capsys):
    file = write_table(tmp_path / "table") / "timings.csv.gz"
    read = bytearray(file.read_bytes())
    read[20:60] = bytes(byte ^ 0xFF for byte in read[20:60])
    file.write_bytes(read)
    told = llmsim(capsys, "calibrate", "fit", tmp_path / "table", "-o", tmp_path / "profile")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert f"{file}: is not a CSV: " in told.err


def test_a_name_of_nothing_is_one_line(capsys):
    told = llmsim(capsys, "calibrate", "show", "nowhere")
    says = "is neither the folder of a profile or table nor a name of `llmsim list profiles`"
    assert (told.code, told.err) == (2, f"error: nowhere: {says}\n")
