"""What an engine can never serve, and why."""

from __future__ import annotations

from .config import EngineConfig
from .request import Request


def refusal(request: Request, config: EngineConfig) -> str | None:
    """Why an engine of this configuration can never serve the request; None if it can."""
    prompt = request.prompt.num_tokens
    if prompt < 1:
        return "the prompt is empty"
    if request.max_tokens < 1:
        return "max_tokens is 0"
    total = prompt + request.max_tokens
    if total > config.max_model_len:
        return f"prompt and max_tokens ({total}) exceed max_model_len ({config.max_model_len})"
    if not config.enable_chunked_prefill and prompt > config.max_num_batched_tokens:
        return f"without chunked prefill {prompt} tokens exceed max_num_batched_tokens"
    return _memory_refusal(total, config) if config.refuses_what_never_fits else None


def _memory_refusal(total: int, config: EngineConfig) -> str | None:
    usable = config.num_blocks - 1
    blocks = -(-(total - 1) // config.block_size)  # the last token is never computed
    if blocks > usable:
        return f"prompt and max_tokens ({total}) need {blocks} KV blocks of {usable}"
    tokens, spare = usable * config.block_size, config.spare_tokens
    if spare and total + spare > tokens:
        return f"prompt and max_tokens ({total}), and {spare} to spare, exceed the {tokens} tokens of KV memory"
    return None
