"""`llmsim generate`: answers in text from a model in a folder, by the real engine."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ..real_engine.sampling_params import SamplingParams
from ..scenarios.errors import ScenarioError
from ..scenarios.generating import Asked, Generated, generate
from ..scenarios.stopping import RunInterrupted
from .options import AsJson
from .real_options import DeviceOption, DtypeOption, Engine, KernelsOption, MemoryOption, real_options, show_shortage
from .speech import print_json, say, warn

SHOWN = 60
"""Characters of a prompt that stand above its answer."""


def generate_command(
    prompts: Annotated[list[str], typer.Argument(help="One or more, answered together.", show_default=False)],
    model: Annotated[
        Path,
        typer.Option("--model", help="A folder with config.json, safetensors, tokenizer.json.", show_default=False),
    ],
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="The most that an answer may have; 256 if left out, or what the model reaches."),
    ] = None,
    temperature: Annotated[float, typer.Option(help="0: the likeliest token each time.")] = 0.0,
    top_k: Annotated[int, typer.Option(help="Draw from so many of the likeliest; 0: from all.")] = 0,
    top_p: Annotated[float, typer.Option(help="Draw from the fewest that hold so much of the probability.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    chat: Annotated[
        bool | None,
        typer.Option("--chat/--raw", help="As a message, or as it stands. By the model's template if left out."),
    ] = None,
    device: DeviceOption = None,
    kernels: KernelsOption = None,
    dtype: DtypeOption = None,
    device_memory: MemoryOption = None,
    as_json: AsJson = False,
) -> None:
    """Answer prompts in text, printed as it comes; several are batched, and printed in their order.

    Example: llmsim generate --model ./smollm2 "Why is the sky blue?" --max-tokens 64
    """
    options = real_options(Engine.REAL, device, kernels, None, dtype, None, device_memory)
    assert options is not None
    try:
        sampling = SamplingParams(temperature, top_k, top_p, seed)
        replace(sampling, seed=seed + len(prompts) - 1)  # the last prompt's is a seed, too
    except ValueError as error:
        key, _, says = str(error).partition(": ")
        raise ScenarioError(None, f"--{key.replace('_', '-')}", says) from None
    asked = Asked(model, tuple(prompts), max_tokens, sampling, chat)
    printer = Printer([] if as_json else prompts)
    try:
        done = generate(asked, options, on_text=printer.text, on_end=printer.end, warn=warn)
    except ScenarioError as error:
        show_shortage(error)
        raise
    if as_json:
        print_json(report(asked, done))
    if done.interrupted:
        raise RunInterrupted("interrupted")


def report(asked: Asked, done: Generated) -> dict[str, Any]:
    """The answers as JSON."""
    answers = [
        {"prompt": a.prompt, "text": a.text, "finish": a.finish, "num_prompt_tokens": len(a.prompt_tokens)}
        | {"num_tokens": a.num_tokens, "ttft_s": a.ttft_s, "e2e_s": a.e2e_s}
        for a in done.answers
    ]
    where = {"model": str(asked.model), "device": done.device, "kernels": done.kernels, "dtype": done.dtype}
    return where | {"sampling": asdict(asked.sampling), "interrupted": done.interrupted, "answers": answers}


class Printer:
    """Prints answers on stdout in the order of their prompts: the first that is not whole as it comes, others then."""

    def __init__(self, prompts: list[str]) -> None:
        """Nothing is printed of a prompt that is not among these."""
        self._prompts = prompts
        self._held = [""] * len(prompts)
        self._is_whole = [False] * len(prompts)
        self._shown = 0
        self._has_head = False

    def text(self, index: int, text: str) -> None:
        """More of an answer."""
        if index >= len(self._prompts):
            return
        if index == self._shown:
            self._print(text)
        else:
            self._held[index] += text

    def end(self, index: int) -> None:
        """An answer is whole."""
        if index >= len(self._prompts):
            return
        self._is_whole[index] = True
        while self._shown < len(self._prompts) and self._is_whole[self._shown]:
            self._print("\n")
            self._shown += 1
            self._has_head = False
            if self._shown < len(self._prompts):
                self._print(self._held[self._shown])

    def _head(self) -> None:
        """Above each of several answers, for people, its prompt."""
        if len(self._prompts) > 1:
            prompt = " ".join(self._prompts[self._shown].split())
            say(f"{self._shown + 1}: {prompt[:SHOWN]}{'…' * (len(prompt) > SHOWN)}")

    def _print(self, text: str) -> None:
        if not self._has_head:
            self._head()
            self._has_head = True
        sys.stdout.write(text)
        sys.stdout.flush()
