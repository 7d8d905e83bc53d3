"""What a running container is to get or to lose, in which order, and what is reported of it."""

from typing import Any

import msgspec
import pytest
from decisions_bench import a_record
from lightkube.models.core_v1 import ContainerStatus, Pod, PodStatus
from msgspec.structs import replace

from kubelet_reference.allocation.admission import Demand
from kubelet_reference.allocation.allocation_manager import DEFERRED, INFEASIBLE, Refusal, refusal
from kubelet_reference.allocation.resize_rules import (
    ResourceChange,
    in_order,
    needs_restart,
    resource_changes,
)
from kubelet_reference.api import pods
from kubelet_reference.api.records import ActuatedResources, ContainerRecord, PodRecords
from kubelet_reference.status.resize_status import with_resize
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

MIB = 1 << 20


def pod(**resources: Any) -> Pod:
    """A pod with one container, c1, of these resources; `policy` is what its resize policy is about."""
    container: dict[str, Any] = {"name": "c1", "image": "img:1"}
    if policy := resources.pop("policy", None):
        container["resizePolicy"] = [{"resourceName": policy, "restartPolicy": "RestartContainer"}]
    container["resources"] = resources
    return msgspec.convert(
        {"metadata": {"name": "a", "namespace": "default", "uid": "u"}, "spec": {"containers": [container]}},
        Pod,
    )


def record(actuated: ActuatedResources | None) -> ContainerRecord:
    """A running container that has so much."""
    return replace(a_record(), actuated=actuated)


def changes(wanted: Pod, actuated: ActuatedResources | None) -> list[str]:
    """What is to be changed, as "cpu +"."""
    (container,) = pods.containers(wanted)
    found = resource_changes(wanted, container, record(actuated))
    return [f"{one.resource} {'+' if one.grows else '-'}" for one in found]


ONE_CORE = ActuatedResources(1024, 100_000, 64 * MIB)


@pytest.mark.parametrize(
    ("limits", "actuated", "found"),
    [
        ({"cpu": "1", "memory": "64Mi"}, ONE_CORE, []),
        ({"cpu": "2", "memory": "64Mi"}, ONE_CORE, ["cpu +"]),
        ({"cpu": "500m", "memory": "128Mi"}, ONE_CORE, ["memory +", "cpu -"]),
        ({"memory": "64Mi"}, ONE_CORE, ["cpu +"]),
        ({"cpu": "1"}, ONE_CORE, ["memory +"]),
        ({"cpu": "1", "memory": "64Mi"}, ActuatedResources(1024, 0, 64 * MIB), ["cpu -"]),
        ({"cpu": "2"}, None, []),
    ],
)
def test_what_is_to_be_changed(
    limits: dict[str, str], actuated: ActuatedResources | None, found: list[str]
) -> None:
    """Each resource by itself; no limit is more than any, and what nobody knows is left alone."""
    assert changes(pod(limits=limits), actuated) == found


def test_requests_count_without_limits() -> None:
    """A container that asks for more gets more shares (K8S-126388)."""
    assert changes(pod(requests={"cpu": "1"}), ActuatedResources(512, 0, 0)) == ["cpu +"]


def test_what_shrinks_goes_before_what_grows() -> None:
    """Memory comes before CPU, and of each the container that gives before the one that takes (RESIZE-04)."""
    small, large = ActuatedResources(512, 50_000, 32 * MIB), ONE_CORE
    every = [
        ResourceChange(name, record(old), resource, old, new)
        for resource in ("cpu", "memory")
        for name, old, new in (("takes", small, large), ("gives", large, small))
    ]

    assert [(one.resource, one.name) for one in in_order(every)] == [
        ("memory", "gives"),
        ("memory", "takes"),
        ("cpu", "gives"),
        ("cpu", "takes"),
    ]


