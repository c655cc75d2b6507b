"""The cost model of a measured profile: a step is the sum of its kernels' measured or interpolated times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...policies.core.estimator import Share, StepCost, StepShape
from ...policies.core.gpu_spec import GpuSpec
from ...policies.core.model_spec import ModelSpec
from .analytic import AnalyticCostModel
from .attention import attention_of
from .attention_curve import AttentionCurve
from .curve_grid import Basis, CurveGrid
from .decode_line import DecodeLine
from .joined_chunks import joined
from .kernel import Kernel
from .kernel_floors import US_PER_S, KernelFloors
from .priced_part import NOTHING, Part
from .profile import Curve, Profile, gpu_of
from .roofline import Efficiencies
from .shared_reads import SharedReads
from .timings import SHAPES

NS_PER_US = 1e3


class ProfiledStretch(NamedTuple):
    """What each of a stretch of steps costs, in integer nanoseconds, and what that rests on; arrays [num_steps]."""

    device_ns: NDArray[np.int64]
    host_ns: NDArray[np.int64]
    compute_ns: NDArray[np.int64]
    memory_ns: NDArray[np.int64]
    extrapolated: NDArray[np.bool_]
    share: Share


class ProfiledCostModel:
    """Prices steps of `model` by a profile that was measured with its shapes. A StepTimeEstimator.

    `graph_sizes`, ascending, are the numbers of tokens to which CUDA graphs pad a step; larger steps, and all where
    there are none, keep theirs. With `pads_decodes_alone` only steps of decodes are padded, their rows too. What was
    not measured is priced by the data sheet of `gpu`, the profile's own where left out, and no step beats its floor.
    ProfileError where the profile is another model's.
    """

    def __init__(
        self,
        profile: Profile,
        model: ModelSpec,
        tensor_parallel: int = 1,
        gpu: GpuSpec | None = None,
        kv_dtype_bytes: int = 2,
        graph_sizes: Sequence[int] = (),
        *,
        pads_decodes_alone: bool = False,
    ) -> None:
        profile.check_model(model, tensor_parallel, kv_dtype_bytes)
        header, gpu = profile.header, gpu or gpu_of(profile.header)
        self.profile = profile
        self.floors = KernelFloors(model, gpu, tensor_parallel, kv_dtype_bytes)
        host = Efficiencies(host_step_s=header.host.step_s, host_request_s=header.host.request_s)
        self._analytic = AnalyticCostModel(model, gpu, tensor_parallel, host, kv_dtype_bytes)
        self._layers = model.num_layers
        self._graph_sizes = _padding(graph_sizes)
        self._pads_decodes_alone = pads_decodes_alone
        self._curves = {name: self._curve(name) for name in SHAPES if name != "attention" and profile.points(name)}
        equal = {shape[:4]: t for shape, t in profile.points("attention").items() if shape[4] <= shape[3]}
        derived = {shape[:4] for shape in profile.derived("attention")}
        self._attention = attention_of(header.attention, equal, self.floors.attention_us, derived)
        unequal = header.unequal_contexts
        self._corrects_decodes = unequal.applied
        self._unequal_contexts = unequal
        self._reads = SharedReads(header.shared_contexts.alpha, self._analytic)
        self._factors, self._added_ns = header.residual.factors(), header.residual.added_ns()
        self._is_sampled_only = header.logits == "sampled"
        self._tokens: dict[int, Part] = {}
        self._rows: dict[int, Part] = {}
        self._decodes: dict[int, tuple[Part, DecodeLine, Share]] = {}

    def step_cost(self, shape: StepShape) -> StepCost:
        """Cost of one step of this shape; an empty one costs no device time."""
        if shape.num_unfinished and self._is_sampled_only:
            shape = shape._replace(num_samples=shape.num_samples - shape.num_unfinished, num_unfinished=0)
        floor = self._analytic.step_cost(shape)
        chunks, num_decodes, context, longest, num_samples, num_drafts, _, shared = shape
        if chunks or num_drafts or num_samples != num_decodes:
            return self._mixed(shape, floor)
        if not num_decodes:
            return floor
        rest, line, share = self._decodes.get(num_decodes) or self._price_decodes(num_decodes)
        ns, basis = line.at(context)
        saved = 0.0
        if shared and (again := self._reads.again(shared, context, longest)):
            saved = self._reads.alpha * (ns - line.at(context - again)[0])
            floor = self._reads.under(floor, shape, again)
        if self._corrects_decodes and num_decodes * longest > context:
            ns += self._unequal(num_decodes, ns, line.at(num_decodes * longest)[0], NS_PER_US * self._layers)
        ns -= saved
        factor, added_ns = self._factors[0], self._added_ns[0]
        if basis != Basis.INTERPOLATED:
            return rest.plus(ns, basis).step(factor, added_ns, floor)
        device_ns = max(round((rest.ns + ns) * factor + added_ns), floor.compute_ns, floor.memory_ns)
        return StepCost(device_ns, *floor[1:4], rest.extrapolated_ns > 0, share)

    def decode_stretch(
        self, num_decodes: int, context_tokens: int, max_context: int, num_steps: int, shared_tokens: int = 0
    ) -> ProfiledStretch:
        """Costs of `num_steps` steps of the same decodes, whose contexts grow by one each step.

        Equal, to the nanosecond, to asking for each step alone. What is shared is shared by these decodes.
        """
        floor = self._analytic.decode_stretch(num_decodes, context_tokens, max_context, num_steps)
        rest, line, _ = self._decodes.get(num_decodes) or self._price_decodes(num_decodes)
        steps: NDArray[np.int64] = np.arange(num_steps, dtype=np.int64)
        context = context_tokens + num_decodes * steps
        ns, basis = line.along(context)
        saved: Any = 0.0
        if again := self._reads.again(shared_tokens, context_tokens, max_context):
            saved = self._reads.alpha * (ns - line.along(context - again)[0])
            read = context_tokens - self._reads.num_saved(again)
            less = self._analytic.decode_stretch(num_decodes, read, max_context, num_steps)
            floor = floor._replace(memory_ns=less.memory_ns)
        if self._corrects_decodes and num_decodes * max_context > context_tokens:
            longest = line.along(num_decodes * (max_context + steps))[0]
            ns += self._unequal(num_decodes, ns, longest, NS_PER_US * self._layers)
        ns -= saved
        factor = self._factors[0]
        whole = np.rint((rest.ns + ns) * factor + self._added_ns[0]).astype(np.int64)
        device = np.maximum(whole, np.maximum(floor.compute_ns, floor.memory_ns))
        measured = np.rint((rest.measured_ns + np.where(basis == Basis.MEASURED, ns, 0.0)) * factor).astype(np.int64)
        beyond = (rest.extrapolated_ns + np.where(basis == Basis.EXTRAPOLATED, ns, 0.0)) * factor
        data_sheet = np.full(num_steps, round(rest.data_sheet_ns * factor), dtype=np.int64)
        share = Share(measured, np.rint(beyond).astype(np.int64), data_sheet)
        return ProfiledStretch(device, floor.host_ns, floor.compute_ns, floor.memory_ns, beyond > 0, share)

    def attention_us(self, q_tokens: int, kv_tokens: int, num_decodes: int, mean_context: float) -> tuple[float, Basis]:
        """Attention of one layer, equal contexts, and what it rests on."""
        return self._attention.at(q_tokens, kv_tokens, num_decodes, mean_context)

    def kernel_us(self, name: str, size: int) -> tuple[float, Basis]:
        """One launch of a kernel at so many tokens or rows, and what that rests on."""
        if name in self._curves:
            return self._curves[name].at((size,))
        return self.floors.roofline.launch_s(self.floors.kernel(name, size)) * US_PER_S, Basis.DATA_SHEET

    def _mixed(self, shape: StepShape, floor: StepCost) -> StepCost:
        chunks, num_decodes, context, longest, num_samples, num_drafts, _, shared = shape
        q_tokens = sum(q for q, _ in chunks)
        num_tokens, num_rows = q_tokens + num_decodes + num_drafts, num_samples + num_drafts
        kind = 2 if q_tokens and num_decodes else bool(q_tokens)
        if not self._pads_decodes_alone:
            num_tokens = self._padded(num_tokens)
        rest = self._joined(num_tokens, num_rows)
        queries = num_decodes + num_drafts
        mean = context / num_decodes if num_decodes else 0
        us, basis = self._attention.of_chunks(chunks, queries, mean)
        if queries > 1 and longest > mean:
            us += self._unequal_us(chunks, queries, mean, longest)
        if shared and (again := self._reads.again(shared, context, longest)):
            once = self._attention.at(0, 0, queries, mean - again / num_decodes)[0]
            us -= self._reads.alpha * (self._attention.at(0, 0, queries, mean)[0] - once)
            floor = self._reads.under(floor, shape, again)
        kernels = rest.plus(us * NS_PER_US * self._layers, basis)
        return kernels.step(self._factors[kind], self._added_ns[kind], floor)

    def _unequal_us(self, chunks: Sequence[tuple[int, int]], queries: int, mean: float, longest: float) -> float:
        """What unequal contexts of the decodes add to attention, in one layer."""
        if chunks and isinstance(self._attention, AttentionCurve):
            alpha = self._unequal_contexts.mixed_alpha
            return alpha * self._attention.longer(*joined(chunks), mean, longest) if alpha else 0.0
        if not self._corrects_decodes:
            return 0.0
        alone = self._attention.at(0, 0, queries, mean)[0]
        return float(self._unequal(queries, alone, self._attention.at(0, 0, queries, longest)[0], 1.0))

    def _unequal(self, queries: int, mean: Any, longest: Any, units_per_us: float) -> Any:
        """The same of decodes in a launch of their own: a time, or an array of them."""
        unequal = self._unequal_contexts
        added = (unequal.decode_us + unequal.decode_each_us * queries) * units_per_us
        return unequal.decode_alpha * (longest - mean) + added

    def _price_decodes(self, num_decodes: int) -> tuple[Part, DecodeLine, Share]:
        """All but attention, attention by context, and what the former rests on."""
        curve = self._attention.decode
        assert curve is not None, "the fit refuses a profile without decodes"
        padded = self._padded(num_decodes)
        rest = self._joined(padded, padded if self._pads_decodes_alone else num_decodes)
        scale = NS_PER_US * self._layers
        line = DecodeLine(curve, num_decodes, scale, lambda n, mean: self.floors.attention_us(0, 0, n, mean))
        priced = self._decodes[num_decodes] = rest, line, rest.share(self._factors[0])
        return priced

    def _joined(self, num_tokens: int, num_rows: int) -> Part:
        """All but attention."""
        tokens, rows = self._tokens.get(num_tokens), self._rows.get(num_rows)
        if tokens is None:
            tokens = self._tokens[num_tokens] = self._price(
                self.floors.transformer.token_kernels(num_tokens), num_tokens
            )
        if rows is None:
            rows = self._rows[num_rows] = self._price(self.floors.transformer.row_kernels(num_rows), num_rows)
        return Part(*[a + b for a, b in zip(tokens, rows, strict=True)])

    def _padded(self, num_tokens: int) -> int:
        """The size of the graph that so many tokens run in; theirs where there is none."""
        return self._graph_sizes[num_tokens] if num_tokens < len(self._graph_sizes) else num_tokens

    def _price(self, kernels: Iterable[Kernel], size: int) -> Part:
        part = NOTHING
        for kernel in kernels:
            if kernel.name not in self.profile.header.contained:
                us, basis = self.kernel_us(kernel.name, size)
                part = part.plus(us * NS_PER_US * kernel.num_launches, basis)
        return part

    def _curve(self, name: str) -> Curve:
        floor = partial(self._floor_us, name)
        if name == "moe":
            points = self._expert_points()
            return CurveGrid(points, floor, derived=points)
        return self.profile.curve(name, floor)

    def _expert_points(self) -> dict[tuple[int, ...], float]:
        """Experts by tokens alone, at the number of experts that so many tokens need on average."""
        model = self.floors.transformer.model
        grid = CurveGrid(self.profile.points("moe"), lambda *shape: self.floors.floor_us("moe", shape))
        tokens = {shape[0] for shape in self.profile.points("moe")}
        return {(size,): grid.at((size, model.active_experts(size)))[0] for size in tokens}

    def _floor_us(self, name: str, size: int) -> float:
        if name == "moe":
            return self.floors.floor_us(name, (size, round(self.floors.transformer.model.active_experts(size))))
        return self.floors.floor_us(name, (size,))


def _padding(graph_sizes: Sequence[int]) -> list[int]:
    """For each number of tokens, from 0 to the largest graph, the size of the graph that it runs in."""
    padded: list[int] = []
    for size in graph_sizes:
        padded += [size] * (size + 1 - len(padded))
    return padded
