"""Tasks with examples: | instructions (task) | examples (task), as given or shuffled | question (request) |."""

from __future__ import annotations

from collections.abc import Iterator

from ..schema_generators import FewShotSettings
from .agent import spans
from .draft import Draft
from .draws import orders, zipf_ranks
from .lengths import lengths


def few_shot_drafts(asked: FewShotSettings, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    """Requests without end: tasks by Zipf, each with all of its examples."""
    tasks, num_examples = asked.tasks, asked.examples
    instructions = spans(contents, lengths(asked.instruction_tokens, seed, "instruction_tokens"), tasks)
    examples = spans(contents, lengths(asked.example_tokens, seed, "example_tokens"), tasks * num_examples)
    shuffled = asked.order == "shuffled"
    draws = zip(
        zipf_ranks(seed, "task", tasks, asked.task_zipf),
        orders(seed, "example_order", num_examples, shuffled),
        lengths(asked.question_tokens, seed, "question_tokens"),
        lengths(asked.output_tokens, seed, "output_tokens"),
        strict=False,
    )
    return (
        Draft((instructions[task], *(examples[task * num_examples + i] for i in order)), question, output)
        for task, order, question, output in draws
    )
