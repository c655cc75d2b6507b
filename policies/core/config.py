"""What an engine core is set to, in its own words; presets translate their engine's keys into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .. import registry
from ..conformance import FEATURES, requirements
from ..errors import PolicyError
from ..finding import HERE, Folders
from ..guarding import Watch, guarded
from ..protocols import BatchingPolicy, ChunkSizePolicy, EvictionPolicy, PreemptionPolicy, SchedulingPolicy
from .estimator import StepTimeEstimator

MAX_BLOCK_SIZE = 1 << 16
PrefixIndex = Literal["hashed_blocks", "radix_tree"]
KVReservation = Literal["paged", "contiguous"]


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Limits and switches of one engine. Raises ValueError on a combination that no engine runs."""

    num_blocks: int
    """KV blocks, the null block included."""
    block_size: int = 16
    max_num_seqs: int = 1024
    max_num_batched_tokens: int = 8192
    max_model_len: int = 1 << 60
    depth: int = 1
    """Plans in flight: 2 is asynchronous scheduling."""
    enable_prefix_caching: bool = True
    enable_chunked_prefill: bool = True
    reserve_full_prompt: bool = True
    """Admit only where blocks for all known tokens are free."""
    watermark: float = 0.0
    """Share of the blocks that admissions leave free while anyone runs."""
    num_speculative_tokens: int = 0
    prefix_index: PrefixIndex = "hashed_blocks"
    """What finds cached prefixes, and with it when memory is taken and given back."""
    kv_reservation: KVReservation = "paged"
    """Blocks as tokens come, or at admission one range of them for prompt and `max_tokens`."""
    refuses_what_never_fits: bool = True
    """Refuse a request whose prompt and output exceed the KV memory."""
    spare_tokens: int = 0
    """KV memory beyond prompt and output without which a request is never admitted, so that it is refused."""
    asks_generously: bool = False
    """On a radix tree with pages of several tokens: evict for a page more a row than is needed, as SGLang does."""
    keeps_urgent: bool = True
    """On a radix tree the more urgent's content is of a higher priority. False: of a lower one, as in SGLang where
    clients write urgency as low values."""
    num_host_blocks: int = 0
    """Blocks of host memory for the KV of preempted sequences, where the preemption policy swaps."""

    def __post_init__(self) -> None:
        for name, least in (
            ("num_blocks", 2),
            ("block_size", 1),
            ("max_num_seqs", 1),
            ("max_num_batched_tokens", 1),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name}: {getattr(self, name)} is out of range; at least {least}")
        if self.block_size > MAX_BLOCK_SIZE:
            raise ValueError(f"block_size: {self.block_size} is out of range; at most {MAX_BLOCK_SIZE}")
        if self.depth not in (1, 2):
            raise ValueError(f"depth: {self.depth} is out of range; 1 or 2")
        if not 0 <= self.watermark < 1:
            raise ValueError(f"watermark: {self.watermark} is out of range; at least 0, below 1")
        if self.num_host_blocks < 0:
            raise ValueError(f"num_host_blocks: {self.num_host_blocks} is out of range; at least 0")
        if self.num_speculative_tokens < 0:
            raise ValueError(f"num_speculative_tokens: {self.num_speculative_tokens} is out of range; at least 0")
        if self.num_speculative_tokens and self.depth > 1:
            raise ValueError("num_speculative_tokens: cannot be combined with asynchronous scheduling")
        if self.kv_reservation == "contiguous":
            self._check_contiguous()

    def _check_contiguous(self) -> None:
        for is_wrong, what in (
            (self.enable_prefix_caching, "enable_prefix_caching: ranges share nothing"),
            (self.prefix_index == "radix_tree", "prefix_index radix_tree"),
            (self.num_speculative_tokens > 0, "num_speculative_tokens: drafts may pass the range's end"),
            (not self.refuses_what_never_fits, "refuses_what_never_fits false: a range can be too large for ever"),
        ):
            if is_wrong:
                raise ValueError(f"kv_reservation: contiguous cannot be combined with {what}")


class Policies(NamedTuple):
    """The policies of one engine."""

    batching: BatchingPolicy
    scheduling: SchedulingPolicy
    preemption: PreemptionPolicy
    chunk_size: ChunkSizePolicy
    eviction: EvictionPolicy

    @classmethod
    def of(
        cls,
        specs: Mapping[str, Mapping[str, Any]],
        folders: Folders = HERE,
        estimator: StepTimeEstimator | None = None,
    ) -> Policies:
        """Policies from their specifications by kind; those that are none of the house's are watched.

        Relative files are looked for in `folders`; who requires `step_time` is given the estimator. Raises PolicyError.
        """
        watch = Watch()
        return cls(**{kind: _policy(kind, specs[kind], tuple(folders), estimator, watch) for kind in cls._fields})


def _policy(
    kind: str, spec: Mapping[str, Any], folders: Folders, estimator: StepTimeEstimator | None, watch: Watch
) -> Any:
    policy = registry.create(kind, spec, folders)
    if "step_time" in requirements(type(policy)):
        if estimator is None:
            raise PolicyError("name", f"{spec['name']} requires {FEATURES['step_time']}, which there is none of here")
        policy.use_estimator(estimator)
    return guarded(kind, str(spec["name"]), policy, watch)
