"""The node that scenarios play on."""

from kubelet_conformance.node.handle import PodHandle
from kubelet_conformance.node.node import Node
from kubelet_conformance.node.pods import container, exec_hook, exec_probe, pod, runtime_class
from kubelet_conformance.node.scenario import Scenario, scenario_of, witness
from kubelet_conformance.node.waiting import WaitTimeoutError
from kubelet_conformance.targets.protocols import MANIFEST_FOLDER, MANIFEST_URL

__all__ = (
    "MANIFEST_FOLDER",
    "MANIFEST_URL",
    "Node",
    "PodHandle",
    "Scenario",
    "WaitTimeoutError",
    "container",
    "exec_hook",
    "exec_probe",
    "pod",
    "runtime_class",
    "scenario_of",
    "witness",
)
