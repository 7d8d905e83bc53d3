"""The node that scenarios act on: a kubelet, a runtime and an API server, and what was observed of them."""

from kubelet_conformance.node.manifests import container, exec_hook, exec_probe, pod, runtime_class
from kubelet_conformance.node.node import Node
from kubelet_conformance.node.observer import WaitTimeoutError
from kubelet_conformance.node.pod_handle import PodHandle
from kubelet_conformance.node.scenario import Scenario, scenario_of, witness
from kubelet_conformance.targets.controls import MANIFEST_FOLDER, MANIFEST_URL

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
