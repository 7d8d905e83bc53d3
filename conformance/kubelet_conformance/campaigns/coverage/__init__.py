"""Coverage of each contract: its scenarios, how often they exercise it, and the bugs that break it.

And of each row of a decision table: how often the scenarios make it decide.
"""

from kubelet_conformance.campaigns.coverage.gathering import (
    Coverage,
    Gathered,
    Witness,
    coverage_of,
    gather,
    kept_counts,
    runtime_counts,
)

__all__ = ("Coverage", "Gathered", "Witness", "coverage_of", "gather", "kept_counts", "runtime_counts")
