"""Bugs of the pod workers, and of the syncs that they run."""
