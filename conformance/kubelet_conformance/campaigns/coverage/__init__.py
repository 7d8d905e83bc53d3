"""Coverage of each contract: its scenarios, how often they exercise it, and the bugs that break it."""

from kubelet_conformance.campaigns.coverage.gathering import Gathered, Witness, gather

__all__ = ("Gathered", "Witness", "gather")
