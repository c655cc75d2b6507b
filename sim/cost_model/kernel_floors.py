"""What each kernel of a profile takes at least, and what one that was not measured would take, by the data sheet."""

from __future__ import annotations

from ...policies.core.gpu_spec import GpuSpec
from ...policies.core.model_spec import ModelSpec
from .kernel import Kernel
from .roofline import Efficiencies, Roofline
from .timings import BY_ROWS, Shape
from .transformer import Transformer

US_PER_S = 1e6


class KernelFloors:
    """The roofline of each kernel of a model so divided, in microseconds a launch."""

    def __init__(self, model: ModelSpec, gpu: GpuSpec, tensor_parallel: int, kv_dtype_bytes: int) -> None:
        self.transformer = Transformer(model, tensor_parallel, kv_dtype_bytes)
        self.roofline = Roofline(gpu, Efficiencies())
        self._attention_flop_per_s = gpu.peak_flop_per_s(model.activation_dtype)

    def kernel(self, name: str, size: int) -> Kernel:
        """A kernel at so many tokens or rows; KeyError where the model has none of that name."""
        rows = name in BY_ROWS
        kernels = self.transformer.row_kernels(size) if rows else self.transformer.token_kernels(size)
        return {kernel.name: kernel for kernel in kernels}[name]

    def floor_us(self, name: str, shape: Shape) -> float:
        """The least time of a shape: its bytes at full bandwidth or its FLOPs at full peak, whichever is longer."""
        if name == "attention":
            return self.attention_us(*shape[:4])
        if name == "moe" and self.transformer.model.num_experts:
            return self._launch_us(self.transformer.moe_kernel(*shape))
        kernel = self.kernel(name, shape[0])
        if name == "all_reduce":
            link = self.roofline.gpu.interconnect_bytes_per_s
            return kernel.link_bytes / (link / 2) * US_PER_S if link else 0.0
        return self._launch_us(kernel)

    def attention_us(self, q_tokens: float, kv_tokens: float, num_decodes: float, mean_context: float) -> float:
        """Attention of one layer: prefill as one chunk, and decodes, one after the other."""
        prefill = (q_tokens + kv_tokens, q_tokens, q_tokens * kv_tokens + q_tokens * (q_tokens + 1) / 2)
        context = num_decodes * mean_context
        return self._attention_us(*prefill) * (q_tokens > 0) + self._attention_us(context, num_decodes, context)

    def _attention_us(self, context: float, queries: float, pairs: float) -> float:
        model, gpu = self.transformer.model, self.roofline.gpu
        tensor_parallel = self.transformer.tensor_parallel
        width = model.heads_per_gpu(tensor_parallel) * model.head_dim
        kv_width = model.kv_heads_per_gpu(tensor_parallel) * model.head_dim
        num_bytes = 2 * kv_width * self.transformer.kv_dtype_bytes * context
        num_bytes += 2 * width * model.activation_bytes * queries
        return US_PER_S * max(num_bytes / gpu.bandwidth_bytes_per_s, 4 * width * pairs / self._attention_flop_per_s)

    def _launch_us(self, kernel: Kernel) -> float:
        return US_PER_S * max(self.roofline.compute_floor_s(kernel), self.roofline.memory_floor_s(kernel))
