"""Synthetic workloads for traces: what a trace is like, written as a scenario, and held against it."""
