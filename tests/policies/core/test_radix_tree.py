"""The radix tree: what is matched, what is kept, what goes first."""

from __future__ import annotations

from random import Random

import pytest

from llmsim.policies.core.radix_eviction import EvictableLeaves
from llmsim.policies.core.radix_node import RadixNode
from llmsim.policies.core.radix_tree import RadixTree
from llmsim.policies.core.request import Prompt
from llmsim.policies.core.token_stream import TokenStream
from llmsim.tests.support.ranks import RANKS

Span = tuple[int, int, int]


def stream(*spans: Span, output: int = -1) -> TokenStream:
    return TokenStream(Prompt(spans), output)


def tree_of(page_size: int = 1, order: str = "lru") -> RadixTree:
    return RadixTree(page_size, RANKS[order])


def evicted(tree: RadixTree, num_tokens: int) -> list[tuple[str | None, int]]:
    gone: list[RadixNode] = []
    tree.evict(num_tokens, gone.append)
    tree.check_integrity()
    return [(node.owner, node.num_tokens) for node in gone]


def test_a_match_ends_with_a_whole_page_and_splits_the_node_there() -> None:
    tree = tree_of(page_size=4)
    tree.insert(stream((1, 0, 20)), 20, owner="a")
    match = tree.match(stream((1, 0, 11), (2, 0, 9)), 20)
    assert match.num_tokens == 8
    assert [(n.depth_tokens, n.num_tokens, n.owner) for n in tree.nodes()] == [(0, 8, "a"), (8, 12, "a")]
    assert match.node.num_tokens == 8


def test_a_match_looks_at_the_first_tokens_only() -> None:
    tree = tree_of(page_size=4)
    tree.insert(stream((1, 0, 20)), 20)
    assert tree.match(stream((1, 0, 20)), 11).num_tokens == 8
    assert tree.match(stream((1, 0, 20)), 3) == (tree.root, 0)


def test_what_is_not_a_whole_page_is_not_held() -> None:
    tree = tree_of(page_size=4)
    tree.insert(stream((1, 0, 20)), 11)
    assert (tree.num_tokens, tree.num_nodes) == (8, 1)
    assert tree.insert(stream((1, 0, 20)), 3) == (tree.root, 0)


def test_a_peek_changes_nothing() -> None:
    tree = tree_of()
    tree.insert(stream((1, 0, 5)), 5, owner="old")
    tree.insert(stream((2, 0, 5)), 5, owner="new")
    assert tree.peek(stream((1, 0, 3), (3, 0, 1)), 4) == 3
    assert tree.num_nodes == 2
    assert evicted(tree, 1) == [("old", 5)]


def test_a_known_beginning_changes_no_outcome() -> None:
    tree = tree_of()
    text = stream((1, 0, 4), (2, 0, 4))
    tree.insert(text, 4, owner="a")
    known = tree.match(text, 4).node
    tree.insert(stream((2, 0, 5)), 5, owner="b")
    leaf = tree.insert(text, 8, owner="c").node
    assert tree.peek(text, 8, known=known) == 8
    assert tree.match(text, 8, known=known) == (leaf, 8)
    assert evicted(tree, 9) == [("b", 5), ("c", 4)]
    assert tree.match(text, 8, known=leaf) == (known, 4)
    assert tree.match(text, 3, known=leaf).num_tokens == 3


def test_a_match_refreshes() -> None:
    tree = tree_of()
    tree.insert(stream((1, 0, 5)), 5, owner="old")
    tree.insert(stream((2, 0, 5)), 5, owner="new")
    tree.match(stream((1, 0, 5)), 5)
    assert evicted(tree, 1) == [("new", 5)]


def test_locked_prefix_is_never_evicted() -> None:
    tree = tree_of()
    tree.insert(stream((1, 0, 5), (2, 0, 5)), 10, owner="a")
    node = tree.match(stream((1, 0, 5)), 5).node
    tree.lock(node)
    tree.lock(node)
    tree.unlock(node)
    assert (tree.num_evictable, tree.num_protected) == (5, 5)
    assert evicted(tree, 100) == [("a", 5)]
    tree.unlock(node)
    assert evicted(tree, 100) == [("a", 5)]
    assert (tree.num_tokens, tree.num_nodes) == (0, 0)


