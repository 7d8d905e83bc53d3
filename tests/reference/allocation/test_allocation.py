"""What the node has promised: until a resize is accepted, and beyond the life of a kubelet."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from lightkube.models.core_v1 import Pod

from kubelet_fakes.disk import MemoryDisk
from kubelet_reference.allocation.allocation_manager import Allocations
from kubelet_reference.api import pods
from kubelet_reference.api.resources import requests
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

ON = {"InPlacePodVerticalScaling": True}


def pod(cpu: str, uid: str = "u", **metadata: Any) -> Pod:
    """A pod with one container that asks for so much."""
    container = {"name": "c1", "image": "img:1", "resources": {"requests": {"cpu": cpu}}}
    given = {"name": uid, "namespace": "default", "uid": uid} | metadata
    return msgspec.convert({"metadata": given, "spec": {"containers": [container]}}, Pod)


def asked(one: Pod) -> str:
    """What its container asks for."""
    return requests(pods.containers(one)[0])["cpu"]


class Node:
    """A node of two cores, with these other pods."""

    def __init__(self, *others: Pod, minor: int = 33) -> None:
        self.disk = MemoryDisk()
        self.others = list(others)
        self.behaviour = Behaviour.of(f"1.{minor}", ON)

    def kubelet(self) -> Allocations:
        """The allocations of a kubelet that starts."""
        settings = Settings(cpu_millicores=2000)
        return Allocations(self.disk, settings, self.behaviour, self._others)

    def _others(self, _: Pod) -> Iterable[Pod]:
        return self.others


def test_what_fits_is_granted() -> None:
    """A pod begins with what it asks for, and gets more while there is room (RESIZE-07)."""
    found = Node().kubelet()

    assert asked(found.resized(pod("1"))) == "1"
    assert asked(found.applied(pod("1500m"))) == "1"
    assert asked(found.resized(pod("1500m"))) == "1500m"
    assert found.pending(pod("1500m")) is None


def test_what_does_not_fit_is_not() -> None:
    """The pod goes on with what it has, and it is known why (RESIZE-02)."""
    node = Node(pod("1", "other"))
    found = node.kubelet()
    found.resized(pod("1"))

    assert asked(found.resized(pod("1500m"))) == "1"
    assert (refused := found.pending(pod("1500m"))) is not None
    assert refused.reason == "Deferred"
    node.others.clear()
    assert asked(found.resized(pod("1500m"))) == "1500m"
    assert found.pending(pod("1500m")) is None


def test_wish_that_is_taken_back_is_pending_no_more() -> None:
    """Who wants again what it has, waits for nothing."""
    found = Node().kubelet()
    found.resized(pod("1"))
    found.resized(pod("5"))
    found.resized(pod("1"))

    assert found.pending(pod("1")) is None


@pytest.mark.parametrize(("minor", "file"), [(32, "pod_status_manager_state"), (33, "allocated_pods_state")])
def test_allocations_outlive_the_kubelet(minor: int, file: str) -> None:
    """The next kubelet finds what was allocated, not what is wanted (RESTARTKUBELET-16)."""
    node = Node(minor=minor)
    first = node.kubelet()
    first.resized(pod("1"))
    first.resized(pod("5"))

    assert asked(node.kubelet().applied(pod("5"))) == "1"
    assert node.disk.size(f"/var/lib/kubelet/{file}")


def test_pods_that_are_gone_are_forgotten() -> None:
    """Neither the kubelet nor its next checkpoint keeps them."""
    node = Node()
    found = node.kubelet()
    found.resized(pod("1"))
    found.keep_only({"other"})
    found.resized(pod("1", "other"))

    assert asked(found.applied(pod("5"))) == "5"
    assert asked(node.kubelet().applied(pod("5"))) == "5"


def test_checkpoint_that_cannot_be_read_is_none() -> None:
    """A kubelet starts without it, and takes what pods want for what they have."""
    node = Node()
    node.disk.make_folder("/var/lib/kubelet")
    node.disk.write("/var/lib/kubelet/allocated_pods_state", b"{broken")

    assert asked(node.kubelet().applied(pod("5"))) == "5"


def test_static_pods_have_what_their_manifest_says() -> None:
    """What is not resized is not allocated either (STATIC-24)."""
    static: dict[str, Any] = {"annotations": {"kubernetes.io/config.source": "file"}}
    found = Node().kubelet()
    found.resized(pod("1", **static))

    assert asked(found.resized(pod("100", **static))) == "100"


def test_without_the_feature_the_spec_counts() -> None:
    """Nothing is kept, nor written."""
    node = Node()
    node.behaviour = Behaviour.of("1.32")
    found = node.kubelet()
    found.resized(pod("1"))

    assert asked(found.resized(pod("100"))) == "100"
    assert node.disk.size("/var/lib/kubelet/pod_status_manager_state") is None
