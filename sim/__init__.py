"""The simulator: a core driven by SimPy, its steps priced by a cost model."""
