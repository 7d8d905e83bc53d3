"""Which dead containers go in a round, and in which order."""

from dataclasses import replace

import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.api import names
from kubelet_reference.kuberuntime.container_gc.container_gc_rules import Limits, collectable_containers

SECOND = 10**9
USUAL = Limits(per_container=1, in_all=-1, minimum_age=0, now=10 * SECOND)


def _container(
    name: str, created: int, state: cri.ContainerState.ValueType = cri.CONTAINER_EXITED
) -> cri.Container:
    """A container such as `a/c1`, of pod a, created at that second."""
    pod, _, container = name.partition("/")
    labels = {names.POD_UID: pod, names.CONTAINER_NAME: container}
    return cri.Container(id=f"{name}@{created}", labels=labels, created_at=created * SECOND, state=state)


def _gone(*found: cri.Container, limits: Limits = USUAL, over: str = "") -> list[str]:
    return [one.id for one in collectable_containers(found, lambda uid: uid == over, limits)]


EVERY = (_container("a/c1", 1), _container("a/c1", 5), _container("b/c1", 2), _container("b/c2", 3))


@pytest.mark.parametrize(
    ("limits", "gone"),
    [
        (USUAL, ["a/c1@1"]),
        (replace(USUAL, per_container=0), ["a/c1@1", "a/c1@5", "b/c1@2", "b/c2@3"]),
        (replace(USUAL, per_container=-1), []),
        (replace(USUAL, in_all=3), ["a/c1@1"]),
        (replace(USUAL, in_all=2), ["a/c1@1", "b/c1@2"]),
        (replace(USUAL, in_all=0), ["a/c1@1", "b/c1@2", "b/c2@3", "a/c1@5"]),
        (replace(USUAL, per_container=-1, in_all=3), ["a/c1@1"]),
        (replace(USUAL, minimum_age=4, now=6 * SECOND), []),
        (replace(USUAL, minimum_age=4, now=10 * SECOND), ["a/c1@1"]),
    ],
)
def test_limits(limits: Limits, gone: list[str]) -> None:
    """Of each container the newest stay; of too many in all the oldest go, by fair shares (GC-03)."""
    assert _gone(*EVERY, limits=limits) == gone


def test_pod_that_is_over_keeps_nothing() -> None:
    """Everything dead of a pod whose content may go is removed, the oldest first (GC-02)."""
    assert _gone(*EVERY, over="b") == ["a/c1@1", "b/c1@2", "b/c2@3"]


def test_running_and_foreign_containers_stay() -> None:
    """What runs stays (GC-09), and so does what is not the kubelet's; what never ran goes (GC-08)."""
    running = _container("a/c1", 1, cri.CONTAINER_RUNNING)
    created = _container("a/c2", 2, cri.CONTAINER_CREATED)
    foreign = cri.Container(id="foreign", state=cri.CONTAINER_EXITED)

    assert _gone(running, created, foreign, over="a") == ["a/c2@2"]
