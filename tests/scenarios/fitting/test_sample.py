"""What a trace's prompts reuse of earlier ones is what plain sets and lists of blocks say."""

from __future__ import annotations

from random import Random

import pytest

from llmsim.policies.core.request import Prompt
from llmsim.scenarios.fitting.sample import Prefixes
from llmsim.scenarios.workloads.recency import Reuse

BLOCK = 4
Block = tuple[int, ...]


def random_prompts(seed: int, num: int) -> list[list[tuple[int, int, int]]]:
    """Paths in a random tree of blocks of 4 tokens, each with a last block of 1 to 4."""
    draw = Random(seed)
    stems: list[list[tuple[int, int, int]]] = [[]]
    prompts = []
    for index in range(num):
        stem = draw.choice(stems)
        stem = stem[: draw.randint(0, len(stem))]
        stem = stem + [(1000 * index + place, 0, BLOCK) for place in range(draw.randint(0, 4))]
        stems.append(stem)
        prompts.append([*stem, (10**6 + index, 0, draw.randint(1, BLOCK))])
    return prompts


@pytest.mark.parametrize("seed", range(20))
def test_reuse_is_what_plain_lists_of_blocks_say(seed: int) -> None:
    prefixes = Prefixes(BLOCK)
    last: dict[Block, int] = {}  # a block stands for all before it
    for index, spans in enumerate(random_prompts(seed, 100)):
        path = [tuple(content for content, _, _ in spans[: n + 1]) for n in range(len(spans))]
        known = 0
        while known < len(path) and path[known] in last:
            known += 1
        expected = Reuse(0, 0, 0)
        if known:
            source = last[path[known - 1]]
            distance = sum(touched > source for touched in last.values())
            expected = Reuse(known, distance, sum(last[block] > source for block in path[:known]))
        assert prefixes.add(Prompt(spans)) == expected
        last.update(dict.fromkeys(path, index))


def test_equal_prompts_share_all_but_what_holds_the_last_token() -> None:
    prefixes = Prefixes(BLOCK)
    prompt = Prompt([(1, 0, 4), (2, 0, 4)])
    assert [prefixes.add(prompt).num_blocks for _ in range(3)] == [0, 1, 1]


def test_a_prompt_of_whole_blocks_is_gone_on_from_whole() -> None:
    prefixes = Prefixes(BLOCK)
    prefixes.add(Prompt([(1, 0, 4), (2, 0, 4)]))
    assert prefixes.add(Prompt([(1, 0, 4), (2, 0, 4), (3, 0, 1)])) == Reuse(2, 0, 0)


def test_spans_of_another_size_share_nothing() -> None:
    prefixes = Prefixes(BLOCK)
    assert [prefixes.add(Prompt([(1, 0, 40)])).num_blocks for _ in range(2)] == [0, 0]


def test_equal_contents_after_different_ones_are_different_blocks() -> None:
    prefixes = Prefixes(BLOCK)
    prefixes.add(Prompt([(1, 0, 4), (2, 0, 4), (9, 0, 1)]))
    assert prefixes.add(Prompt([(3, 0, 4), (2, 0, 4), (9, 0, 1)])) == Reuse(0, 0, 0)
