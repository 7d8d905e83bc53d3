"""Bugs in the status of pods: its parts, and how it is written."""