@pytest.mark.parametrize(("policy", "restarts"), [("memory", False), ("cpu", True), (None, False)])
def test_policy_is_about_its_own_resource(policy: str | None, *, restarts: bool) -> None:
    """A container is made anew only if a resource changes that its policy names (RESIZE-03)."""
    wanted = pod(limits={"cpu": "2", "memory": "64Mi"}, policy=policy)
    (container,) = pods.containers(wanted)

    assert needs_restart(container, resource_changes(wanted, container, record(ONE_CORE))) is restarts


def demand(cpu: int, memory: int = 0) -> Demand:
    """What a pod takes."""
    return Demand(cpu, memory, ())


@pytest.mark.parametrize(
    ("wanted", "taken", "reason"),
    [
        (demand(1500), [], None),
        (demand(1500), [demand(500)], None),
        (demand(1500), [demand(501)], DEFERRED),
        (demand(2001), [], INFEASIBLE),
        (demand(0, 2 << 30), [], INFEASIBLE),
        (demand(0, 1 << 30), [demand(0, 1)], DEFERRED),
    ],
)
def test_what_the_node_can_give(wanted: Demand, taken: list[Demand], reason: str | None) -> None:
    """What no node of this size has is infeasible, what others have is deferred (RESIZE-02)."""
    found = refusal(wanted, taken, Settings(cpu_millicores=2000, memory_bytes=1 << 30))

    assert (found.reason if found else None) == reason


def reported(
    actuated: ActuatedResources | None, refused: Refusal | None = None, *, minor: int = 33
) -> tuple[PodStatus, ContainerStatus]:
    """The status of a pod that was allocated one core and 64Mi, and has so much."""
    allocated = pod(limits={"cpu": "1", "memory": "64Mi"})
    status = PodStatus(
        containerStatuses=[ContainerStatus(name="c1", image="", imageID="", ready=True, restartCount=0)]
    )
    behaviour = Behaviour.of(f"1.{minor}", {"InPlacePodVerticalScaling": True})
    found = with_resize(
        status, allocated, PodRecords("u", containers=(record(actuated),)), refused, behaviour
    )
    return found, (found.containerStatuses or [])[0]


def test_status_shows_what_the_container_has() -> None:
    """Limits and CPU are the runtime's, in plain units; what is allocated stands beside them (RESIZE-06)."""
    _, container = reported(ActuatedResources(512, 25_000, 48 * MIB))
    shown = msgspec.to_builtins(container)

    assert shown["allocatedResources"] == {"cpu": "1", "memory": "64Mi"}
    assert shown["resources"] == {
        "limits": {"cpu": "250m", "memory": "48Mi"},
        "requests": {"cpu": "500m", "memory": "64Mi"},
    }


def test_amounts_that_are_as_allocated_keep_their_words() -> None:
    """What is the same is written the same; a runtime that tells nothing contradicts nothing."""
    for actuated in (ONE_CORE, None):
        _, container = reported(actuated)

        assert msgspec.to_builtins(container.resources)["limits"] == {"cpu": "1", "memory": "64Mi"}


def test_how_a_resize_stands() -> None:
    """Conditions tell it, up to 1.32 a field (COND-09)."""
    refused = Refusal(DEFERRED, "no room")
    new, old = (
        reported(ActuatedResources(512, 0, 0), refused)[0],
        reported(ActuatedResources(512, 0, 0), refused, minor=32)[0],
    )

    assert [(one.type, one.status, one.reason) for one in new.conditions or ()] == [
        ("PodResizePending", "True", "Deferred"),
        ("PodResizeInProgress", "True", None),
    ]
    assert (new.resize, old.resize, old.conditions) == (None, "Deferred", None)


def test_what_is_done_is_not_reported() -> None:
    """A pod that has what it was allocated tells of no resize; one that has not is in progress."""
    assert reported(ONE_CORE)[0].conditions == []
    assert reported(ONE_CORE, minor=32)[0].resize is None
    assert reported(ActuatedResources(512, 0, 0), minor=32)[0].resize == "InProgress"
