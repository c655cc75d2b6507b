"""Retrieval: | system prompt | documents of a corpus | question (request) |."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..schema_generators import RagSettings
from .agent import spans
from .draft import Draft
from .draws import generator
from .lengths import lengths


def rag_drafts(asked: RagSettings, seed: int, contents: Iterator[int]) -> Iterator[Draft]:
    """Requests without end: documents by Zipf, all of a prompt's different."""
    (system,) = spans(contents, lengths(asked.system_tokens, seed, "system_tokens"), 1)
    corpus = spans(contents, lengths(asked.document_tokens, seed, "document_tokens"), asked.corpus)
    draws = zip(
        retrieved(seed, asked.corpus, asked.document_zipf, asked.documents),
        lengths(asked.question_tokens, seed, "question_tokens"),
        lengths(asked.output_tokens, seed, "output_tokens"),
        strict=False,
    )
    arrange = sorted if asked.order == "given" else list
    return (
        Draft((system, *(corpus[rank] for rank in arrange(ranks))), question, output)
        for ranks, question, output in draws
    )


def retrieved(seed: int, corpus: int, exponent: float, num_documents: int) -> Iterator[list[int]]:
    """So many different ranks from 0, without end, each drawn by Zipf from those that are left.

    An exponential race: the first of independent clocks with rates w to ring is k with probability w_k / sum w, and
    so is the next of those that are left. In logarithms, since 1 / k^exponent may be too small for a float.
    """
    stream = generator(seed, "documents")
    log_weights = -exponent * np.log(np.arange(1, corpus + 1))
    while True:
        rings = np.log(stream.standard_exponential(corpus)) - log_weights
        if num_documents < corpus:
            first = np.argpartition(rings, num_documents - 1)[:num_documents]
        else:
            first = np.arange(corpus)
        yield first[np.argsort(rings[first], kind="stable")].tolist()
