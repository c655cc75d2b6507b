"""The flags of vLLM's server and engine: `vllm serve`, and offline benchmarks, which take the engine's too.

Names and meanings are those of vLLM 0.33 (`engine/arg_utils.py`, `entrypoints/common/cli_args.py`) and a few of earlier
versions that are still in use.
"""

from __future__ import annotations

from .flags import NO_MEANING, NOT_SUPPORTED, Carried, Rule, Switch, Table, dropped
from .values import choice, number, same, text, whole, whole_or_none

DTYPE = choice({**same("auto", "bfloat16", "float16"), "half": "float16"}, "is not supported: activations take 16 bits")
QUANTIZATION = choice({**same("fp8", "awq", "gptq"), "awq_marlin": "awq", "gptq_marlin": "gptq"})
_KV_DTYPE = choice({"auto": "auto", "bfloat16": "bf16", "fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8"})

_CARRIED: dict[str, Rule] = {
    "model": Carried("model", text),
    "tensor-parallel-size": Carried("hardware.tensor_parallel", whole),
    "max-num-batched-tokens": Carried("engine.max_num_batched_tokens", whole),
    "max-num-seqs": Carried("engine.max_num_seqs", whole),
    "max-model-len": Carried("engine.max_model_len", whole_or_none("-1", "auto")),
    "block-size": Carried("engine.block_size", whole),
    "gpu-memory-utilization": Carried("engine.gpu_memory_utilization", number),
    "num-gpu-blocks-override": Carried("engine.num_gpu_blocks_override", whole),
    "dtype": Carried("engine.dtype", DTYPE),
    "quantization": Carried("engine.quantization", QUANTIZATION),
    "kv-cache-dtype": Carried("engine.kv_cache_dtype", _KV_DTYPE),
    "enable-prefix-caching": Switch("engine.enable_prefix_caching"),
    "enable-chunked-prefill": Switch("engine.enable_chunked_prefill"),
    "async-scheduling": Switch("engine.async_scheduling"),
    "scheduler-reserve-full-isl": Switch("engine.scheduler_reserve_full_isl"),
    "watermark": Carried("engine.watermark", number),
    "long-prefill-token-threshold": Carried("engine.long_prefill_token_threshold", whole),
    "scheduling-policy": Carried("engine.scheduling_policy", text),
}

_NO_MEANING = dropped(
    NO_MEANING,
    {
        "where the server listens, and who may ask": "host port uds grpc-port root-path api-key* api-server-count "
        "allowed-origins allowed-methods allowed-headers allow-credentials! middleware ssl-keyfile ssl-certfile "
        "ssl-ca-certs ssl-cert-reqs enable-ssl-refresh! enable-offline-docs! disable-fastapi-docs! headless!",
        "what is logged and counted": "uvicorn-log-level disable-uvicorn-access-log! disable-log-requests! "
        "enable-log-requests! disable-log-stats! max-log-len log-config-file otlp-traces-endpoint "
        "collect-detailed-traces show-hidden-metrics-for-version enable-request-id-headers! enable-log-outputs! "
        "kv-cache-metrics! enable-prompt-tokens-details! enable-server-load-tracking! enable-mfu-metrics! "
        "aggregate-engine-logging! profiler-config",
        "how a model's files are found and read": "tokenizer tokenizer-mode tokenizer-revision trust-remote-code! "
        "revision code-revision download-dir load-format hf-token hf-config-path config-format "
        "model-loader-extra-config safetensors-load-strategy ignore-patterns* use-tqdm-on-load! model-impl "
        "max-parallel-loading-workers skip-tokenizer-init! runner task convert",
        "how texts are written and parsed": "served-model-name* chat-template chat-template-content-format "
        "response-role enable-auto-tool-choice! tool-call-parser tool-parser-plugin reasoning-parser "
        "enable-reasoning! return-tokens-as-token-ids! enable-force-include-usage! default-chat-template-kwargs "
        "generation-config override-generation-config max-logprobs logprobs-mode exclude-tools-when-tool-choice-none! "
        "structured-outputs-config guided-decoding-backend",
        "no text is sampled": "seed",
        "which processes do the work": "distributed-executor-backend worker-cls nnodes=1 node-rank master-addr "
        "master-port disable-custom-all-reduce! numa-bind! shutdown-timeout stream-interval",
        "the hash of blocks, which are told apart exactly": "prefix-caching-hash-algo",
    },
)

_NOT_SUPPORTED = dropped(
    NOT_SUPPORTED,
    {
        "one engine on tensor-parallel GPUs": "pipeline-parallel-size=1 data-parallel-size=1 data-parallel-size-local "
        "data-parallel-address data-parallel-rpc-port data-parallel-backend data-parallel-start-rank "
        "data-parallel-rank data-parallel-hybrid-lb! data-parallel-external-lb! decode-context-parallel-size=1 "
        "prefill-context-parallel-size=1 enable-expert-parallel! enable-eplb! eplb-config all2all-backend "
        "enable-dbo! moe-backend",
        "drafts have no model of their own yet": "speculative-config spec-method spec-model spec-tokens",
        "KV stays on the GPU": "kv-transfer-config kv-offloading-size kv-offloading-backend cpu-offload-gb "
        "kv-events-config swap-space ec-transfer-config",
        "pin the pool by engine.num_gpu_blocks_override": "kv-cache-memory-bytes",
        "steps are priced as with CUDA graphs and compiled kernels": "enforce-eager! compilation-config "
        "optimization-level cudagraph-capture-sizes* max-cudagraph-capture-size max-seq-len-to-capture "
        "attention-backend attention-config disable-cascade-attn! kernel-config performance-mode",
        "no adapters": "enable-lora! lora-modules* max-loras max-lora-rank max-cpu-loras lora-dtype "
        "fully-sharded-loras!",
        "text alone": "limit-mm-per-prompt mm-processor-kwargs mm-encoder-tp-mode mm-processor-cache-gb "
        "allowed-local-media-path language-model-only! mm-encoder-only!",
        "admission of its own kind": "max-num-scheduled-tokens max-num-partial-prefills=1 max-long-partial-prefills=1 "
        "disable-hybrid-kv-cache-manager! num-scheduler-steps=1 scheduler-cls max-num-active-seqs "
        "max-num-queued-reqs max-num-queued-tokens prefill-schedule-interval preemption-mode=recompute "
        "watermark-config prefix-cache-retention-interval",
        "the model's own shapes are used": "hf-overrides rope-scaling rope-theta disable-sliding-window! "
        "quantization-config additional-config",
        "its keys are not read; write them as flags": "config",
    },
)

VLLM_ENGINE: Table = {**_CARRIED, **_NO_MEANING, **_NOT_SUPPORTED}

VLLM_ALIASES = {
    "tp": "tensor-parallel-size",
    "pp": "pipeline-parallel-size",
    "dp": "data-parallel-size",
    "ep": "enable-expert-parallel",
    "q": "quantization",
    "O": "optimization-level",
    **{f"O{level}": "optimization-level" for level in range(4)},
    "cc": "compilation-config",
    "sc": "speculative-config",
    "ac": "attention-config",
    "device-memory-utilization": "gpu-memory-utilization",
    "asc": "api-server-count",
}
