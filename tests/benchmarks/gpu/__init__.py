"""What only a GPU can tell of kernels and engine: one script, minutes long; on a CPU it runs dry with small sizes."""
