"""How a step is composed."""
