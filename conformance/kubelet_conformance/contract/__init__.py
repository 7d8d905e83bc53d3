"""Contracts and the engine that judges traces by them; this file exports the types that judges use."""

from kubelet_conformance.contract.definition import Answered, Broken, Finding, Note
from kubelet_conformance.contract.patterns import Pattern, Predicate
from kubelet_conformance.trace.format.manifests import (
    ContainerState,
    ContainerStatus,
    Kind,
    Manifest,
    Metadata,
    PodSpec,
    PodStatus,
    Terminated,
    Waiting,
)
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Container, Execution, Exit, Node, Pod, Sandbox, Stop

__all__ = (
    "Answered",
    "Broken",
    "Container",
    "ContainerState",
    "ContainerStatus",
    "Execution",
    "Exit",
    "Finding",
    "Kind",
    "Manifest",
    "Metadata",
    "Moment",
    "Node",
    "Note",
    "Pattern",
    "Pod",
    "PodSpec",
    "PodStatus",
    "Predicate",
    "Sandbox",
    "Stop",
    "Terminated",
    "Waiting",
)
