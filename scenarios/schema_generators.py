"""The `workload` section of each generator of single requests."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from .schema_lengths import FileBeside, Length, LogNormal, LogNormalLength
from .schema_pacing import Asking, Generated, Pacing


class AgentSettings(Generated):
    """Agents of several tenants: system prompt + tools + repository context + question.

    The lengths are nobody's measurement; they add up to about the mean prompt (6,200) and output (110 tokens,
    CV 0.5) of the LMCache trace of a software-engineering agent.
    """

    type: Literal["agent"]
    tenants: Annotated[int, Field(ge=1, le=10**6)] = 20
    tenant_zipf: Annotated[float, Field(ge=0, le=20)] = 1.0
    """The k-th tenant's share is proportional to 1 / k^tenant_zipf; 0 makes them equal."""
    repositories: Annotated[int, Field(ge=1, le=10**6)] = 8
    """Repositories of one tenant."""
    repository_zipf: Annotated[float, Field(ge=0, le=20)] = 1.0
    system_tokens: Length = 500
    """Drawn once a tenant, as are the tools."""
    tools_tokens: Length = 1500
    repository_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=4000, cv=0.5, max=16000))
    """Drawn once a repository."""
    question_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=200, cv=1.0, max=4000))
    """Drawn a request, as are the outputs."""
    output_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=110, cv=0.5, max=1000))

    @model_validator(mode="after")
    def _repositories_fit(self) -> Self:
        if self.tenants * self.repositories > 10**6:
            raise PydanticCustomError("range", "tenants x repositories is out of range: at most 1,000,000")
        return self


class IndependentSettings(Generated):
    """Requests that share nothing."""

    type: Literal["independent"]
    prompt_tokens: Length = 512
    output_tokens: Length = 128


class FewShotSettings(Generated):
    """Tasks with examples: instructions + the task's examples + question. The lengths are nobody's measurement."""

    type: Literal["few_shot"]
    tasks: Annotated[int, Field(ge=1, le=10**5)] = 10
    task_zipf: Annotated[float, Field(ge=0, le=20)] = 1.0
    """The k-th task's share is proportional to 1 / k^task_zipf."""
    examples: Annotated[int, Field(ge=0, le=1000)] = 5
    """Of one task, all of them in each of its prompts."""
    order: Literal["given", "shuffled"] = "given"
    """`shuffled`: in another order for each request, so that few beginnings are shared."""
    instruction_tokens: Length = 200
    """Drawn once a task."""
    example_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=250, cv=0.5, max=2000))
    """Drawn once an example."""
    question_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=100, cv=0.8, max=2000))
    output_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=50, cv=1.0, max=1000))

    @model_validator(mode="after")
    def _examples_fit(self) -> Self:
        if self.tasks * self.examples > 10**6:
            raise PydanticCustomError("range", "tasks x examples is out of range: at most 1,000,000")
        return self


class RagSettings(Generated):
    """Retrieval: system prompt + documents from a corpus + question. The lengths are nobody's measurement."""

    type: Literal["rag"]
    corpus: Annotated[int, Field(ge=1, le=10**5)] = 1000
    """Documents that there are."""
    document_zipf: Annotated[float, Field(ge=0, le=20)] = 1.0
    """The k-th document is retrieved first with a probability proportional to 1 / k^document_zipf."""
    documents: Annotated[int, Field(ge=1, le=1000)] = 4
    """Of one prompt, all different: each is drawn from those that are left."""
    order: Literal["given", "shuffled"] = "shuffled"
    """`shuffled`: as they were retrieved. `given`: as they stand in the corpus, the most popular first, so that prompts
    with the same documents share them."""
    system_tokens: Length = 200
    """Drawn once."""
    document_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=600, cv=0.5, max=4000))
    """Drawn once a document."""
    question_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=50, cv=0.8, max=1000))
    output_tokens: Length = LogNormalLength(lognormal=LogNormal(mean=150, cv=0.7, max=1500))

    @model_validator(mode="after")
    def _the_corpus_has_them(self) -> Self:
        if self.documents > self.corpus:
            says = f"documents {self.documents} is out of range: the corpus has {self.corpus}"
            raise PydanticCustomError("range", "{says}", {"says": says})
        return self


class PrefixReuseSettings(Generated):
    """Requests drawn from a table of rows, whose prompts go on from where earlier prompts, chosen by age, are left.

    `llmsim workload fit` writes such a table for a trace.
    """

    type: Literal["prefix_reuse"]
    rows: FileBeside
    """A CSV with the columns `prompt_tokens, output_tokens, reused_blocks, distance_blocks, younger_blocks`."""
    block_tokens: Annotated[int, Field(ge=1, le=10**6)] = 512
    """Prompts are reused in whole blocks of so many tokens."""


class SharedPrefixSettings(Pacing, Asking):
    """Groups with a system prompt each, as SGLang's benchmark makes them, with its names and its defaults."""

    type: Literal["generated_shared_prefix"]
    num_groups: Annotated[int, Field(ge=1, le=10**5)] = 64
    prompts_per_group: Annotated[int, Field(ge=1, le=10**6)] = 16
    system_prompt_len: Length = 2048
    """Drawn once a group."""
    question_len: Length = 128
    output_len: Length = 256
    order: Literal["shuffled", "grouped"] = "shuffled"
    """`grouped`: one group after another."""

    @model_validator(mode="after")
    def _not_too_many(self) -> Self:
        if self.num_groups * self.prompts_per_group > 10**7:
            raise PydanticCustomError("range", "num_groups x prompts_per_group is out of range: at most 10,000,000")
        return self

    @property
    def count(self) -> int:
        """All prompts of all groups."""
        return self.num_groups * self.prompts_per_group
