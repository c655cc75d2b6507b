"""What requests carry beside what they ask for: a deadline out of the SLO, a prediction of their output's length."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from statistics import NormalDist

from ...policies.core.request import Arrival
from ...policies.core.workload import Impatient, Workload
from ..schema import OutputLengthPrediction, Scenario

NS_PER_S = 1_000_000_000
_STANDARD_NORMAL = NormalDist()


class ForetoldWorkload:
    """A workload whose requests carry a deadline and a prediction; all else is as it was."""

    def __init__(
        self, traffic: Workload, seed: int, deadline_in_ns: int | None, prediction: OutputLengthPrediction | None
    ) -> None:
        """`deadline_in_ns` after its arrival is the deadline of a request that has none of its own."""
        self._traffic = traffic
        self._seed = seed
        self._deadline_in_ns = deadline_in_ns
        self._prediction = prediction

    def arrivals(self) -> Iterator[Arrival]:
        """The traffic's own."""
        return map(self._told, self._traffic.arrivals())

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """What the traffic sends then."""
        return [self._told(arrival) for arrival in self._traffic.on_finish(request_id, now_ns)]

    def on_give_up(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """What the traffic sends then."""
        assert isinstance(self._traffic, Impatient), "only clients with patience give up"
        return [self._told(arrival) for arrival in self._traffic.on_give_up(request_id, now_ns)]

    def _told(self, arrival: Arrival) -> Arrival:
        request = arrival.request
        deadline_ns, predicted = request.deadline_ns, None
        if deadline_ns is None and self._deadline_in_ns is not None:
            deadline_ns = request.arrival_ns + self._deadline_in_ns
        if self._prediction is not None:
            predicted = predicted_tokens(self._prediction, arrival.output.length, self._seed, request.id)
        return replace(arrival, request=replace(request, deadline_ns=deadline_ns, predicted_tokens=predicted))


def foretold(traffic: Workload, scenario: Scenario) -> Workload:
    """The traffic with the deadlines and predictions that the scenario asks for."""
    slo, prediction = scenario.slo, scenario.predictions.output_length
    deadline_s = slo.e2e_s if slo.ttft_s is None else slo.ttft_s
    if deadline_s is None and prediction is None:
        return traffic
    in_ns = None if deadline_s is None else round(deadline_s * NS_PER_S)
    return ForetoldWorkload(traffic, scenario.run.seed, in_ns, prediction)


def predicted_tokens(prediction: OutputLengthPrediction, num_tokens: int, seed: int, request_id: str) -> int:
    """The predicted length of an output of `num_tokens`: times exp(sigma z), z standard normal; at least 1.

    The draw belongs to seed and request, whose retries are predicted alike. It is not cut at `max_tokens`: with
    `max_tokens: exact` that would tell the length of every output that was predicted too long.
    """
    if prediction.sigma == 0:
        return max(1, num_tokens)
    drawn_for = f"{seed}/output_length/{request_id.partition('+')[0]}"
    bits = int.from_bytes(blake2b(drawn_for.encode(), digest_size=8).digest(), "big") >> 12
    z = _STANDARD_NORMAL.inv_cdf((bits + 0.5) / 2**52)
    return max(1, round(num_tokens * math.exp(prediction.sigma * z)))
