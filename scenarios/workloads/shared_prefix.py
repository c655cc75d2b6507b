"""Groups of prompts with a system prompt in common, as SGLang's benchmark makes them: | system (group) | question |."""

from __future__ import annotations

from collections.abc import Iterator

from ..schema_generators import SharedPrefixSettings
from .agent import spans
from .draft import Draft
from .draws import orders
from .lengths import lengths


def shared_prefix_drafts(asked: SharedPrefixSettings, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    """Requests without end, round by round: each round has every prompt of every group once."""
    systems = spans(contents, lengths(asked.system_prompt_len, seed, "system_prompt_len"), asked.num_groups)
    per_group = asked.prompts_per_group
    rounds = orders(seed, "prompt_order", asked.num_groups * per_group, asked.order == "shuffled")
    draws = zip(
        (systems[place // per_group] for order in rounds for place in order),
        lengths(asked.question_len, seed, "question_len"),
        lengths(asked.output_len, seed, "output_len"),
        strict=False,
    )
    return (Draft((system,), question, output) for system, question, output in draws)
