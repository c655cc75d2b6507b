"""The simulator: cost model, executor, SimPy driver, metrics and plots."""
