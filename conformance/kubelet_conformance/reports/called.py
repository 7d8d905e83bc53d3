"""What a run of stories told to a runtime leaves for its reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubelet_conformance.reports.played import PlayedRun


@dataclass(frozen=True, slots=True)
class CalledRun(PlayedRun):
    """A run without a kubelet.

    `address` is where the runtime was called; `known` names where its known deviations come from, if any do.
    """

    address: str = ""
    known: str = ""

    @property
    def target(self) -> str:
        """The runtime in words."""
        known = f", less the known deviations of {self.known}" if self.known else ""
        return f"runtime {self.runtime}, called at {self.address}{known}"

    def report(self) -> dict[str, Any]:
        """The report for programs."""
        report = PlayedRun.report(self)
        del report["target"]["kubelet"], report["target"]["seed"]
        report["target"]["address"] = self.address
        return report
