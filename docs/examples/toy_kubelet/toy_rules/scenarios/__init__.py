"""Scenarios for the rules of the house."""
