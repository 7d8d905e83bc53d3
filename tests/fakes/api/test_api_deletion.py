"""The fake API server deletes as a real one does: first asked for, then shorter, at last gone."""

from typing import Any

import pytest
from api_world import ApiWorld, pod, refused

from kubelet_fakes.api import WatchEvent

NAMES = ("deletionTimestamp", "deletionGracePeriodSeconds")


def marks(thing: dict[str, Any]) -> tuple[str | None, int | None]:
    """Until when, and with how much grace."""
    metadata = thing["metadata"]
    return metadata.get(NAMES[0]), metadata.get(NAMES[1])


def reported(events: list[WatchEvent]) -> list[tuple[str, str, int | None]]:
    """Type, version and grace of each event."""
    return [
        (each.type, each.object["metadata"]["resourceVersion"], each.object["metadata"].get(NAMES[1]))
        for each in events
    ]


def test_first_delete_marks_the_pod() -> None:
    """The pod stays, with the moment until which it may take; its own grace counts if none is asked for."""
    core = ApiWorld()
    core.create("pods", pod(terminationGracePeriodSeconds=5))
    core.create("pods", pod("db"))

    assert marks(core.delete("pods", "web")) == ("2026-01-01T12:00:05Z", 5)
    assert marks(core.delete("pods", "db", grace_seconds=90)) == ("2026-01-01T12:01:30Z", 90)
    assert len(core.list_objects("pods")[0]) == 2


def test_grace_only_shrinks() -> None:
    """A later delete can shorten the grace, counted from the first; a longer or equal one changes nothing."""
    core = ApiWorld()
    core.create("pods", pod())
    core.delete("pods", "web", grace_seconds=60)
    core.wait(10)

    assert marks(core.delete("pods", "web", grace_seconds=20)) == ("2026-01-01T12:00:20Z", 20)
    before = core.get("pods", "web")
    for grace in (20, 21, None):
        assert core.delete("pods", "web", grace_seconds=grace) is before
    assert marks(core.delete("pods", "web", grace_seconds=-7)) == ("2026-01-01T12:00:01Z", 1)


def test_grace_0_removes_after_it_is_shown() -> None:
    """Watchers see the pod with grace 0 and then its removal, each with a version of its own (recorded)."""
    core = ApiWorld()
    core.create("pods", pod())
    watch = core.watch("pods", "1")
    core.delete("pods", "web", grace_seconds=3)
    last = core.delete("pods", "web", grace_seconds=0)

    assert reported(watch.taken()) == [("MODIFIED", "2", 3), ("MODIFIED", "3", 0), ("DELETED", "4", 0)]
    assert marks(last) == ("2026-01-01T12:00:00Z", 0)
    assert refused(core.get, "pods", "web").code == 404


@pytest.mark.parametrize(
    ("node", "phase", "gone"),
    [
        ("", "Pending", True),
        ("node-1", "Pending", False),
        ("node-1", "Succeeded", True),
        ("node-1", "Failed", True),
    ],
)
def test_pod_that_nothing_runs_for_goes_at_once(node: str, phase: str, *, gone: bool) -> None:
    """Without a node, or with a terminal phase, there is nothing to wait for."""
    core = ApiWorld()
    core.create("pods", pod(node=node))
    core.patch("pods", "web", {"status": {"phase": phase}}, subresource="status")
    core.delete("pods", "web", grace_seconds=30)

    assert (core.list_objects("pods")[0] == ()) is gone


def test_precondition_protects_a_new_pod_of_the_old_name() -> None:
    """A UID that is not the pod's is 409 and changes nothing (a kubelet repeats deletions of mirror pods)."""
    core = ApiWorld()
    uid = core.create("pods", pod())["metadata"]["uid"]
    error = refused(core.delete, "pods", "web", grace_seconds=0, uid="old")

    assert (error.code, error.reason) == (409, "Conflict")
    assert f"the UID in the precondition (old) does not match the UID in record ({uid})" in str(error)
    assert core.delete("pods", "web", grace_seconds=0, uid=uid)["metadata"]["uid"] == uid
    assert refused(core.delete, "pods", "web", grace_seconds=0, uid=uid).code == 404


def test_finalizer_keeps_the_pod() -> None:
    """With grace 0 the pod stays until its last finalizer is removed, and goes then."""
    core = ApiWorld()
    manifest = pod()
    manifest["metadata"]["finalizers"] = ["a/b"]
    core.create("pods", manifest)
    core.delete("pods", "web", grace_seconds=0)
    watch = core.watch("pods", core.list_objects("pods")[1])

    assert marks(core.get("pods", "web"))[1] == 0
    core.patch(
        "pods", "web", {"$deleteFromPrimitiveList/finalizers": ["a/b"], "metadata": {"finalizers": None}}
    )
    assert [each[0] for each in reported(watch.taken())] == ["DELETED"]
    assert core.list_objects("pods")[0] == ()


def test_finalizer_removed_during_the_grace_leaves_the_pod() -> None:
    """The kubelet still has to say that it is done."""
    core = ApiWorld()
    manifest = pod()
    manifest["metadata"]["finalizers"] = ["a/b"]
    core.create("pods", manifest)
    core.delete("pods", "web")
    core.patch("pods", "web", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}})

    assert marks(core.get("pods", "web"))[1] == 30


def test_deletion_cannot_be_taken_back() -> None:
    """An update does not touch the deletion."""
    core = ApiWorld()
    made = core.create("pods", pod())
    core.delete("pods", "web")
    body = {**made, "metadata": {**made["metadata"], "resourceVersion": None, "labels": {"a": "b"}}}

    assert marks(core.update("pods", body)) == ("2026-01-01T12:00:30Z", 30)


def test_other_kinds_go_at_once() -> None:
    """A configMap knows no grace; a finalizer keeps it."""
    core = ApiWorld()
    core.create("configmaps", {"metadata": {"name": "a"}})
    core.create("configmaps", {"metadata": {"name": "b", "finalizers": ["x/y"]}})
    for name in ("a", "b", "b"):
        core.delete("configmaps", name, grace_seconds=30)
    kept = core.list_objects("configmaps")[0]

    assert [each["metadata"]["name"] for each in kept] == ["b"]
    assert marks(kept[0]) == ("2026-01-01T12:00:00Z", 0)
