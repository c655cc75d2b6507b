"""A prefix cache a block at a time: who uses it, what it holds, what goes first."""

from __future__ import annotations

from dataclasses import dataclass, field

from llmsim.policies.core.evictable_heap import CachedBlock
from llmsim.policies.protocols import EvictionPolicy

Chain = tuple[int, ...]
"""All tokens up to the end of a block: what the block's content stands for."""


@dataclass(eq=False)
class PlainBlock:
    """A block of memory that was handed out."""

    id: int
    owner: str
    """The sequence for which it was last taken."""
    num_users: int = 1
    chain: Chain | None = None
    created: int = 0
    last_used: int = 0
    hits: int = 0
    priority: int = 0


@dataclass
class PlainCache:
    """Blocks by content, by sequence and by id. What goes is looked up anew for every single block."""

    num_blocks: int
    size: int
    policy: EvictionPolicy
    is_exact: bool = True
    """Whether it is known here, too, what goes first where content is held twice."""
    blocks: dict[int, PlainBlock] = field(default_factory=dict)
    held: dict[Chain, list[PlainBlock]] = field(default_factory=dict)
    """Blocks by content in order of entry."""
    tables: dict[str, list[PlainBlock]] = field(default_factory=dict)
    counter: int = 0

    @property
    def num_free(self) -> int:
        return self.num_blocks - 1 - sum(1 for block in self.blocks.values() if block.num_users)

    @property
    def idle(self) -> list[PlainBlock]:
        """Blocks with content and without users."""
        return [block for block in self.blocks.values() if block.chain is not None and not block.num_users]

    def find(self, tokens: list[int], limit: int) -> list[PlainBlock]:
        found = []
        for stop in range(self.size, limit * self.size + 1, self.size):
            copies = self.held.get(tuple(tokens[:stop]))
            if not copies:
                break
            found.append(copies[0])
        return found

    def share(self, name: str, found: list[PlainBlock], priority: int) -> None:
        self.tables[name] = list(found)
        for block in found:
            block.num_users += 1
            block.hits += 1
            block.priority = max(block.priority, priority)

    def take(self, name: str, taken: list[int], owners: list[str]) -> None:
        """The blocks `taken` were handed out; `owners` are told to have lost content for it."""
        gone = {number for number in taken if number in self.blocks and self.blocks[number].chain is not None}
        num_blank = self.num_free - len(self.idle)
        assert not gone or num_blank == len(taken) - len(gone), "evicted while blank blocks were left"
        assert len(owners) == len(gone), (owners, gone)
        if self.is_exact or all(len(copies) == 1 for copies in self.held.values()):
            victims = [self._evict(self._first()) for _ in gone]
            assert {victim.id for victim in victims} == gone, "not the ones that go first"
            assert [victim.owner for victim in victims] == owners
        else:
            victims = [self._evict(self.blocks[number]) for number in gone]
            assert sorted(victim.owner for victim in victims) == sorted(owners)
        for chain in self.held:
            assert len(chain) == self.size or chain[: -self.size] in self.held, f"{chain} has lost what it builds on"
        for number in taken:
            before = self.blocks.get(number)
            assert before is None or not before.num_users, f"block {number} is in use"
            self.blocks[number] = PlainBlock(number, name)
            self.tables[name].append(self.blocks[number])

    def _first(self) -> PlainBlock:
        """What goes next."""
        return min((block for block in self.idle if self._may_go(block)), key=self._order)

    def _evict(self, victim: PlainBlock) -> PlainBlock:
        assert victim.chain is not None
        assert not victim.num_users, f"block {victim.id} is in use"
        self.held[victim.chain].remove(victim)
        if not self.held[victim.chain]:
            del self.held[victim.chain]
        victim.chain = None
        return victim

    def _may_go(self, block: PlainBlock) -> bool:
        """Nothing that is held builds on it, or there is a further copy."""
        assert block.chain is not None
        return len(self.held[block.chain]) > 1 or not self._is_built_on(block.chain)

    def _is_built_on(self, chain: Chain) -> bool:
        return any(len(c) == len(chain) + self.size and c[: len(chain)] == chain for c in self.held)

    def _order(self, block: PlainBlock) -> tuple[object, int, int]:
        assert block.chain is not None
        depth = len(block.chain) - self.size
        entry = CachedBlock(block.created, block.last_used, block.hits, block.priority, self.size, depth)
        return self.policy.rank(entry), block.last_used, -depth

    def enter(self, name: str, tokens: list[int], num_tokens: int, priority: int) -> None:
        """What lengthens content that its sequence has for itself counts as entered with it."""
        table = self.tables[name]
        first = next((i for i in range(num_tokens // self.size) if table[i].chain is None), None)
        if first is None:
            return
        before = table[first - 1] if first else None
        if before is not None and self._is_own_end(before, name):
            created, priority = before.created, before.priority
        else:
            created = self.counter = self.counter + 1
        for index in range(first, num_tokens // self.size):
            block, chain = table[index], tuple(tokens[: (index + 1) * self.size])
            block.chain = chain
            block.created = block.last_used = created
            block.hits, block.priority = 1, priority
            self.held.setdefault(chain, []).append(block)

    def _is_own_end(self, block: PlainBlock, name: str) -> bool:
        assert block.chain is not None
        is_own = block.owner == name and block.hits == 1
        return is_own and len(self.held[block.chain]) == 1 and not self._is_built_on(block.chain)

    def release(self, name: str) -> None:
        self.counter += 1
        for block in self.tables.pop(name):
            block.num_users -= 1
            if block.chain is not None:
                block.last_used = self.counter
