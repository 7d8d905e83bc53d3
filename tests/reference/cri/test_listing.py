"""Pods as two lists show them."""

from collections.abc import Sequence

import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.api import names
from kubelet_reference.api.records import ContainerState, ListedPod, ListedRecord
from kubelet_reference.cri.runtime_reader import listed_pods

RUNS = cri.CONTAINER_RUNNING


def _labels(uid: str) -> dict[str, str]:
    return {names.POD_UID: uid, names.POD_NAME: f"pod-{uid}", names.POD_NAMESPACE: "default"}


def sandbox(
    uid: str, key: str = "", *, created: int = 1, state: cri.PodSandboxState.ValueType = cri.SANDBOX_READY
) -> cri.PodSandbox:
    """A sandbox of the pod."""
    metadata = cri.PodSandboxMetadata(name=f"pod-{uid}")
    return cri.PodSandbox(
        id=key or f"s-{uid}", metadata=metadata, created_at=created, labels=_labels(uid), state=state
    )


def container(
    uid: str, key: str, *, created: int = 1, state: cri.ContainerState.ValueType = RUNS
) -> cri.Container:
    """A container of the pod."""
    labels = _labels(uid) | {names.CONTAINER_NAME: key}
    return cri.Container(id=key, created_at=created, labels=labels, state=state)


def read(sandboxes: Sequence[cri.PodSandbox], containers: Sequence[cri.Container]) -> tuple[ListedPod, ...]:
    """The pods of two lists."""
    return listed_pods(
        cri.ListPodSandboxResponse(items=sandboxes), cri.ListContainersResponse(containers=containers)
    )


def test_a_pod_is_what_carries_its_labels() -> None:
    """Sandboxes and containers are matched by the labels, each newest first (PLEG-04, PLEG-12)."""
    found = read(
        [sandbox("u", "s1", created=1, state=cri.SANDBOX_NOTREADY), sandbox("u", "s2", created=2)],
        [container("u", "old", created=3), container("u", "new", created=4), container("v", "c")],
    )
    running = ContainerState.RUNNING

    assert found == (
        ListedPod(
            "u",
            "pod-u",
            "default",
            (
                ListedRecord("s2", "pod-u", running, 2),
                ListedRecord("s1", "pod-u", ContainerState.EXITED, 1),
            ),
            (ListedRecord("new", "new", running, 4), ListedRecord("old", "old", running, 3)),
        ),
        ListedPod("v", "pod-v", "default", (), (ListedRecord("c", "c", running, 1),)),
    )


def test_what_carries_no_labels_is_nobodys() -> None:
    """Containers of other clients of the runtime belong to no pod (PLEG-04)."""
    assert read([cri.PodSandbox(id="s")], [cri.Container(id="c")]) == ()


@pytest.mark.parametrize(
    ("state", "means"),
    [
        (cri.CONTAINER_CREATED, "CREATED"),
        (cri.CONTAINER_RUNNING, "RUNNING"),
        (cri.CONTAINER_EXITED, "EXITED"),
        (cri.CONTAINER_UNKNOWN, "UNKNOWN"),
    ],
)
def test_states(state: cri.ContainerState.ValueType, means: str) -> None:
    """Containers keep the state that the runtime gives them."""
    assert read([], [container("u", "c", state=state)])[0].containers[0].state == means.lower()
