"""`llmsim generate`, on a random model that says one byte after another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmsim.cli.generate import Printer
from llmsim.tests.support.command_line import llmsim

pytest.importorskip("torch")
import tokenizers

from llmsim.real_engine.tokenizing import Tokenizer
from llmsim.tests.support.text_model import text_model

Capture = pytest.CaptureFixture[str]
PROMPTS = ("Hello", "How are you?", "x")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return text_model(tmp_path_factory.mktemp("model"))


def answers(capsys: Capture, folder: Path, *arguments: object) -> list[dict[str, Any]]:
    done = llmsim(capsys, "generate", "--model", folder, "--device", "cpu", "--json", *arguments)
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = done.json()["answers"]
    return found


def test_an_answer_is_printed_as_it_is_in_json(capsys: Capture, folder: Path) -> None:
    (answer,) = answers(capsys, folder, "Hello", "--max-tokens", 12)
    assert (answer["num_prompt_tokens"], answer["num_tokens"], answer["finish"]) == (5, 12, "length")
    done = llmsim(capsys, "generate", "--model", folder, "Hello", "--device", "cpu", "--max-tokens", 12)
    assert (done.code, done.out, done.err) == (0, answer["text"] + "\n", "")


def test_prompts_that_are_batched_are_answered_as_they_are_alone(capsys: Capture, folder: Path) -> None:
    together = answers(capsys, folder, *PROMPTS, "--max-tokens", 20)
    alone = [answers(capsys, folder, prompt, "--max-tokens", 20)[0]["text"] for prompt in PROMPTS]
    assert [answer["text"] for answer in together] == alone
    done = llmsim(capsys, "generate", "--model", folder, *PROMPTS, "--device", "cpu", "--max-tokens", 20)
    assert done.out == "".join(f"{text}\n" for text in alone)
    assert done.err == "1: Hello\n2: How are you?\n3: x\n"


def test_an_answer_ends_with_the_token_that_the_model_names(capsys: Capture, folder: Path, tmp_path: Path) -> None:
    arguments = ("Hello", "--max-tokens", 40, "--temperature", 5, "--seed", 1)
    (whole,) = answers(capsys, folder, *arguments)
    last = Tokenizer.of_folder(folder).encode(whole["text"])[20]
    (answer,) = answers(capsys, text_model(tmp_path / "ending", eos_token_id=last), *arguments)
    assert answer["finish"] == "stop"
    assert answer["num_tokens"] <= 21
    assert whole["text"].startswith(answer["text"].rstrip("\ufffd"))


def test_an_answer_may_be_as_long_as_the_model_reaches(capsys: Capture, folder: Path) -> None:
    (answer,) = answers(capsys, folder, "Hello")
    assert answer["num_tokens"] == 256 - 5
    done = llmsim(capsys, "generate", "--model", folder, "x" * 256)
    assert done.err == "error: prompt 1: its 256 tokens and 1 of an answer exceed the model's 256\n"


def test_draws_follow_the_seed(capsys: Capture, folder: Path) -> None:
    arguments = ("Hello", "Hello", "--max-tokens", 20, "--temperature", 2)
    first, again = answers(capsys, folder, *arguments), answers(capsys, folder, *arguments)
    assert [answer["text"] for answer in first] == [answer["text"] for answer in again]
    assert first[0]["text"] != first[1]["text"]
    assert first[1]["text"] == answers(capsys, folder, *arguments, "--seed", 1)[0]["text"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--max-tokens", 1000], "prompt 1: its 5 tokens and 1,000 of an answer exceed the model's 256"),
        (["--temperature", -1], "--temperature: -1.0 is out of range; from 0 to 100"),
        (["--top-p", 0], "--top-p: 0.0 is out of range; above 0, at most 1"),
        (["too", "--seed", (1 << 63) - 1], f"--seed: {1 << 63} does not fit 64 bits"),
        (["x" * 300], "prompt 2: its 300 tokens"),
        (["--device-memory", "inf"], "'--device-memory'"),
        (["--chat"], "there is no chat template; give a plain prompt"),
        (["--device", "tpu"], "--device: 'tpu' is unknown; choose auto, cpu, cuda, cuda:1"),
        (["--device", "cpu", "--kernels", "triton"], "error: --kernels: backend triton: the device"),
    ],
)
def test_a_mistake_is_one_line(capsys: Capture, folder: Path, arguments: list[object], says: str) -> None:
    done = llmsim(capsys, "generate", "--model", folder, "Hello", *arguments)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert says in done.err


def test_a_folder_that_lacks_something_is_named(capsys: Capture, folder: Path, tmp_path: Path) -> None:
    for missing, says in (
        ("tokenizer.json", "there is no tokenizer.json"),
        ("config.json", "config.json"),
        ("model.safetensors", "holds no safetensors"),
    ):
        copy = tmp_path / missing
        copy.mkdir()
        for path in folder.iterdir():
            if path.name != missing:
                (copy / path.name).write_bytes(path.read_bytes())
        done = llmsim(capsys, "generate", "--model", copy, "Hello")
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert says in done.err
        assert str(copy) in done.err
    done = llmsim(capsys, "generate", "--model", tmp_path / "nowhere", "Hello")
    assert done.err == f"error: --model: there is no folder {tmp_path / 'nowhere'}\n"


def test_a_token_that_only_the_tokenizer_knows_is_refused(capsys: Capture, tmp_path: Path) -> None:
    folder = text_model(tmp_path / "model")
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["<extra>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    done = llmsim(capsys, "generate", "--model", folder, "Hello<extra>")
    says = "error: prompt 1: the tokenizer's token 256 is beyond the model's vocabulary of 256\n"
    assert (done.code, done.err) == (2, says)


def test_of_several_answers_the_first_comes_as_it_is_said_and_the_others_are_held_back(capsys: Capture) -> None:
    printer = Printer(["a", "b", "c"])
    for index, text in ((0, "one "), (1, "two"), (0, "more"), (2, "three")):
        printer.text(index, text)
    printer.end(1)
    assert capsys.readouterr().out == "one more"
    printer.end(0)
    assert capsys.readouterr().out == "\ntwo\nthree"
    printer.text(2, "!")
    printer.end(2)
    assert capsys.readouterr().out == "!\n"
