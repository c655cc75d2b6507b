"""Content becomes token ids: equal spans are equal tokens, everywhere and in every run.

A content id's j-th token is a hash of the two (splitmix64's finaliser, Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014), so that none has to be stored, and a device can compute it by itself.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..policies.core.token_stream import TokenStream

_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_MASK = (1 << 64) - 1
Ids = NDArray[np.int64]


class Contents:
    """Token ids below `vocab_size` of contents; some are learnt, since an engine has sampled them."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self._learnt: dict[int, list[int]] = {}
        self._growing: set[int] = set()
        self._before: dict[int, list[int]] = {}
        """What those that grow were the last time; caches may hold it."""
        self._continued: set[int] = set()
        """What was broken off and yet asked for beyond its end."""

    def learn(self, content: int, tokens: list[int]) -> None:
        """From now on these are the content's tokens; the list may grow until `end`.

        What was learnt before must become the same again (`agrees`): there is one text to a content.
        """
        if content in self._learnt:
            self._before[content] = self._learnt[content]
        self._learnt[content] = tokens
        self._growing.add(content)

    def agrees(self, content: int) -> bool:
        """Whether the last token of a list that grows is what the content had there the last time, if it had one."""
        before, tokens = self._before.get(content), self._learnt[content]
        if before is None:
            return True
        at = len(tokens) - 1
        if at < len(before):
            return tokens[at] == before[at]
        return content not in self._continued or tokens[at] == self._unsaid(content, at, 1)[0]

    def end(self, content: int) -> None:
        """The list does not grow any more: what was refused or broken off goes on as if nothing had been learnt.

        Or as the last time, if it went on longer then.
        """
        self._growing.discard(content)
        before = self._before.pop(content, ())
        if len(before) > len(self._learnt[content]):
            self._learnt[content] = list(before)

    def tokens(self, stream: TokenStream, start: int, stop: int) -> Ids:
        """Ids of the tokens in [start, stop) of a stream. [stop - start]. ValueError: a token beyond the vocabulary."""
        pieces = [self._piece(*span) for span in stream.spans(start, stop)]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces) if pieces else np.zeros(0, np.int64)

    def _piece(self, content: object, offset: int, length: int) -> Ids:
        if isinstance(content, int):
            learnt = self._learnt.get(content)
            if learnt is None:
                return self._unsaid(content, offset, length)
            said = np.array(learnt[offset : offset + length], np.int64)
            if len(said) == length:
                return said
            assert content not in self._growing, (content, offset, length, len(learnt))
            self._continued.add(content)
            return np.concatenate([said, self._unsaid(content, offset + len(said), length - len(said))])
        assert isinstance(content, (tuple, list)), content
        literal = np.array(content[offset : offset + length], np.int64)
        if literal.size and not 0 <= literal.min() <= literal.max() < self.vocab_size:
            raise ValueError(f"token {literal.max()} is beyond the model's vocabulary of {self.vocab_size}")
        return literal

    def _unsaid(self, content: int, offset: int, length: int) -> Ids:
        return hashed(content_key(content), offset, length, self.vocab_size)


def content_key(content: int) -> int:
    """A content id as a signed number of 64 bits, well mixed."""
    if not -(1 << 63) <= content < 1 << 63:
        content = int.from_bytes(hashlib.blake2b(str(content).encode(), digest_size=8).digest(), "little")
    mixed = _mix(content & _MASK)
    return mixed - (1 << 64) if mixed >> 63 else mixed


def _mix(x: int) -> int:
    x = (x ^ x >> 30) * _FIRST & _MASK
    x = (x ^ x >> 27) * _SECOND & _MASK
    return x ^ x >> 31


def hashed(key: int, offset: int, length: int, vocab_size: int) -> Ids:
    """Tokens offset .. offset + length - 1 of the content with this key. [length]."""
    x = np.arange(offset + 1, offset + length + 1, dtype=np.uint64) * np.uint64(_GAMMA) + np.uint64(key & _MASK)
    x = (x ^ x >> np.uint64(30)) * np.uint64(_FIRST)
    x = (x ^ x >> np.uint64(27)) * np.uint64(_SECOND)
    x ^= x >> np.uint64(31)
    ids: Ids = ((x >> np.uint64(1)) % np.uint64(vocab_size)).astype(np.int64)
    return ids


def hashed_on_device(keys: Tensor, offsets: Tensor, vocab_size: int) -> Tensor:
    """The same, one token each: keys [S] int64, offsets [S] int64 -> [S] int64."""
    x = (offsets + 1) * _signed(_GAMMA) + keys
    x = (x ^ _shifted(x, 30)) * _signed(_FIRST)
    x = (x ^ _shifted(x, 27)) * _signed(_SECOND)
    x = x ^ _shifted(x, 31)
    return torch.remainder(_shifted(x, 1), vocab_size)


def _signed(x: int) -> int:
    return x - (1 << 64) if x >> 63 else x


def _shifted(x: Tensor, bits: int) -> Tensor:
    """A logical shift to the right: torch's is arithmetic."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
