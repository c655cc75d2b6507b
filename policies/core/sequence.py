"""A request inside the engine: how far it is computed, what it holds, where it stands."""

from __future__ import annotations

from enum import Enum

from .block_runs import Lease
from .radix_node import RadixNode
from .records import Blocked, RequestRecord
from .request import Request
from .token_stream import TokenStream


class State(Enum):
    """Where a sequence stands."""

    WAITING = "waiting"
    PREEMPTED = "preempted"  # waits again; what it had computed is lost, or on the host
    RUNNING = "running"
    ENDED = "ended"


class Sequence:
    """The mutable state of one request.

    While `in_batch`, the sequence is a member of the decode batch, and `computed`, `num_tokens` and `in_flight` are
    derived from the batch's counters: read them through `DecodeBatch`, or after it has left.
    """

    __slots__ = (
        "admission",
        "base",
        "batch_end",
        "computed",
        "drafts",
        "end",
        "entry",
        "found",
        "id",
        "in_batch",
        "in_flight",
        "is_measured",
        "is_prefilling",
        "joined",
        "last_token_ns",
        "leases",
        "node",
        "num_entered",
        "num_inserted",
        "num_locked",
        "num_swapped",
        "num_tokens",
        "num_verified",
        "order",
        "prefill_mark",
        "private",
        "prompt_tokens",
        "record",
        "request",
        "seen_ns",
        "state",
        "stream",
        "wait_mark",
        "waits",
    )

    def __init__(self, request: Request, order: int, record: RequestRecord) -> None:
        self.request = request
        self.id = request.id
        self.record = record
        self.stream = TokenStream(request.prompt, request.output_content)
        self.order = order
        """How many requests the engine had seen before it: breaks ties of arrival."""
        self.entry = 0
        """Its number among all entries into the queue; one that returns enters anew."""
        self.prefill_mark = 0
        """Tokens that the engine had prefilled when it entered the queue."""
        self.state = State.WAITING
        self.prompt_tokens = request.prompt.num_tokens
        self.end = self.prompt_tokens + request.max_tokens
        """Prompt and output tokens at which it ends by length."""
        self.num_tokens = self.prompt_tokens
        """Prompt and output tokens known so far."""
        self.computed = 0
        """Tokens whose KV is computed, those of plans in flight included."""
        self.num_swapped = 0
        """Tokens whose KV lies on the host while it waits."""
        self.in_flight = 0
        """Tokens sampled by plans that are not committed yet."""
        self.drafts = 0
        self.num_verified = 0
        """Verify steps so far."""
        self.is_measured = True
        """Whether its gaps between tokens count: it was not sent during the warm-up."""
        self.is_prefilling = False
        """Its last plan left known tokens to compute."""
        self.admission = 0
        """Place in the running list: grows with each admission."""
        self.leases: list[Lease] = []
        self.num_entered = 0
        self.private: list[int] = []
        self.node: RadixNode | None = None
        """On a radix tree: where the prefix that it has locked ends."""
        self.found: RadixNode | None = None
        """On a radix tree: where its latest look-up ended; the next one starts from there."""
        self.num_locked = 0
        """On a radix tree: tokens of that prefix."""
        self.num_inserted = 0
        """On a radix tree: tokens that it has entered itself."""
        self.in_batch = False
        self.base = 0
        self.joined = 0
        self.batch_end = 0
        self.last_token_ns = 0
        self.seen_ns = 0
        """When the engine saw it first."""
        self.waits: dict[Blocked, int] | None = None
        self.wait_mark: tuple[int, ...] = ()

    @property
    def resumes_decoding(self) -> bool:
        """Whether it waits to go on with decoding: all that it had to prefill lies on the host."""
        return self.num_swapped > 0 and not self.is_prefilling

    def __repr__(self) -> str:
        return f"Sequence({self.id}, {self.state.value}, {self.computed}/{self.num_tokens} of {self.end})"
