"""A container runtime in memory: a state machine that is told the time, and the CRI around it."""