def test_a_lock_holds_what_it_held_when_its_node_is_split() -> None:
    tree = tree_of()
    node = tree.insert(stream((1, 0, 10)), 10).node
    tree.lock(node)
    tree.match(stream((1, 0, 4)), 4)
    assert tree.num_protected == 10
    tree.unlock(node)
    assert (tree.num_protected, tree.num_nodes) == (0, 2)


def test_eviction_takes_whole_leaves_and_then_their_parent() -> None:
    tree = tree_of()
    tree.insert(stream((1, 0, 4), (2, 0, 3)), 7, owner="a")
    tree.insert(stream((1, 0, 4), (3, 0, 2)), 6, owner="b")
    tree.insert(stream((4, 0, 1)), 1, owner="c")
    assert evicted(tree, 8) == [("a", 3), ("b", 2), ("a", 4)]


def test_a_boundary_at_the_prompts_end_lets_the_output_go_first() -> None:
    tree = tree_of()
    request = stream((1, 0, 6), output=7)
    tree.insert(request, 9, owner="a")
    inserted = tree.insert(request, 6, priority=1, counts_hits=False)
    assert (inserted.num_matched, inserted.node.priority, inserted.node.hits) == (6, 1, 1)
    assert evicted(tree, 1) == [("a", 3)]
    assert tree.peek(request, 9) == 6


def test_content_stays_what_it_was_when_its_request_says_more() -> None:
    tree = tree_of()
    request = TokenStream(Prompt.of_tokens([1, 2]), -1)
    request.push([3, 4])
    tree.insert(request, 4)
    request.push([5])
    assert tree.peek(TokenStream(Prompt.of_tokens([1, 2, 3, 4, 5]), -1), 5) == 4
    assert tree.insert(request, 5).num_matched == 4
    tree.check_integrity()


@pytest.mark.parametrize(("already_inserted", "hits"), [(0, [2, 2]), (4, [1, 2]), (9, [1, 2]), (10, [1, 1])])
def test_a_request_hits_what_ends_beyond_what_it_inserted_before(already_inserted: int, hits: list[int]) -> None:
    tree = tree_of()
    text = stream((1, 0, 10))
    tree.insert(text, 10)
    tree.match(text, 4)
    tree.insert(text, 10, already_inserted=already_inserted)
    assert [node.hits for node in tree.nodes()] == hits


def test_a_prompt_of_a_billion_tokens_costs_a_node() -> None:
    tree, length = tree_of(page_size=16), 10**9
    tree.insert(stream((1, 0, length), (2, 0, length)), 2 * length)
    assert tree.match(stream((1, 0, length), (3, 0, length)), 2 * length).num_tokens == length
    assert tree.num_nodes == 2


def test_an_evicted_node_cannot_be_locked() -> None:
    tree = tree_of()
    node = tree.insert(stream((1, 0, 5)), 5, owner="a").node
    tree.evict(1)
    with pytest.raises(AssertionError, match="lock of an evicted node of a"):
        tree.lock(node)


def test_what_is_not_locked_cannot_be_unlocked() -> None:
    tree = tree_of()
    node = tree.insert(stream((1, 0, 5)), 5, owner="a").node
    with pytest.raises(AssertionError, match="unlock of a node of a that is not locked"):
        tree.unlock(node)


@pytest.mark.parametrize("order", ["lru", "mru"])
def test_many_changes_neither_swell_the_heap_nor_disturb_its_order(order: str) -> None:
    """Each round changes some leaves, locks one of them, and lets one go."""
    rng, num_leaves = Random(1), 300
    leaves = EvictableLeaves(RANKS[order])
    nodes = [RadixNode(None, (), stream((i, 0, 1)), 0, 1, str(i)) for i in range(num_leaves)]
    changed, most, clock = nodes[:], 0, 0
    while len(nodes) > 1:
        rng.shuffle(changed)
        for node in changed:
            clock += 1
            node.last_used, node.num_locks = clock, 0
        for node in sorted(changed, key=lambda node: node.owner or ""):
            leaves.note(node)
        changed[0].num_locks = 1
        ranked = sorted((node for node in nodes if not node.num_locks), key=RANKS[order].rank)
        assert leaves.pop() is ranked[0]
        nodes.remove(ranked[0])
        most = max(most, len(leaves))
        changed = [*(node for node in nodes if node.num_locks), *rng.sample(nodes, len(nodes) // 2)]
        changed = list(dict.fromkeys(changed))
    assert most <= 3 * num_leaves
