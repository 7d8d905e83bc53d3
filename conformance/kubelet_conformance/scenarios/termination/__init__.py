"""Termination: hooks, grace periods and deadlines."""
