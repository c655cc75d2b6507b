"""The executor that measures: plans run on a device, in order, while the host plans ahead."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ..policies.core.config import EngineConfig
from ..policies.core.estimator import StepCost
from ..policies.core.plan import StepPlan, StepResult
from ..policies.core.request import Output, Request
from ..policies.core.sequence import Sequence
from ..policies.core.stop_calendar import StopCalendar
from .attention_inputs import KVStorage
from .contents import Contents
from .contract import StepDone, StepFailed
from .device_state import DeviceState, info_line
from .graphs import DecodeGraphs, can_capture
from .host_kv import HostKV
from .mirror import Changes, Mirror
from .model.transformer import Transformer
from .runner import StepRunner
from .sampling_params import GREEDY, SamplingParams
from .step_work import StepWork, step_work
from .streams import CudaStream, Pending, Stream, ThreadStream
from .upload import Uploader
from .verification import Proposer, verify

Outputs = Literal["forced", "sampled"]
Ints = NDArray[np.int64]
OTHERWISE = "the cache holds another answer; with run.cache 'warm' choose run.outputs: forced"


class RealExecutor:
    """Runs plans of a core that tells its grants, on the model's device, with KV of its own.

    With `outputs="forced"` requests generate the workload's content, with "sampled" what the model says; lengths are
    the workload's in both, unless one of `stop_tokens` comes first.
    """

    def __init__(
        self,
        model: Transformer,
        config: EngineConfig,
        *,
        outputs: Outputs = "forced",
        stop_tokens: Iterable[int] = (),
        uses_graphs: bool = True,
        propose: Proposer | None = None,
        stream: Stream | None = None,
    ) -> None:
        """`propose` guesses the drafts of a core that plans any; `stream`: another than the device's own."""
        device = model.device
        max_blocks = -(-min(config.max_model_len, config.num_blocks * config.block_size) // config.block_size)
        self._samples = outputs == "sampled"
        self._stop_tokens = frozenset(stop_tokens)
        self._propose = propose
        self._kv = kv_storage(model, config)
        self._contents = Contents(model.config.spec.vocab_size)
        self._mirror = Mirror(config.max_num_seqs, max_blocks, config.block_size)
        self._state = DeviceState(config.max_num_seqs, max_blocks, device)
        self._host_kv = HostKV(self._kv)
        self._uploader = Uploader(device)
        self._runner = StepRunner(model, self._kv, self._state, self._uploader, forces_outputs=not self._samples)
        self._calendar = StopCalendar()
        self._outputs: dict[str, tuple[int, list[int]]] = {}  # content and tokens
        self._params: dict[str, SamplingParams] = {}
        self._num_random = 0
        self._stream = stream or (CudaStream(device) if device.type == "cuda" else ThreadStream())
        if uses_graphs and can_capture(device, model.kernels):
            self._capture(min(config.max_num_seqs, config.max_num_batched_tokens))

    def _capture(self, max_rows: int) -> None:
        runner = self._runner
        with torch.cuda.device(self._state.device), torch.inference_mode():
            runner.graphs = DecodeGraphs(lambda rows, is_random: runner.decode(rows, is_random=is_random), max_rows)

    def expect(self, request: Request, output: Output, sampling: SamplingParams = GREEDY) -> None:
        """Learn of a request, what it will generate where outputs are forced, and how its tokens are chosen."""
        assert not self._propose or output.length == request.max_tokens, f"{request.id}: with drafts lengths are exact"
        if output.tokens is not None:
            raise ValueError(f"{request.id}: literal output tokens cannot be forced on a device")
        self._calendar.expect(request.id, request.max_tokens, output)
        if self._samples:
            tokens: list[int] = []
            self._outputs[request.id] = request.output_content, tokens
            self._contents.learn(request.output_content, tokens)
        self._params[request.id] = sampling
        self._num_random += sampling.temperature > 0

    def forget(self, request_id: str) -> None:
        """The request ended."""
        self._calendar.forget(request_id)
        self._mirror.forget(request_id)
        if (output := self._outputs.pop(request_id, None)) is not None:
            self._contents.end(output[0])
        params = self._params.pop(request_id, GREEDY)
        self._num_random -= params.temperature > 0

    def launch(self, plan: StepPlan) -> StepTicket:
        """Send a plan's step on its way. Raises StepFailed, and ValueError for tokens that the model does not know."""
        mirror = self._mirror
        changes = mirror.follow(plan)
        work = step_work(plan, changes, mirror, self._contents, self._propose)
        lines = [info_line(sequence, self._params[sequence.id]) for _, sequence in changes.new_rows]
        packed = np.array(lines, np.int64).reshape(-1, 6)
        owners = self._owners(work) if self._samples else []
        is_random = self._num_random > 0
        try:
            pending = self._stream.send(lambda: self._run(work, changes, packed, is_random))
        except AssertionError:
            raise
        except Exception as error:  # A GPU's memory, say, runs out; Triton raises Exceptions of its own.
            raise StepFailed.of(plan.step, error) from error
        return StepTicket(self, work, pending, owners, self._calendar.stopped(plan))

    def _run(self, work: StepWork, changes: Changes, lines: Ints, is_random: bool) -> torch.Tensor:
        """On the device's side: copies out, tables, copies in, then the step itself."""
        self._host_kv.copy_out(changes)
        self._state.apply(changes, lines, self._uploader)
        self._host_kv.copy_in(changes)
        if not work.num_tokens:
            return torch.ones(1, dtype=torch.int64, device=self._state.device)
        return self._runner.run(work, is_random=is_random)

    def _owners(self, work: StepWork) -> list[Sequence]:
        """Whose the tokens are that the step samples, in their order."""
        rows = np.concatenate([self._mirror.members[: work.num_members], work.tail_rows[work.tail_samples]])
        owners: list[Sequence] = self._mirror.owners[rows].tolist()
        return owners

    def learn(self, step: int, owners: list[Sequence], tokens: list[int]) -> list[str]:
        """Note sampled tokens; the ids of the requests that met a stop token.

        Raises StepFailed where one that is served again answers otherwise: caches may hold what it said before.
        """
        for sequence, token in zip(owners, tokens, strict=True):
            if (output := self._outputs.get(sequence.id)) is not None:
                content, said = output
                said.append(token)
                if not self._contents.agrees(content):
                    which = f"token {len(said)} of {sequence.id} is not that of the pass before"
                    raise StepFailed(f"step {step}: {which}: {OTHERWISE}")
        if self._stop_tokens.isdisjoint(tokens):
            return []
        return [owner.id for owner, token in zip(owners, tokens, strict=True) if token in self._stop_tokens]

    def verify(self, work: StepWork, tokens: list[int]) -> tuple[dict[str, int], list[int]]:
        """Accepted drafts by request, and the places of the sampled tokens that count."""
        return verify(work.drafted, tokens, self._stop_tokens)

    def close(self) -> None:
        """Finish what is under way and free the device's memory."""
        self._stream.close()
        is_cuda = self._state.device.type == "cuda"
        del self._runner, self._state, self._kv, self._host_kv
        if is_cuda:
            torch.cuda.empty_cache()


class StepTicket:
    """A step on its way to the device and back."""

    def __init__(
        self, executor: RealExecutor, work: StepWork, pending: Pending, owners: list[Sequence], stopped: list[str]
    ) -> None:
        self._executor = executor
        self._work = work
        self._pending = pending
        self._owners = owners
        self._stopped = stopped

    def wait(self) -> StepDone:
        """Wait until its tokens have reached the host. Raises StepFailed. Once."""
        try:
            finished = self._pending.wait()
        except AssertionError:
            raise
        except Exception as error:  # Whatever stopped the device's thread.
            raise StepFailed.of(self._work.step, error) from error
        *tokens, is_finite = finished.values.tolist()
        if not is_finite:
            raise StepFailed(f"step {self._work.step}: the model yielded numbers that are not finite")
        cost = StepCost(finished.duration_ns, 0, 0, 0)
        result, owners = StepResult(cost.device_ns, self._stopped), self._owners
        if self._work.drafted:
            result.accepted, places = self._executor.verify(self._work, tokens)
            tokens = [tokens[place] for place in places]
            owners = [owners[place] for place in places] if owners else []
        if not owners:
            return StepDone(result, cost, {})
        met = self._executor.learn(self._work.step, owners, tokens)
        result.stopped = list(dict.fromkeys([*self._stopped, *met]))
        got: dict[str, list[int]] = {}
        for sequence, token in zip(owners, tokens, strict=True):
            got.setdefault(sequence.id, []).append(token)
        return StepDone(result, cost, got)


def kv_storage(model: Transformer, config: EngineConfig) -> KVStorage:
    """Empty KV memory for the core's blocks: zeros, so that nothing unwritten is ever a NaN."""
    spec = model.config.spec
    shape = (config.num_blocks, spec.num_kv_heads, config.block_size, spec.head_dim)
    caches = [_zeros(shape, model.dtype, model.device) for _ in range(2 * spec.num_layers)]
    return KVStorage(tuple(caches[0::2]), tuple(caches[1::2]))


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """On a CPU memory that is taken page by page, as it is written to."""
    if device.type != "cpu":
        return torch.zeros(shape, dtype=dtype, device=device)
    return torch.from_numpy(np.zeros(prod(shape) * dtype.itemsize, np.uint8)).view(dtype).view(shape)
