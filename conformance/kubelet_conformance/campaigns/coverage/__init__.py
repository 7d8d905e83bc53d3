"""Coverage of each contract: its scenarios, how often they exercise it, and the bugs that break it."""

from kubelet_conformance.campaigns.coverage.gathering import (
    Gathered,
    Witness,
    gather,
    gathered_from,
    kept_counts,
    runtime_counts,
)

__all__ = ("Gathered", "Witness", "gather", "gathered_from", "kept_counts", "runtime_counts")
