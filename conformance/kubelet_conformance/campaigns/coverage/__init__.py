"""What each contract of the catalogue rests on: its witnesses, what they exercise, the bugs it catches."""

from __future__ import annotations

from kubelet_conformance.campaigns.coverage.gathering import Gathered, Witness, gather

__all__ = ("Gathered", "Witness", "gather")
