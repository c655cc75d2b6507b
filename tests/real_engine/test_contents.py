"""Token ids of contents: the same on the host and on a device, and the same for equal spans."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llmsim.policies.core.request import Prompt
from llmsim.policies.core.token_stream import TokenStream
from llmsim.real_engine.contents import Contents, content_key, hashed, hashed_on_device

ids = st.integers(-(2**61), 2**61)


@given(ids, st.integers(0, 10**6), st.integers(2, 300_000))
def test_host_and_device_spell_a_content_alike(content: int, offset: int, vocab_size: int) -> None:
    key = content_key(content)
    host = hashed(key, offset, 5, vocab_size)
    offsets = torch.arange(offset, offset + 5)
    device = hashed_on_device(torch.full((5,), key), offsets, vocab_size)
    assert host.tolist() == device.tolist()
    assert 0 <= host.min() <= host.max() < vocab_size


def test_tokens_use_the_whole_vocabulary_evenly() -> None:
    counts = np.bincount(hashed(content_key(7), 0, 100_000, 100), minlength=100)
    assert ((counts - 1000) ** 2 / 1000).sum() < 148.2  # chi-square with 99 degrees of freedom, 0.1 %


def test_contents_beyond_64_bits_are_told_apart() -> None:
    assert len({content_key(content) for content in (0, 1 << 64, 1 << 70, -(1 << 64), -(1 << 70))}) == 5


def test_a_prompt_is_spelt_the_same_in_chunks_and_whole() -> None:
    contents = Contents(1000)
    contents.learn(-1, [5, 6, 7])
    stream = TokenStream(Prompt([(3, 0, 10), (-1, 0, 3), (3, 10, 4)]), -2)
    whole = contents.tokens(stream, 0, 20)
    assert whole[10:13].tolist() == [5, 6, 7]
    parts = [contents.tokens(stream, start, start + 4) for start in range(0, 20, 4)]
    assert np.concatenate(parts).tolist() == whole.tolist()
    again = contents.tokens(TokenStream(Prompt([(3, 0, 14)]), -9), 0, 14)
    assert again.tolist() == [*whole[:10].tolist(), *whole[13:17].tolist()]
    assert len(contents.tokens(stream, 5, 5)) == 0


def test_what_a_request_never_said_is_as_if_forced() -> None:
    """A turn may follow on one that was refused, or broken off: its prompt holds the answer that was to come."""
    contents = Contents(1000)
    contents.learn(-1, [5, 6])
    stream = TokenStream(Prompt([(-1, 0, 6)]), -2)
    with pytest.raises(AssertionError):  # it may still be said
        contents.tokens(stream, 0, 6)
    contents.end(-1)
    whole = contents.tokens(stream, 0, 6).tolist()
    assert whole == [5, 6, *hashed(content_key(-1), 2, 4, 1000).tolist()]
    assert [token for start in range(6) for token in contents.tokens(stream, start, start + 1)] == whole


def test_a_content_that_is_learnt_again_must_say_the_same() -> None:
    contents = Contents(1000)
    contents.learn(-1, [5, 6])
    contents.end(-1)
    contents.learn(-1, said := [5])
    assert contents.agrees(-1)
    said.append(7)
    assert not contents.agrees(-1)
    said[1:] = [6, 9]
    assert contents.agrees(-1)  # the last time it was broken off, and nobody asked how it goes on


def test_what_was_broken_off_and_asked_for_goes_on_as_it_was_asked_for() -> None:
    contents, stream = Contents(1000), TokenStream(Prompt([(-1, 0, 6)]), -2)
    contents.learn(-1, [5, 6])
    contents.end(-1)
    whole = contents.tokens(stream, 0, 6).tolist()
    contents.learn(-1, said := whole[:3])
    assert contents.agrees(-1)
    said[2] = (said[2] + 1) % 1000
    assert not contents.agrees(-1)


def test_what_is_broken_off_earlier_the_second_time_is_what_it_was_the_first_time() -> None:
    contents, stream = Contents(1000), TokenStream(Prompt([(-1, 0, 4)]), -2)
    contents.learn(-1, [5, 6, 7, 8])
    contents.end(-1)
    contents.learn(-1, [5, 6])
    contents.end(-1)
    assert contents.tokens(stream, 0, 4).tolist() == [5, 6, 7, 8]


def test_literal_tokens_stand_for_themselves() -> None:
    stream = TokenStream(Prompt.of_tokens([9, 8, 7]), -2)
    assert Contents(10).tokens(stream, 1, 3).tolist() == [8, 7]
    with pytest.raises(ValueError, match=r"token 9 is beyond the model's vocabulary of 9"):
        Contents(9).tokens(stream, 0, 3)
