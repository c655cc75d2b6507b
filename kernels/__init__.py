"""The kernels of the real engine: Triton on a GPU, plain torch anywhere, both behind one contract."""
