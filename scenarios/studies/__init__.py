"""Studies: many runs of one scenario, and what can be said of them together."""
