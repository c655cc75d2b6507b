"""The engine core without I/O: requests, plans, paged KV cache, prefix index, memory budget, records."""
