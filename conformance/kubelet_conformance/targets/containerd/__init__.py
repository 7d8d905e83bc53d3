"""A real containerd with runc, started privately and removed without a trace."""

from kubelet_conformance.targets.containerd.archive import full_name
from kubelet_conformance.targets.containerd.home import BASE, Home
from kubelet_conformance.targets.containerd.leftovers import leftovers
from kubelet_conformance.targets.containerd.private_containerd import IMAGES, PrivateContainerd, StartError
from kubelet_conformance.targets.containerd.removal import RemovalError
from kubelet_conformance.targets.containerd.requirements import CannotRunError, missing, require

__all__ = (
    "BASE",
    "IMAGES",
    "CannotRunError",
    "Home",
    "PrivateContainerd",
    "RemovalError",
    "StartError",
    "full_name",
    "leftovers",
    "missing",
    "require",
)
