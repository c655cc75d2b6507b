"""Decoder-only transformers: configuration, weights, forward pass."""
