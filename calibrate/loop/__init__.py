"""How far a simulation is from the real engine on the same device: errors, verdicts, corrections, ranks, report."""
