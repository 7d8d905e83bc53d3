"""Traces: one ordered record of everything that could be seen of a kubelet and its runtime from outside."""
