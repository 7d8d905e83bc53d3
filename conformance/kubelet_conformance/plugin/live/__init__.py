"""Scenarios on wall time: which are played on which nodes, and what comes of the lives of these."""
