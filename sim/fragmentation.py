"""How much KV memory is lost between requests and inside of what they hold.

    internal    held, but not (yet) filled with KV: the rest of a reserved range, or of a paged request's last block
    external    free, but in holes too small for the request at the head of the queue, which is refused for that

Terms: Kwon et al., SOSP 2023, section 3.1 (their "reserved" slots, to be used later, are part of internal here).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .columns import Ints
from .window import Level, Window


@dataclass(frozen=True, slots=True)
class KVLayout:
    """How an engine's requests hold KV memory."""

    block_size: int = 1
    shares_blocks: bool = True
    """Whether the prefix index lets requests share blocks; then nobody can say whose the unfilled ones are."""
    is_contiguous: bool = False
    """Whether each request holds one piece."""


class FragmentationFold:
    """The loss over a window. Internal fragmentation wants unshared blocks, external one contiguous ranges."""

    def __init__(self, window: Window, usable_blocks: int, layout: KVLayout) -> None:
        self._window = window
        self._usable_blocks = usable_blocks
        self._layout = layout
        self._unfilled_tokens, self._stranded_blocks = Level(), Level()
        self._num_refused = 0
        self._num_scattered = 0

    def add(self, from_ns: Ints, dt_ns: Ints, used_blocks: Ints, kv_tokens: Ints, refused_blocks: Ints) -> None:
        """From `from_ns` on and for `dt_ns` of the window these blocks were used and tokens held.

        `refused_blocks` had to be free for a request that was refused at `from_ns`, 0 where none was.
        """
        layout = self._layout
        if not layout.shares_blocks:
            self._unfilled_tokens.add(used_blocks.astype(np.int64) * layout.block_size - kv_tokens, dt_ns)
        if layout.is_contiguous:
            free, was_refused = self._usable_blocks - used_blocks, refused_blocks > 0
            self._stranded_blocks.add(free * was_refused, dt_ns)
            counts = was_refused & (from_ns >= self._window.start_ns) & (from_ns < self._window.end_ns)
            self._num_refused += int(counts.sum())
            self._num_scattered += int((counts & (refused_blocks <= free)).sum())

    def summary(self) -> dict[str, Any]:
        """Shares of the KV memory, and of refused admissions those for which enough was free, but not in one piece.

        None where the figure has no meaning, or no sample.
        """
        layout, length_ns, refused = self._layout, self._window.length_ns, self._num_refused
        usable = self._usable_blocks
        internal_scale = 0 if layout.shares_blocks else usable * layout.block_size
        return {
            "internal": self._unfilled_tokens.summary(length_ns, scale=internal_scale),
            "external": self._stranded_blocks.summary(length_ns, scale=usable if layout.is_contiguous else 0),
            "num_refused_admissions": refused if layout.is_contiguous else None,
            "scattered_share": self._num_scattered / refused if refused else None,
        }
