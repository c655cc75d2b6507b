"""A device that is told block tables by plans alone: rows of blocks, and memory that says whose token lies where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.plan import StepEvents, StepPlan, StepResult
from llmsim.policies.core.records import EventKind
from llmsim.policies.core.sequence import Sequence, State
from llmsim.policies.core.token_stream import TokenStream

Place = tuple[int, int]
"""A block, and a token's offset in it."""
Range = tuple[Sequence, int, int]
"""Tokens `start` to `stop - 1` of a sequence."""


class Mirror:
    """One row of blocks for each running sequence, as StepPlan's docstring says."""

    def __init__(self) -> None:
        self.rows: dict[Sequence, list[int]] = {}

    def apply(self, plan: StepPlan) -> None:
        """Drop rows, open empty ones, write the grants."""
        for preemption in plan.preempted:
            del self.rows[preemption.sequence]
        for gone in [sequence for sequence in self.rows if sequence.state is not State.RUNNING]:
            del self.rows[gone]
        for admission in plan.admitted:
            assert admission.sequence not in self.rows, admission
            self.rows[admission.sequence] = []
        for sequence, start, blocks in plan.grants:
            row = self.rows[sequence]
            assert blocks, (sequence, start)
            assert start <= len(row), (sequence, start, row)
            row[start : start + len(blocks)] = blocks


class Prefixes:
    """Names for contents: equal numbers are equal tokens from the first one on."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, object], int] = {}
        self._known: dict[TokenStream, list[int]] = {}

    def upto(self, stream: TokenStream, position: int) -> int:
        """The number of the stream's tokens up to and with the one at `position`."""
        known = self._known.setdefault(stream, [])
        while len(known) <= position:
            before = known[-1] if known else 0
            token = stream.block_key(len(known), len(known) + 1)
            known.append(self._numbers.setdefault((before, token), len(self._numbers) + 1))
        return known[position]


class Device:
    """Carries plans out in their order; asserts that everyone finds its own prefix and nothing else."""

    def __init__(self, block_size: int) -> None:
        self.mirror = Mirror()
        self.num_grants = 0
        self.num_pointed_anew = 0
        """Grants that put other blocks in place of those that stood there."""
        self.most_shared = 0
        """Uses of blocks beyond the first one of each, in the step that had most of them."""
        self._size = block_size
        self._memory: dict[Place, int] = {}
        self._host: dict[Sequence, list[list[int | None]]] = {}
        self._prefixes = Prefixes()

    def carry_out(self, core: EngineCore, plan: StepPlan) -> None:
        """Copies to the host, rows, copies back, writes; then what runs is looked at."""
        rows = self.mirror.rows
        for swap in plan.swaps:
            if swap.kind is EventKind.SWAP_OUT:
                self._copy_out(swap.sequence, swap.num_blocks)
        self.num_grants += len(plan.grants)
        before = {sequence: len(row) for sequence, row in rows.items()}
        self.num_pointed_anew += sum(grant.start < before.get(grant.sequence, 0) for grant in plan.grants)
        self.mirror.apply(plan)
        for swap in plan.swaps:
            if swap.kind is EventKind.SWAP_IN:
                self._copy_in(swap.sequence, swap.num_blocks)
        for written in _written(core, plan):
            self._write(written)
        self._check(core)
        self._check_sharing(plan)

    def committed(self, plan: StepPlan) -> None:
        """What was written for drafts that were rejected is no content of anyone."""
        for row in plan.rows:
            stop = row.num_computed + row.num_tokens
            if row.num_drafts and row.sequence.state is State.RUNNING:
                for position in range(row.sequence.computed, stop):
                    self._memory[self._place(row.sequence, position)] = -1

    def _place(self, sequence: Sequence, position: int) -> Place:
        return self.mirror.rows[sequence][position // self._size], position % self._size

    def _copy_out(self, sequence: Sequence, num_blocks: int) -> None:
        blocks = self.mirror.rows[sequence][:num_blocks]
        assert len(blocks) == num_blocks, (sequence, blocks)
        offsets = range(self._size)
        self._host[sequence] = [[self._memory.get((block, offset)) for offset in offsets] for block in blocks]

    def _copy_in(self, sequence: Sequence, num_blocks: int) -> None:
        kept = self._host.pop(sequence)
        for index in range(len(kept) - num_blocks, len(kept)):
            for offset, content in enumerate(kept[index]):
                place = self._place(sequence, index * self._size + offset)
                self._memory[place] = -1 if content is None else content

    def _write(self, written: Range) -> None:
        sequence, start, stop = written
        for position in range(start, stop):
            self._memory[self._place(sequence, position)] = self._prefixes.upto(sequence.stream, position)

    def _check(self, core: EngineCore) -> None:
        running = set(core.running.values())
        assert self.mirror.rows.keys() == running
        for sequence in running:
            row = self.mirror.rows[sequence]
            assert row == core.kv_cache.block_table(sequence), sequence
            assert all(0 < block < core.config.num_blocks for block in row), row
            computed = core.batch.computed(sequence) if sequence.in_batch else sequence.computed
            for position in range(computed):
                found = self._memory.get(self._place(sequence, position))
                wanted = self._prefixes.upto(sequence.stream, position)
                assert found == wanted, f"{sequence} reads {found} for {wanted} at token {position}"

    def _check_sharing(self, plan: StepPlan) -> None:
        uses = Counter(block for row in self.mirror.rows.values() for block in row)
        again = sum(uses.values()) - len(uses)
        assert plan.shared_tokens == again * self._size
        self.most_shared = max(self.most_shared, again)


def _written(core: EngineCore, plan: StepPlan) -> Iterable[Range]:
    """What the plan computes, of each sequence that it has tokens for."""
    for row in plan.rows:
        yield row.sequence, row.num_computed, row.num_computed + row.num_tokens
    number = plan.batch_number
    if number is not None:
        for sequence in core.batch.members():
            if sequence.joined < number:
                yield sequence, core.batch.computed(sequence) - 1, core.batch.computed(sequence)
        for sequence in plan.detached:
            yield sequence, sequence.computed - 1, sequence.computed


class MirroredCore(EngineCore):
    """A core that tells grants, with such a device behind it."""

    def __init__(self, core: EngineCore) -> None:
        """With the configuration and the policies of `core`, which has not been used."""
        super().__init__(core.config, core.policies, tells_grants=True)
        self.device = Device(core.config.block_size)
        self.digests: list[str] = []

    def plan_step(self, now_ns: int) -> StepPlan | None:
        """Have each plan carried out."""
        plan = super().plan_step(now_ns)
        if plan is not None:
            self.digests.append(plan.digest())
            self.device.carry_out(self, plan)
        return plan

    def commit_step(self, plan: StepPlan, result: StepResult, now_ns: int) -> StepEvents:
        """Tell the device what was rejected."""
        events = super().commit_step(plan, result, now_ns)
        self.device.committed(plan)
        return events
