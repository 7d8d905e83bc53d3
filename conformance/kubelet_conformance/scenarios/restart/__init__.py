"""Restarts: policies, rules and back-off."""
