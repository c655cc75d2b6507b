"""A dozen small requests of literal tokens, some with a common prefix."""

from __future__ import annotations

import random

from llmsim.policies.core.request import Output, Prompt, Request
from llmsim.tests.support.hugging_face import VOCAB

Arrivals = dict[int, list[tuple[Request, Output]]]


def requests_of(seed: int) -> Arrivals:
    """Twelve requests over the first steps; some share a prefix, some prompts are all the same."""
    draw = random.Random(seed)
    shared = [draw.randrange(VOCAB) for _ in range(24)]
    arrivals: Arrivals = {}
    for i in range(12):
        own = [draw.randrange(VOCAB) for _ in range(draw.randrange(1, 20))]
        prompt = shared[: draw.choice([0, 8, 17, 24])] + (own if i % 5 else shared[:3])
        max_tokens = draw.randrange(1, 24)
        request = Request(f"r{i}", 0, Prompt.of_tokens(prompt), max_tokens, -1 - i, draw.randrange(3))
        arrivals.setdefault(draw.randrange(12), []).append((request, Output(max_tokens)))
    return arrivals
