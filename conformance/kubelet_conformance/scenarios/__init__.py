"""Scenarios: short stories that provoke what the contracts are about."""
