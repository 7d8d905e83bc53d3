"""Runtime scenarios: checks of a container runtime that call its CRI socket directly, without a kubelet.

A runtime scenario calls the runtime through a recorder. The record is judged by the same contracts that judge
the CRI calls between a kubelet and a runtime, so each rule has one judge.
"""

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import RuntimeScenario, runtime_scenario

__all__ = ("Runtime", "RuntimeScenario", "runtime_scenario")
