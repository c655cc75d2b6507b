"""The waiting queue keeps an order by insertion, behind those that were put first."""

from __future__ import annotations

from random import Random

from llmsim.policies.core.records import record_of
from llmsim.policies.core.sequence import Sequence
from llmsim.policies.core.waiting_queue import WaitingQueue
from llmsim.tests.support.driven_core import request_of


def sequence_of(name: str, num_prompt: int) -> Sequence:
    request = request_of(name, num_prompt, 5)
    return Sequence(request, 0, record_of(request))


def test_what_is_put_first_stays_first_whatever_its_key() -> None:
    queue = WaitingQueue()
    for name, length in (("a", 30), ("b", 10)):
        queue.insert_by(sequence_of(name, length), lambda s: s.prompt_tokens)
    queue.append_left(sequence_of("first", 99))
    for name, length in (("c", 5), ("d", 200), ("e", 20)):
        queue.insert_by(sequence_of(name, length), lambda s: s.prompt_tokens)
    assert [s.id for s in queue] == ["first", "c", "b", "e", "a", "d"]


def test_the_order_holds_through_any_mixture_of_calls() -> None:
    for seed in range(200):
        random, queue = Random(seed), WaitingQueue()
        front: list[Sequence] = []
        ordered: list[Sequence] = []
        for number in range(40):
            call = random.choice(("insert", "insert", "first", "pop", "remove", "replace"))
            if call == "insert":
                sequence = sequence_of(f"s{number}", random.randint(1, 5))
                queue.insert_by(sequence, lambda s: s.prompt_tokens)
                ordered = sorted([*ordered, sequence], key=lambda s: s.prompt_tokens)
            elif call == "first":
                front.insert(0, sequence_of(f"s{number}", random.randint(1, 5)))
                queue.append_left(front[0])
            elif front or ordered:
                if call == "pop":
                    assert queue.pop_first() is (front or ordered).pop(0)
                elif call == "remove":
                    gone = random.choice(front + ordered)
                    queue.remove(gone)
                    (front if gone in front else ordered).remove(gone)
                else:
                    ordered = sorted(front + ordered, key=lambda s: s.prompt_tokens)
                    front = []
                    queue.replace(ordered)
            assert list(queue) == front + ordered, (seed, number)
