"""Attention over a paged KV cache: of one query token a sequence (decode) and of chunks of prompts (extend)."""
