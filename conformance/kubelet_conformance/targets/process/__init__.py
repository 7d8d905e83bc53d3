"""A kubelet in a process of its own, any kubelet that reads a manifest folder, as a target."""

from kubelet_conformance.targets.process.kubelet import ProcessKubelet
from kubelet_conformance.targets.process.node import ProcessNode
from kubelet_conformance.targets.process.target_file import KubeletTarget, read_target, reference_process

__all__ = ("KubeletTarget", "ProcessKubelet", "ProcessNode", "read_target", "reference_process")
