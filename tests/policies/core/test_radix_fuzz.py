"""The radix tree does what a plain one does, operation by operation, for tokens and for spans."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from llmsim.policies.core.radix_node import RadixNode
from llmsim.policies.core.radix_tree import RadixTree
from llmsim.policies.protocols import EvictionPolicy
from llmsim.tests.support.plain_radix import Insertion, PlainNode, PlainRadix
from llmsim.tests.support.radix_texts import Text, random_text
from llmsim.tests.support.ranks import RANKS, Ranked

NUM_OPERATIONS = 120
ORDERS = dict(RANKS) | {
    "longest": Ranked(lambda entry: -entry.num_tokens),  # many ties, and a rank that a split changes
    "deepest": Ranked(lambda entry: (-entry.depth_tokens, entry.hits)),
}


class Pair:
    """The tree and the plain one under the same operations; each method asserts that both do the same."""

    def __init__(self, seed: int, page_size: int, order: EvictionPolicy, classic: bool, literal: bool) -> None:
        self.rng = Random(seed)
        self.page_size, self.literal = page_size, literal
        self.tree = RadixTree(page_size, order, classic=classic)
        self.plain = PlainRadix(page_size, order.rank, classic)
        self.texts: list[Text] = []
        self.locks: list[tuple[RadixNode, PlainNode]] = []
        self.known: dict[int, RadixNode] = {}
        """Where the last match or insert of a text ended; a text that has none takes part without."""
        self.num_evicted = 0

    def some(self) -> tuple[Text, list[int]]:
        """A text, new or known, and how much of it counts."""
        if not self.texts or self.rng.random() < 0.6:
            self.texts.append(random_text(self.rng, self.texts, self.page_size))
        text = self.rng.choice(self.texts[-20:])
        tokens = text.tokens
        return text, tokens if self.rng.random() < 0.6 else tokens[: self.rng.randint(0, len(tokens))]

    def match(self) -> None:
        text, tokens = self.some()
        self.both_match(text, tokens)

    def both_match(self, text: Text, tokens: list[int]) -> tuple[RadixNode, PlainNode]:
        stream, known = text.stream(self.literal), self.known.get(id(text)) if self.rng.random() < 0.5 else None
        assert self.tree.peek(stream, len(tokens), known=known) == self.plain.peek(tokens)
        node, num_tokens = self.tree.match(stream, len(tokens), known=known)
        self.known[id(text)] = node
        plain_node, plain_tokens = self.plain.match(tokens)
        assert num_tokens == plain_tokens
        return node, plain_node

    def insert(self) -> None:
        text, tokens = self.some()
        rng, owner = self.rng, f"r{self.rng.randrange(1000)}"
        how = Insertion(owner, rng.randint(-2, 3), rng.random() < 0.8, rng.choice((0, 0, rng.randint(0, len(tokens)))))
        inserted = self.tree.insert(
            text.stream(self.literal),
            len(tokens),
            owner=owner,
            priority=how.priority,
            counts_hits=how.counts_hits,
            already_inserted=how.already_inserted,
        )
        assert inserted.num_matched == self.plain.insert(tokens, how)
        self.known[id(text)] = inserted.node
        end = inserted.node.depth_tokens + inserted.node.num_tokens
        assert end == len(tokens) - len(tokens) % self.page_size

    def lock(self) -> None:
        nodes = self.both_match(*self.some())
        self.tree.lock(nodes[0])
        self.plain.lock(nodes[1], +1)
        self.locks.append(nodes)

    def unlock(self) -> None:
        if self.locks:
            node, plain_node = self.locks.pop(self.rng.randrange(len(self.locks)))
            self.tree.unlock(node)
            self.plain.lock(plain_node, -1)

    def evict(self) -> None:
        wanted = self.rng.choice((0, 1, self.page_size, 5 * self.page_size, 20 * self.page_size))
        gone: list[RadixNode] = []
        num_evicted = self.tree.evict(wanted, gone.append)
        plain_gone = [(n.owner, n.num_tokens, n.depth_tokens) for n in self.plain.evict(wanted)]
        assert [(n.owner, n.num_tokens, n.depth_tokens) for n in gone] == plain_gone
        assert num_evicted == sum(num_tokens for _, num_tokens, _ in plain_gone)
        self.num_evicted += num_evicted

    def check(self) -> None:
        tree = self.tree
        assert (tree.num_nodes, tree.num_tokens, tree.num_protected) == self.plain.sizes()
        assert tree.num_evictable == tree.num_tokens - tree.num_protected

    def check_all(self) -> None:
        self.tree.check_integrity()
        ours = [(n.depth_tokens, n.num_tokens, n.hits, n.priority, n.num_locks, n.owner) for n in self.tree.nodes()]
        plain = [(n.depth_tokens, n.num_tokens, n.hits, n.priority, n.locks, n.owner) for n in self.plain.nodes()]
        assert sorted(ours, key=str) == sorted(plain, key=str)


def run(seed: int, page_size: int, order: EvictionPolicy, classic: bool, literal: bool) -> int:
    """Random operations on both trees; returns the tokens evicted."""
    pair = Pair(seed, page_size, order, classic, literal)
    names = ("match", "match", "insert", "insert", "insert", "insert", "lock", "unlock", "evict")
    for number in range(NUM_OPERATIONS):
        getattr(pair, pair.rng.choice(names))()
        pair.check()
        if number % 20 == 0:
            pair.check_all()
    pair.check_all()
    return pair.num_evicted


@pytest.mark.parametrize("literal", [True, False], ids=["tokens", "spans"])
@pytest.mark.parametrize("order", ORDERS)
def test_the_tree_does_what_a_plain_one_does(order: str, literal: bool) -> None:
    evicted = [
        run(seed, page_size, ORDERS[order], classic, literal)
        for seed, page_size, classic in product(range(2), (1, 4, 16), (False, True))
    ]
    assert min(evicted) > 0
