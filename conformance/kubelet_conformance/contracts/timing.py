"""Bounds that contracts share, each with where it comes from. All are seconds.

Retries and resyncs are upper bounds: any event may wake a worker earlier. Only back-offs, probe periods
and grace periods are lower bounds.
"""

from __future__ import annotations

__all__ = ("HOUSEKEEPING", "REACTION", "RELIST", "RETRY", "RETRY_SLACK", "ROUNDING", "SAME_MOMENT")

RETRY = 16.0
"""A failed sync comes again after 10 s times [1.0, 1.5), at the next 1 s tick (pod_workers.go)."""
RETRY_SLACK = 4.0
"""What a loaded machine may add to a retry."""
RELIST = 1.0
"""Generic PLEG period, counted from the end of a relist (kubelet.go)."""
REACTION = 5.0
"""One relist, one inspection and one sync of a loaded machine: how late a reaction to a change may be."""
HOUSEKEEPING = 2.0
"""Housekeeping period (kubelet.go)."""
ROUNDING = 1.0
"""Times that the API cuts to whole seconds."""
SAME_MOMENT = 0.05
"""Two things this close cannot be told apart by cause."""
