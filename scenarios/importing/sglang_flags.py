"""The flags of SGLang's server: `python -m sglang.launch_server` and `sglang serve`.

Names and meanings are those of SGLang 0.5.23 (`srt/arg_groups/fields/`) and a few of earlier versions that are still in
use.
"""

from __future__ import annotations

from typing import get_args

from ..schema_sglang import RadixEvictionPolicy, SchedulePolicy
from .flags import NO_MEANING, NOT_SUPPORTED, Carried, Rule, Switch, Table, dropped
from .values import choice, number, same, text, whole
from .vllm_flags import DTYPE, QUANTIZATION

_POLICY = choice(same(*get_args(SchedulePolicy)))
_EVICTION = choice(same(*get_args(RadixEvictionPolicy)))
_KV_DTYPE = choice(same("auto", "bf16", "bfloat16", "fp8_e4m3", "fp8_e5m2"))


def _chunk(given: str) -> int:
    """SGLang takes every number below 1 for none."""
    return max(whole(given), 0) or -1


_CARRIED: dict[str, Rule] = {
    "model-path": Carried("model", text),
    "tp-size": Carried("hardware.tensor_parallel", whole),
    "chunked-prefill-size": Carried("engine.chunked_prefill_size", _chunk),
    "max-prefill-tokens": Carried("engine.max_prefill_tokens", whole),
    "max-running-requests": Carried("engine.max_running_requests", whole),
    "context-length": Carried("engine.context_length", whole),
    "page-size": Carried("engine.page_size", whole),
    "mem-fraction-static": Carried("engine.mem_fraction_static", number),
    "max-total-tokens": Carried("engine.max_total_tokens", whole),
    "schedule-policy": Carried("engine.schedule_policy", _POLICY),
    "schedule-conservativeness": Carried("engine.schedule_conservativeness", number),
    "enable-mixed-chunk": Switch("engine.enable_mixed_chunk"),
    "disable-radix-cache": Switch("engine.disable_radix_cache"),
    "disable-overlap-schedule": Switch("engine.disable_overlap_schedule"),
    "radix-eviction-policy": Carried("engine.radix_eviction_policy", _EVICTION),
    "enable-priority-scheduling": Switch("engine.enable_priority_scheduling"),
    "schedule-low-priority-values-first": Switch("engine.schedule_low_priority_values_first"),
    "prefill-decode-interval": Carried("engine.prefill_decode_interval", whole),
    "dtype": Carried("engine.dtype", DTYPE),
    "quantization": Carried("engine.quantization", QUANTIZATION),
    "kv-cache-dtype": Carried("engine.kv_cache_dtype", _KV_DTYPE),
}

_NO_MEANING = dropped(
    NO_MEANING,
    {
        "where the server listens, and who may ask": "host port api-key admin-api-key fastapi-root-path grpc-mode! "
        "skip-server-warmup! warmups nccl-port dist-init-addr nnodes=1 node-rank dist-timeout",
        "what is logged and counted": "log-level log-level-http log-requests! log-requests-level enable-metrics! "
        "show-time-cost! decode-log-interval enable-trace! otlp-traces-endpoint crash-dump-folder "
        "enable-cache-report! enable-request-time-stats-logging! watchdog-timeout bucket-time-to-first-token*",
        "how a model's files are found and read": "tokenizer-path tokenizer-mode tokenizer-worker-num "
        "skip-tokenizer-init! trust-remote-code! revision download-dir load-format model-loader-extra-config "
        "model-impl enable-p2p-check! weight-loader-disable-mmap!",
        "how texts are written and parsed": "served-model-name chat-template completion-template "
        "hf-chat-template-name reasoning-parser tool-call-parser sampling-defaults grammar-backend tool-server "
        "stream-interval stream-output! file-storage-path",
        "no text is sampled": "random-seed sampling-backend enable-deterministic-inference!",
        "which processes do the work": "device base-gpu-id gpu-id-step disable-custom-all-reduce! sleep-on-idle! "
        "enable-symm-mem! enable-nccl-nvls! scheduler-recv-interval=1 numa-node*",
    },
)

_NOT_SUPPORTED = dropped(
    NOT_SUPPORTED,
    {
        "one engine on tensor-parallel GPUs": "pp-size=1 dp-size=1 ep-size=1 attn-dp-size=1 attn-cp-size=1 "
        "enable-dp-attention! enable-dp-lm-head! load-balance-method moe-a2a-backend moe-runner-backend deepep-mode "
        "enable-two-batch-overlap! enable-ep-moe! disaggregation-mode disaggregation-transfer-backend "
        "disaggregation-bootstrap-port disaggregation-ib-device",
        "drafts have no model of their own yet": "speculative-algorithm speculative-draft-model-path "
        "speculative-num-steps speculative-eagle-topk speculative-num-draft-tokens",
        "KV stays on the GPU": "enable-hierarchical-cache! hicache-ratio hicache-size hicache-write-policy "
        "hicache-io-backend hicache-mem-layout hicache-storage-backend hicache-storage-prefetch-policy "
        "enable-lmcache! cpu-offload-gb swa-full-tokens-ratio disable-hybrid-swa-memory!",
        "steps are priced as with CUDA graphs and compiled kernels": "disable-cuda-graph! cuda-graph-max-bs "
        "cuda-graph-bs* cuda-graph-max-bs-decode cuda-graph-max-bs-prefill disable-cuda-graph-padding! "
        "enable-torch-compile! torch-compile-max-bs attention-backend prefill-attention-backend "
        "decode-attention-backend enable-piecewise-cuda-graph! fp8-gemm-backend",
        "no adapters": "enable-lora! lora-paths* max-loras-per-batch max-lora-rank lora-backend lora-target-modules*",
        "text alone": "enable-multimodal! mm-attention-backend is-embedding!",
        "admission of its own kind": "max-queued-requests prefill-max-requests num-continuous-decode-steps=1 "
        "prefill-decode-interval-min-bs=0 disable-priority-preemption! priority-scheduling-preemption-threshold=10 "
        "retraction-policy=length radix-eviction-policy-config enable-prefill-delayer! min-free-slots-delay "
        "enable-dynamic-chunking! default-priority-value abort-on-priority-when-disabled! allow-auto-truncate!",
        "the model's own shapes are used": "json-model-override-args torchao-config quantization-param-path "
        "enable-fp32-lm-head!",
        "its keys are not read; write them as flags": "config",
    },
)

SGLANG_ENGINE: Table = {**_CARRIED, **_NO_MEANING, **_NOT_SUPPORTED}

SGLANG_ALIASES = {
    "model": "model-path",
    "tp": "tp-size",
    "tensor-parallel-size": "tp-size",
    "pp": "pp-size",
    "pipeline-parallel-size": "pp-size",
    "dp": "dp-size",
    "data-parallel-size": "dp-size",
    "ep": "ep-size",
    "expert-parallel-size": "ep-size",
    "attention-data-parallel-size": "attn-dp-size",
    "nccl-init-addr": "dist-init-addr",
    "enable-hicache": "enable-hierarchical-cache",
}
