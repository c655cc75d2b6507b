"""The engine that runs on a device: the core's plans become tensors, kernels and tokens."""
