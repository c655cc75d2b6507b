"""The real engine driven by hand: requests arrive at given steps, plans run on a device, tokens are collected."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from collections.abc import Sequence as Items
from pathlib import Path
from typing import Any

import torch

from llmsim.kernels.contract import Kernels
from llmsim.kernels.torch_backend import TorchKernels
from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.model_spec import ModelSpec
from llmsim.policies.core.plan import StepPlan
from llmsim.policies.core.request import Output, Request
from llmsim.real_engine.executor import RealExecutor, StepTicket
from llmsim.real_engine.model.loading import load_model
from llmsim.real_engine.model.transformer import Transformer
from llmsim.real_engine.verification import Proposer
from llmsim.tests.support.driven_core import VLLM


def model_on(device: torch.device, source: Path | ModelSpec, kernels: Kernels | None = None) -> Transformer:
    """A model in fp32, from a folder or with random weights; on plain torch where no kernels are given."""
    return load_model(source, device=device, dtype=torch.float32, seed=0, kernels=kernels or TorchKernels())


class RealRun:
    """One engine on the CPU. `tokens` holds what each request has generated."""

    def __init__(
        self,
        model: Transformer,
        specs: Mapping[str, Mapping[str, Any]] = VLLM,
        *,
        stop_tokens: Items[int] = (),
        propose: Proposer | None = None,
        **limits: Any,
    ) -> None:
        config = EngineConfig(**limits)
        self._specs = specs
        self.core = EngineCore(config, Policies.of(specs), tells_grants=True)
        self.executor = RealExecutor(model, config, outputs="sampled", stop_tokens=stop_tokens, propose=propose)
        self.tokens: dict[str, list[int]] = {}
        self.plans: list[StepPlan] = []
        self.num_preemptions = self.num_swaps = self.num_cached_tokens = self.num_accepted = 0
        self._pipe: deque[tuple[StepPlan, StepTicket]] = deque()

    def begin_anew(self) -> None:
        """A fresh core with the cache of the one before; what was counted is forgotten."""
        while self._pipe:
            self._commit(self.core.now_ns)
        before = self.core
        self.core = EngineCore(before.config, Policies.of(self._specs), tells_grants=True)
        self.core.take_over_cache(before)
        self.core.check_integrity()
        self.tokens, self.plans = {}, []
        self.num_preemptions = self.num_swaps = self.num_cached_tokens = self.num_accepted = 0

    def serve(self, arrivals: Mapping[int, Items[tuple[Request, Output]]]) -> dict[str, list[int]]:
        """Requests by the step at which they arrive; runs until all have ended. Returns their tokens."""
        due = {step: list(requests) for step, requests in arrivals.items()}
        now_ns = 0
        while due or self.core.sequences:
            for step in [step for step in due if step <= now_ns]:
                for request, output in due.pop(step):
                    self._add(request, output, now_ns)
            now_ns += 1
            while len(self._pipe) < self.core.config.depth and (plan := self.core.plan_step(now_ns)) is not None:
                self._note(plan)
                self._pipe.append((plan, self.executor.launch(plan)))
            if self._pipe:
                self._commit(now_ns)
            self.core.check_integrity()
        return self.tokens

    def _add(self, request: Request, output: Output, now_ns: int) -> None:
        self.executor.expect(request, output)
        self.core.add_request(request, now_ns)
        assert request.id in self.core.sequences, self.core.refusal(request)
        self.tokens[request.id] = []

    def _note(self, plan: StepPlan) -> None:
        self.plans.append(plan)
        self.num_preemptions += len(plan.preempted)
        self.num_swaps += len(plan.swaps)
        self.num_cached_tokens += sum(admission.num_cached_tokens for admission in plan.admitted)

    def _commit(self, now_ns: int) -> None:
        plan, ticket = self._pipe.popleft()
        done = ticket.wait()
        for request_id, tokens in done.tokens.items():
            if request_id in self.core.sequences:
                self.tokens[request_id] += tokens
        self.num_accepted += sum((done.result.accepted or {}).values())
        for sequence in self.core.commit_step(plan, done.result, now_ns).finished:
            self.executor.forget(sequence.id)
