"""Traces: one ordered record of everything that was observed of a kubelet and its runtime from outside."""
