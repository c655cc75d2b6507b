"""Under which traffic a scenario measures, in sentences."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from .policy_words import number
from .schema import Scenario
from .schema_pacing import Asking, Pacing
from .schema_sessions import PACE, MixtureSettings, MultiTurnSettings, SingleTraffic
from .schema_workload import SESSION_FORMATS, UNTIMED_FORMATS, TraceSettings

NOT_CONTENT = {*PACE, *Asking.model_fields, "type", "parts"}


def traffic_words(scenario: Scenario) -> Iterator[str]:
    """What comes, how often, what clients ask for, and which of it is measured."""
    workload = scenario.workload
    if isinstance(workload, TraceSettings):
        yield _trace(workload)
        yield from _wanted(workload.model_dump(mode="json"))
    else:
        yield from _content(workload)
        yield _pace(workload)
    if workload.num_clients is not None:
        yield (
            "That is a closed loop: clients wait for their answers, so the request rate is a result, and latencies say "
            "nothing about traffic that does not wait."
        )
    yield _measured(scenario)
    yield from _outside(scenario)


def _content(workload: SingleTraffic | MixtureSettings) -> Iterator[str]:
    if not isinstance(workload, MixtureSettings):
        yield _kind(workload)
        yield from _wanted(workload.model_dump(mode="json"))
        return
    whole = sum(part.weight for part in workload.parts)
    for part in workload.parts:
        yield f"{part.weight / whole:.1%} is of {part.tenant}: {_kind(part.workload)}"
        yield from _wanted(part.workload.model_dump(mode="json"))


def _kind(workload: SingleTraffic) -> str:
    """What the generator says of itself, and the values that it draws from."""
    says = (inspect.getdoc(type(workload)) or "").split("\n\n")[0].split(". ")[0].replace("\n", " ").rstrip(".")
    values = workload.model_dump(mode="json", by_alias=True)
    listed = ", ".join(f"{key} {value_words(value)}" for key, value in values.items() if key not in NOT_CONTENT)
    return f"{workload.type}: {says}; {listed}."


def _wanted(workload: Mapping[str, Any]) -> Iterator[str]:
    """What clients ask for, where that is not simply what they get."""
    match workload["max_tokens"]:
        case {"fixed": tokens}:
            yield f"Every client asks for {number(tokens)} tokens (max_tokens), and a longer answer is cut there."
        case {"factor": factor}:
            yield f"Clients ask for {number(factor)} times the tokens that they will get (max_tokens)."
        case _:
            yield "Clients ask for as many tokens as they will get (max_tokens: exact)."
    if workload.get("timeout_s") is not None:
        again = (
            f"then sends it anew up to {number(workload['retries'])} times" if workload["retries"] else "and goes away"
        )
        yield f"A client gives up when its answer is not whole after {number(workload['timeout_s'])} s, {again}."
    if (priorities := workload.get("priorities", [])) and [p["priority"] for p in priorities] != [0]:
        weights = ", ".join(f"{p['priority']} with weight {number(p['weight'])}" for p in priorities)
        yield f"Priorities, a smaller one being more urgent: {weights}."


def _pace(pacing: Pacing) -> str:
    """When generated requests or sessions come, and until when."""
    unit = "sessions" if isinstance(pacing, MultiTurnSettings) else "requests"
    bounds = [f"{number(pacing.count)} {unit}"] if pacing.count is not None else []
    bounds += [f"{number(pacing.duration_s)} s"] if pacing.duration_s is not None else []
    until = " or ".join(bounds) + (", whichever is over first" if len(bounds) > 1 else " in all")
    if pacing.concurrency is not None:
        pause = (
            ""
            if pacing.pause_s == 0
            else f" and {value_words(pacing.model_dump(mode='json')['pause_s'])} s have passed"
        )
        next_one = unit.removesuffix("s")
        return (
            f"{number(pacing.concurrency)} clients, each of which begins its next {next_one} when its last has ended"
            f"{pause}, {until}."
        )
    held = "" if pacing.max_concurrency is None else f", but never more than {number(pacing.max_concurrency)} at once"
    return f"{_rate(pacing, unit)}{held}, {until}."


def _rate(pacing: Pacing, unit: str) -> str:
    how = {"poisson": "at random (Poisson)", "constant": "evenly spaced"}.get(
        pacing.arrivals, f"at random (gamma, burstiness {number(pacing.burstiness)})"
    )
    match pacing.model_dump(mode="json", by_alias=True)["rate"]:
        case "inf":
            return f"All {unit} come at once"
        case {"ramp": ramp}:
            rate = f"{number(ramp['from'])} to {number(ramp['to'])} {unit} a second within {number(ramp['over_s'])} s"
        case {"points": points}:
            stops = ", ".join(f"{number(point['rate'])} at {number(point['at_s'])} s" for point in points)
            rate = f"{unit} at a rate a second of {stops}, in straight lines between"
        case {"day": day}:
            rates = ", ".join(map(number, day["rates"]))
            rate = f"{unit} at a rate a second that goes through {rates} every {number(day['length_s'])} s"
        case plain:
            rate = f"{number(plain)} {unit} a second"
    return f"{rate[0].upper()}{rate[1:]} come {how}"


def _trace(trace: TraceSettings) -> str:
    rows = "all rows" if trace.limit is None else f"the first {number(trace.limit)} rows"
    if trace.format in UNTIMED_FORMATS:
        unit = "sessions" if trace.format in SESSION_FORMATS else "requests"
        speed = f"{number(trace.rate)} {unit} a second ({trace.arrivals or 'poisson'})"
    elif trace.rate is not None:
        speed = f"stretched to {number(trace.rate)} requests a second"
    elif trace.time_scale != 1:
        speed = f"with its times multiplied by {number(trace.time_scale)} (time_scale)"
    else:
        speed = "at its own times"
    return f"The trace {trace.path} ({trace.format}) is played, {rows}, {speed}."


def _measured(scenario: Scenario) -> str:
    match scenario.run.warmup_s:
        case "auto":
            cut = "What is sent before the warm-up's end, found by MSER-5, is not measured"
        case 0:
            cut = "Everything is measured, from the idle engine on"
        case seconds:
            cut = f"What is sent in the first {number(seconds)} s is not measured"
    return f"{cut}; the seed is {scenario.run.seed}."


def _outside(scenario: Scenario) -> Iterator[str]:
    front = {key: seconds for key, seconds in scenario.frontend.model_dump().items() if seconds}
    if front:
        yield f"Outside the engine a request spends {', '.join(f'{number(s)} s ({key})' for key, s in front.items())}."
    bounds = {key: bound for key, bound in scenario.slo.model_dump().items() if bound is not None}
    if bounds:
        listed = ", ".join(f"{key.removesuffix('_s').upper()} {number(bound)} s" for key, bound in bounds.items())
        yield f"Goodput counts the requests that stay within {listed}."
    else:
        yield "No SLO is set, so there is no goodput."


def value_words(value: object) -> str:
    """A length, a time or a plain value: `lognormal (mean 4,000, cv 0.5, max 16,000)`."""
    if not isinstance(value, Mapping):
        return number(value)
    ((shape, of),) = value.items()
    if not isinstance(of, Mapping):
        return f"{shape} ({number(of)})"
    return f"{shape} ({', '.join(f'{key} {number(part)}' for key, part in of.items() if part is not None)})"
