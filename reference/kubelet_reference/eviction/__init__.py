"""Ends pods for the node's sake: evictions, preemption and the node's shutdown.

Upstream has three packages (`eviction`, `preemption`, `nodeshutdown`); here they share one way to kill a pod.
"""
