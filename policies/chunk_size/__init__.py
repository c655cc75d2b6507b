"""How many prefill tokens a step may hold."""
