"""`llmsim generate`: answers in text, from the same core, driver and executor that runs go through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..policies.core.config import Policies
from ..policies.core.engine import EngineCore
from ..policies.core.model_spec import ModelSpec
from ..policies.core.records import RequestRecord, Status
from ..policies.core.request import Arrival, Output, Prompt, Request
from ..real_engine.contract import StepFailed
from ..real_engine.driver import WallClockDriver
from ..real_engine.sampling import Sampled
from ..real_engine.sampling_params import GREEDY, SamplingParams
from ..real_engine.wall_clock import WallClock
from .errors import ScenarioError
from .loading import scenario_from
from .real_options import RealOptions
from .real_setup import RealSetup, freed, real_engine_asked, real_setup
from .schema import Scenario
from .stopping import stopped_by_signals
from .unrecorded import Unrecorded

if TYPE_CHECKING:
    from ..real_engine.tokenizing import TextStream, Tokenizer

BLOCK_SIZE = 16
USUAL_TOKENS = 256
MOST_KV_TOKENS = 1 << 16
"""KV memory for all prompts at once, unless one alone needs more: beyond that they wait for one another."""
OnText = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a model."""

    model: Path
    """A folder with config.json, safetensors and tokenizer.json."""
    prompts: tuple[str, ...]
    max_tokens: int | None = None
    """The most that an answer may have; None: `USUAL_TOKENS`, or fewer where the model does not reach as far."""
    sampling: SamplingParams = GREEDY
    """The n-th prompt, counted from 0, draws with the n-th seed from this one on."""
    chat: bool | None = None
    """Whether prompts are messages to the model's chat template; None: where it has one."""


@dataclass(slots=True)
class Answer:
    """A prompt and what came of it."""

    prompt: str
    prompt_tokens: list[int]
    stream: TextStream
    max_tokens: int
    text: str = ""
    num_tokens: int = 0
    finish: str = "interrupted"
    """`stop`: the model ended it; `length`: `max_tokens` did."""
    ttft_s: float | None = None
    e2e_s: float | None = None


