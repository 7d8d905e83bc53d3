"""The node that scenarios play on."""

from kubelet_conformance.node.handle import PodHandle
from kubelet_conformance.node.node import Node
from kubelet_conformance.node.pods import container, exec_hook, exec_probe, pod
from kubelet_conformance.node.scenario import Scenario, scenario_of, witness
from kubelet_conformance.node.waiting import WaitTimeoutError

__all__ = (
    "Node",
    "PodHandle",
    "Scenario",
    "WaitTimeoutError",
    "container",
    "exec_hook",
    "exec_probe",
    "pod",
    "scenario_of",
    "witness",
)
