"""What benchmarks of both projects share: when requests come, how long they are, which files they are read from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import ScenarioError
from .draft import Draft
from .flags import NO_MEANING, NOT_SUPPORTED, Answers, AsIs, ByCode, Carried, Rule, dropped
from .values import number, text, whole

Workload = dict[str, Any]

DEFAULT_WORKLOAD: Workload = {"type": "independent", "rate": 4.0, "prompt_tokens": 512, "output_tokens": 128}
ALL = -1
"""`--num-prompts` where a dataset is to be sent as a whole."""
AT_ONCE = 1_000_000
"""Requests a second of a trace that is to come all at once: the most that a rate can be."""
_FLAGS_OF = {
    "rate": ("request-rate",),
    "burstiness": ("burstiness",),
    "max_concurrency": ("max-concurrency",),
    "requests": ("num-prompts", "batch-size"),
    "limit": ("num-prompts",),
    "path": ("dataset-path",),
    "prompt_tokens": ("random-input-len", "input-len"),
    "output_tokens": ("random-output-len", "output-len"),
    "num_groups": ("gsp-num-groups", "prefix-repetition-num-prefixes"),
    "prompts_per_group": ("gsp-prompts-per-group", "num-prompts"),
    "system_prompt_len": (
        "gsp-system-prompt-len",
        "prefix-repetition-prefix-len",
        "random-prefix-len",
        "prefix-len",
    ),
    "question_len": ("gsp-question-len", "prefix-repetition-suffix-len", "random-input-len", "input-len"),
    "output_len": ("gsp-output-len", "prefix-repetition-output-len", "random-output-len", "output-len"),
    "block_tokens": ("timed-trace-chunk-hash-size",),
    "time_scale": ("timed-trace-sec-multiplier", "mooncake-slowdown-factor"),
}
"""The flags that may be behind a key of a workload: the first of them that was given is."""
_SLOS = {"ttft": "ttft_s", "tpot": "tpot_s", "e2el": "e2e_s"}


def rate(given: str) -> float | str:
    """Requests a second, or `inf`; raises ValueError."""
    return "inf" if float(given) == math.inf else number(given)


PACE: dict[str, Rule] = {
    "num-prompts": ByCode(whole),
    "request-rate": ByCode(rate),
    "max-concurrency": ByCode(whole),
    "goodput": ByCode(text, "several"),
    "dataset-name": ByCode(text),
    "dataset-path": ByCode(text),
    "random-input-len": ByCode(whole),
    "random-output-len": ByCode(whole),
    "random-range-ratio": ByCode(text),
    "sharegpt-output-len": ByCode(whole),
    "seed": ByCode(whole),
}

CLIENT: dict[str, Rule] = {
    "model": Carried("model", text),
    "ignore-eos": AsIs(),
    **dropped(
        NO_MEANING,
        {
            "where the server is": "host port base-url endpoint backend header* ready-check-timeout-sec insecure! "
            "served-model-name",
            "how results are shown and kept": "save-result! save-detailed! append-result! result-dir result-filename "
            "metadata* percentile-metrics metric-percentiles disable-tqdm! label output-file output-details! tag "
            "print-requests! plot-throughput! output-json profile! profile-steps profile-activities* plot-timeline! "
            "plot-dataset-stats! timeline-itl-thresholds request-id-prefix cache-report! profile-output-dir",
            "texts are not written": "tokenizer tokenizer-mode trust-remote-code! apply-chat-template! "
            "skip-chat-template! tokenize-prompt! extra-request-body extra-body chat-template-kwargs "
            "skip-tokenizer-init! disable-detokenize! prompt-suffix",
            "no text is sampled": "temperature top-p top-k min-p frequency-penalty presence-penalty "
            "repetition-penalty logprobs return-logprob! top-logprobs-num",
            "outputs have the length that was drawn": "disable-ignore-eos!",
            "a run begins with an empty cache": "flush-cache!",
            "order matters to no dataset that is carried over": "disable-shuffle! no-oversample! no-stream!",
        },
    ),
    **dropped(
        NOT_SUPPORTED,
        {
            "the first requests are measured; see run.warmup_s": "num-warmups=0 warmup-requests=0 skip-warmup!",
            "answers are streamed": "disable-stream!",
            "no adapters": "lora-modules* lora-assignment lora-name* lora-request-distribution lora-path",
            "one engine alone": "pd-separated!",
            "one answer to a prompt": "use-beam-search! n=1",
            "rates follow ramps in time, not by request: see workload.rate": "ramp-up-strategy ramp-up-start-rps "
            "ramp-up-end-rps",
            "no probes beside the traffic": "probe-request-rate",
        },
    ),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """A benchmark under way: its flags, where they go, and its defaults."""

    flags: Answers
    draft: Draft
    num_prompts: int

    def requests(self) -> int:
        """How many requests it sends; raises ScenarioError for none."""
        asked: int = self.flags.get("num-prompts", self.num_prompts)
        if asked == ALL:
            self.draft.assume("workload.requests", f"{self.num_prompts:,}: a dataset that stands in has no end")
            return self.num_prompts
        if asked < 1:
            raise ScenarioError("command", self.flags.shown("num-prompts"), "is out of range: must be at least 1")
        return asked

    def pace(self) -> Workload:
        """When requests come, as generated traffic has it."""
        asked = self.flags.get("request-rate", "inf")
        found: Workload = {"rate": asked}
        burstiness = self.flags.get("burstiness", 1)
        if burstiness != 1 and asked != "inf":
            found |= {"arrivals": "gamma", "burstiness": burstiness}
        if (clients := self.flags.get("max-concurrency", None)) is not None:
            found["max_concurrency"] = clients
        return found

    def trace(self, form: str, missing: str, **keys: Any) -> Workload:
        """A file of that format, sent at the benchmark's rate; `missing` is a path where none is given."""
        path = self.flags.get("dataset-path", None)
        if not path:
            path = missing
            self.draft.assume("workload.path", f"{missing}: download it, or write where it is")
        found: Workload = {"type": "trace", "path": path, "format": form, **keys}
        if self.flags.get("num-prompts", self.num_prompts) != ALL:
            found["limit"] = self.requests()
        if "time_scale" not in keys:
            found["rate"] = self.flags.get("request-rate", "inf")
            if found["rate"] == "inf":
                found["rate"] = AT_ONCE
                self.draft.assume("workload.rate", f"{AT_ONCE:,} a second for inf: a trace cannot come all at once")
        for name in ("max-concurrency", "burstiness"):
            if name in self.flags:
                self.flags.get(name, None)
                self.draft.not_carried(self.flags.shown(name), f"{NOT_SUPPORTED} with a trace")
        return found

    def stand_in(self, name: str, prompt: int, output: int) -> Workload:
        """Independent requests in place of a dataset whose lengths are not known here."""
        self.draft.not_carried(f"--dataset-name {name}", f"{NOT_SUPPORTED}: independent requests stand in for it")
        self.flags.get("dataset-path", None)
        self.draft.assume("workload", f"{prompt:,} prompt and {output:,} output tokens: write the lengths of {name}")
        return self.independent(prompt, output)

    def independent(self, prompt: Any, output: Any) -> Workload:
        """Requests of those lengths at the benchmark's pace."""
        return {
            "type": "independent",
            **self.pace(),
            "requests": self.requests(),
            "prompt_tokens": prompt,
            "output_tokens": output,
        }

    def finish(self, workload: Workload, dataset: str, is_known: bool = True) -> None:
        """Put workload, SLO and seed into the draft, and tell it of flags that go with another dataset."""
        self.draft.set("workload", workload, f"--dataset-name {dataset}")
        for key in workload:
            if (name := next((name for name in _FLAGS_OF.get(key, ()) if name in self.flags), None)) is not None:
                self.draft.origins[f"workload.{key}"] = self.flags.shown(name)
        if (seed := self.flags.get("seed", None)) is not None:
            self.draft.set("run.seed", seed, self.flags.shown("seed"))
        for target in self.flags.values("goodput"):
            key, value = slo(target)
            self.draft.set(f"slo.{key}", value, f"--goodput {target}")
        self.flags.drop_the_rest(
            f"{NO_MEANING}: it does not go with --dataset-name {dataset}"
            if is_known
            else f"{NOT_SUPPORTED} with --dataset-name {dataset}"
        )


def slo(target: str) -> tuple[str, float]:
    """`ttft:200` in milliseconds, as a key of `slo` and seconds."""
    name, _, value = target.partition(":")
    try:
        return _SLOS[name], float(value) / 1000
    except (KeyError, ValueError):
        says = f"{target!r} is no target; write {', '.join(f'{known}:MILLISECONDS' for known in _SLOS)}"
        raise ScenarioError("command", "--goodput", says) from None


def uniform(length: int, low: int, high: int) -> Any:
    """Whole numbers from `low`, but at least 1, to `high`; a `length` that is none stays, to be refused."""
    low = max(low, 1)
    return length if length < 1 or low == high == length else {"uniform": {"min": low, "max": high}}


def ratio(name: str, given: str, right: str, is_right: Callable[[float], bool]) -> float:
    """A range ratio; raises ScenarioError where it is not right."""
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not is_right(value):
        raise ScenarioError("command", f"--{name}", f"{given!r} is out of range: must be {right}")
    return value