@dataclass(slots=True)
class Generation(Unrecorded):
    """The answers as they grow: workload and recorder of the run that makes them."""

    answers: list[Answer]
    on_text: OnText
    on_end: Callable[[int], None]
    stops: frozenset[int]
    last: dict[int, int] = field(default_factory=dict)

    def arrivals(self) -> Iterator[Arrival]:
        """All prompts at once."""
        for index, answer in enumerate(self.answers):
            prompt = Prompt.of_tokens(answer.prompt_tokens)
            request = Request(str(index), 0, prompt, answer.max_tokens, output_content=-1 - index)
            yield Arrival(0, request, Output(answer.max_tokens))

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Nothing follows."""
        return ()

    def on_token(self, request_id: str, token: int) -> None:
        """A token of an answer."""
        index = int(request_id)
        answer = self.answers[index]
        answer.num_tokens += 1
        self.last[index] = token
        if token not in self.stops:
            self._add(index, answer.stream.add(token))

    def on_request(self, record: RequestRecord) -> None:
        """An answer is done."""
        index = int(record.request_id)
        answer = self.answers[index]
        self._add(index, answer.stream.finish())
        if record.status is Status.FINISHED:
            answer.finish = "stop" if self.last[index] in self.stops else "length"
        if record.first_token_ns is not None and record.last_token_ns is not None:
            answer.ttft_s, answer.e2e_s = record.first_token_ns / 1e9, record.last_token_ns / 1e9
        self.on_end(index)

    def _add(self, index: int, text: str) -> None:
        if text:
            self.answers[index].text += text
            self.on_text(index, text)


@dataclass(frozen=True, slots=True)
class Generated:
    """All answers, in the order of the prompts, and what gave them."""

    answers: list[Answer]
    device: str
    kernels: str
    dtype: str
    interrupted: bool


def generate(
    asked: Asked,
    options: RealOptions,
    *,
    on_text: OnText,
    on_end: Callable[[int], None],
    warn: Callable[[str], None],
) -> Generated:
    """Answer all prompts, batched by the core. Raises ScenarioError.

    `on_text(index, text)` as text comes, `on_end(index)` when an answer is whole. The first Ctrl-C leaves it at what
    has been said.
    """
    if not asked.model.is_dir():
        raise ScenarioError("--model", None, f"there is no folder {asked.model}")
    with real_engine_asked():
        from ..real_engine.model.loading import config_of
        from ..real_engine.tokenizing import Tokenizer

        config = config_of(asked.model)
        answers = _answers(asked, Tokenizer.of_folder(asked.model), config.spec)
    scenario = _scenario(asked, answers)
    setup = real_setup(scenario, options, warn)
    if not setup.has_weights:
        raise ScenarioError("--model", None, f"{asked.model} holds no safetensors")
    with real_engine_asked(scenario):
        from ..real_engine.building import build_engine

        built = build_engine(
            *(setup.source, setup.assembly.config, setup.found),
            dtype=setup.device.dtype,
            backend=options.kernels,
            outputs="sampled",
            seed=0,
            random=False,
            warn=warn,
            stop_tokens=config.eos_token_ids,
        )
    generation = Generation(answers, on_text, on_end, frozenset(config.eos_token_ids))
    executor = Sampled(built.executor, lambda request: _params(asked.sampling, int(request.id)))
    with freed(executor):
        interrupted = _driven(setup, executor, generation)
    return Generated(answers, setup.device.name, built.kernels, setup.device.dtype, interrupted)


def _driven(setup: RealSetup, executor: Sampled, generation: Generation) -> bool:
    assembly = setup.assembly
    core = EngineCore(assembly.config, Policies.of(assembly.policies), tells_grants=True)
    driver = WallClockDriver(*(core, executor, generation, generation), clock=WallClock(), on_token=generation.on_token)
    try:
        with stopped_by_signals(driver.stop):
            driver.run()
    except StepFailed as error:
        raise ScenarioError(None, "generate", str(error)) from error
    return driver.interrupted


def _answers(asked: Asked, tokenizer: Tokenizer, spec: ModelSpec) -> list[Answer]:
    """The prompts as tokens, the answers still empty. Raises ScenarioError for what the model cannot take."""
    longest = spec.max_position_embeddings
    is_chat = tokenizer.has_chat_template if asked.chat is None else asked.chat
    answers = []
    for number, prompt in enumerate(asked.prompts, 1):
        message = [{"role": "user", "content": prompt}]
        tokens = tokenizer.encode_chat(message) if is_chat else tokenizer.encode(prompt)
        if not tokens:
            raise ScenarioError(None, f"prompt {number}", "is empty")
        if max(tokens) >= spec.vocab_size:
            says = f"the tokenizer's token {max(tokens)} is beyond the model's vocabulary of {spec.vocab_size:,}"
            raise ScenarioError(None, f"prompt {number}", says)
        max_tokens = asked.max_tokens or max(1, min(USUAL_TOKENS, longest - len(tokens)))
        if len(tokens) + max_tokens > longest:
            says = f"its {len(tokens):,} tokens and {max_tokens:,} of an answer exceed the model's {longest:,}"
            raise ScenarioError(None, f"prompt {number}", says)
        answers.append(Answer(prompt, tokens, tokenizer.stream(), max_tokens))
    return answers


def _params(sampling: SamplingParams, index: int) -> SamplingParams:
    return SamplingParams(sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed + index)


def _scenario(asked: Asked, answers: Sequence[Answer]) -> Scenario:
    """A scenario like any other, with KV memory for the prompts at hand; the device takes the GPU's place."""
    totals = [len(answer.prompt_tokens) + answer.max_tokens for answer in answers]
    num_tokens = max(max(totals), min(sum(totals), MOST_KV_TOKENS))
    blocks = -(-num_tokens // BLOCK_SIZE) + len(answers) + 1
    return scenario_from(
        {
            "name": "generate",
            "model": str((asked.model / "config.json").absolute()),
            "hardware": {"gpu": "h200-sxm"},
            "engine": {"preset": "vllm", "block_size": BLOCK_SIZE, "num_gpu_blocks_override": blocks},
            "workload": {"type": "independent"},
        }
    )
