"""Pods as two lists show them, read with no more work than there is news."""

from collections.abc import Sequence
from typing import TypeAlias

import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.api import names
from kubelet_reference.api.records import ContainerState, ListedPod, ListedRecord
from kubelet_reference.cri.runtime_reader import Listing

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
    uid: str, key: str, *, created: int = 1, digest: str = "d", state: cri.ContainerState.ValueType = RUNS
) -> cri.Container:
    """A container of the pod."""
    labels = _labels(uid) | {names.CONTAINER_NAME: key}
    annotations = {names.CONTAINER_HASH: digest}
    return cri.Container(id=key, created_at=created, labels=labels, annotations=annotations, state=state)


def read(
    listing: Listing, sandboxes: Sequence[cri.PodSandbox], containers: Sequence[cri.Container]
) -> tuple[ListedPod, ...]:
    """Show the listing two lists."""
    return listing.pods(
        cri.ListPodSandboxResponse(items=sandboxes), cri.ListContainersResponse(containers=containers)
    )


def test_a_pod_is_what_carries_its_labels() -> None:
    """Sandboxes and containers are matched by the labels, each newest first (PLEG-04, PLEG-12)."""
    found = read(
        Listing(),
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
            (ListedRecord("new", "new", running, 4, "d"), ListedRecord("old", "old", running, 3, "d")),
        ),
        ListedPod("v", "pod-v", "default", (), (ListedRecord("c", "c", running, 1, "d"),)),
    )


def test_what_carries_no_labels_is_nobodys() -> None:
    """Containers of other clients of the runtime belong to no pod (PLEG-04)."""
    assert read(Listing(), [cri.PodSandbox(id="s")], [cri.Container(id="c")]) == ()


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
    assert read(Listing(), [], [container("u", "c", state=state)])[0].containers[0].state == means


def test_equal_lists_give_the_same_object() -> None:
    """A comparison by identity shows that nothing changed."""
    listing = Listing()
    first = read(listing, [sandbox("u")], [container("u", "c")])

    assert read(listing, [sandbox("u")], [container("u", "c")]) is first


def test_a_pod_that_did_not_change_is_the_same_object() -> None:
    """A change in one pod makes no other pod anew."""
    listing = Listing()
    lists = [sandbox("u"), sandbox("v")], [container("u", "c"), container("v", "d")]
    u, v = read(listing, *lists)
    again, changed = read(
        listing, lists[0], [container("u", "c"), container("v", "d", state=cri.CONTAINER_EXITED)]
    )

    assert again is u
    assert changed != v


Lists: TypeAlias = tuple[list[cri.PodSandbox], list[cri.Container]]

STEPS: list[Lists] = [
    ([], []),
    ([sandbox("u")], [container("u", "c")]),
    ([sandbox("u"), sandbox("v")], [container("u", "c"), container("v", "d", state=cri.CONTAINER_CREATED)]),
    ([sandbox("v"), sandbox("u")], [container("v", "d"), container("u", "c")]),
    ([sandbox("u", state=cri.SANDBOX_NOTREADY)], [container("u", "c", digest="e")]),
    ([sandbox("u", "s2", created=5)], [container("u", "c", created=7)]),
    ([], [container("u", "c", created=7)]),
    ([sandbox("w", "s-u")], [container("w", "c")]),
]


@pytest.mark.parametrize("first", STEPS, ids=range(len(STEPS)))
@pytest.mark.parametrize("second", STEPS, ids=range(len(STEPS)))
def test_memory_makes_no_difference(first: Lists, second: Lists) -> None:
    """After whatever lists, the next ones give what they would give to somebody who knows nothing."""
    listing = Listing()
    read(listing, *first)

    assert read(listing, *second) == read(Listing(), *second)
