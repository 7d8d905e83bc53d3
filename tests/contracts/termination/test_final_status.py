"""TERM contracts on the last statuses of a pod: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from running import BROKEN, KEPT, running
from trace_builder import ContainerHandle, PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def shown(code: int | None, **status: Any) -> dict[str, Any]:
    """The containerStatuses for c1, which ended with `code`, or runs."""
    state: dict[str, Any] = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
    return {"containerStatuses": [{"name": "c1", "state": state, **status}]}


@pytest.mark.parametrize(
    ("code", "phase", "verdict"),
    [(0, "Succeeded", KEPT), (137, "Failed", KEPT), (137, "Succeeded", BROKEN), (0, "Running", BROKEN)],
)
def test_deleted_pod_ends_in_a_phase(code: int, phase: str, verdict: Verdict) -> None:
    """TERM-16: a deleted pod ends Succeeded or Failed, by its exit codes, before it is gone."""
    s, web, sandbox, c1 = running()
    s.delete(web)
    s.stop(c1, code=code)
    s.stop_sandbox(sandbox)
    s.status(web, phase, **shown(code))
    s.deleted(web)

    assert s.judge("TERM-16").verdict is verdict


@pytest.mark.parametrize(
    ("asked", "phase", "verdict"),
    [(True, "Failed", KEPT), (False, "Failed", BROKEN), (True, "Running", BROKEN)],
)
def test_object_is_deleted_at_the_end(*, asked: bool, phase: str, verdict: Verdict) -> None:
    """TERM-18: DELETE only for a pod that is being deleted and whose phase is terminal."""
    s, web, *_ = running()
    if asked:
        s.delete(web)
    s.status(web, phase)
    s.record("api", verb="delete", resource="pods", uid=web.uid, grace=0, precondition=web.uid)

    assert s.judge("TERM-18").verdict is verdict


@pytest.mark.parametrize(("op", "verdict"), [("removed", KEPT), ("folder", BROKEN)])
def test_object_is_deleted_after_its_cgroup(op: str, verdict: Verdict) -> None:
    """TERM-18: a pod's cgroup is removed before its object."""
    s, web, *_ = running()
    s.record("disk", op="folder", path=f"/sys/fs/cgroup/kubepods/pod{web.uid}")
    s.delete(web)
    s.record("disk", op=op, path=f"/sys/fs/cgroup/kubepods/pod{web.uid}")
    s.status(web, "Failed")
    s.record("api", verb="delete", resource="pods", uid=web.uid, grace=0, precondition=web.uid)

    assert s.judge("TERM-18").verdict is verdict


@pytest.mark.parametrize(("grace", "uid", "verdict"), [(0, None, KEPT), (30, None, BROKEN), (0, "", BROKEN)])
def test_last_delete_names_the_uid(grace: int, uid: str | None, verdict: Verdict) -> None:
    """TERM-19: the final DELETE has grace 0 and the UID as precondition."""
    s, web, *_ = running()
    named = web.uid if uid is None else uid
    s.record("api", verb="delete", resource="pods", uid=web.uid, grace=grace, precondition=named)

    assert s.judge("TERM-19").verdict is verdict


PAST = {"startTime": "2026-01-01T00:00:00Z", "podIP": "10.88.0.2"}
COUNTED = shown(0, restartCount=2, lastState={"terminated": {"exitCode": 1}})


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, KEPT),
        ({"startTime": None}, BROKEN),
        ({"podIP": ""}, BROKEN),
        (shown(0), BROKEN),
        (shown(None, restartCount=2), BROKEN),
    ],
)
def test_final_status_keeps_the_past(changed: dict[str, Any], verdict: Verdict) -> None:
    """TERM-30: startTime, podIP, restart counts and last states are there to the end."""
    s, web, *_ = running()
    s.status(web, **PAST, **COUNTED)
    s.delete(web)
    s.status(web, "Failed", **(PAST | COUNTED | changed))

    assert s.judge("TERM-30").verdict is verdict


@pytest.mark.parametrize(("died", "verdict"), [(True, KEPT), (False, BROKEN)])
def test_address_of_a_sandbox_that_died_while_the_kubelet_was_away(*, died: bool, verdict: Verdict) -> None:
    """TERM-30: to stop a dead sandbox once more does not tell a kubelet that starts its address."""
    s, web, sandbox, c1 = running()
    s.status(web, **PAST, **shown(None))
    s.delete(web)
    s.record("kubelet", op="killed")
    if died:
        s.exited(c1, 255)
        s.sandbox_died(sandbox)
    s.wait(5).record("kubelet", op="started")
    s.stop_sandbox(sandbox)
    s.status(web, **(PAST | shown(None) | {"podIP": ""}))

    assert s.judge("TERM-30").verdict is verdict


@detects("TERM-30", begin=lambda: running(source="file"), is_removed=(True, False))
def test_restarts_of_a_static_pod_go_with_its_records(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, *, is_removed: bool
) -> None:
    """TERM-30: the status of a pod whose file is gone is forgotten, and without records nothing counts."""
    named: dict[str, Any] = {
        "name": "c1",
        "restartCount": 1,
        "containerID": f"fake://{c1.id}",
        "state": {"running": {}},
    }
    s.status(web, "Running", **PAST, containerStatuses=[named])
    s.unset(web)
    s.stop(c1)
    if is_removed:
        s.remove(c1)
    gone = {"name": "c1", "restartCount": 0, "state": {"terminated": {"exitCode": 137}}}
    s.status(web, "Running", **PAST, containerStatuses=[gone])


@detects("TERM-30", is_removed=(True, False))
def test_new_sandbox_forgets_how_a_sidecar_ended(s: TraceBuilder, *, is_removed: bool) -> None:
    """TERM-30: for a new sandbox the records of sidecars are removed, and with them the last state."""
    web = s.pod(initContainers=[{"name": "sc", "image": "img:1", "restartPolicy": "Always"}])
    sandbox = s.run_sandbox(web)
    ended = s.run_container(web, sandbox, "sc")
    s.exited(ended, 1)
    first = s.run_container(web, sandbox, "sc", 1)
    named: dict[str, Any] = {"name": "sc", "restartCount": 1, "state": {"running": {}}}
    last = {"lastState": {"terminated": {"exitCode": 1}}, "containerID": f"fake://{first.id}"}
    s.status(web, "Running", **PAST, initContainerStatuses=[named | last])
    s.delete(web)
    s.stop(first)
    if is_removed:
        s.remove(first)
        s.remove(ended)
    second = s.run_container(web, s.run_sandbox(web, 1), "sc", 2)
    reported = named | {"restartCount": 2, "containerID": f"fake://{second.id}"}
    s.status(web, "Running", **PAST, initContainerStatuses=[reported])


@pytest.mark.parametrize("breaks", [False, True])
def test_collection_that_looked_earlier_takes_the_last_state_along(*, breaks: bool) -> None:
    """TERM-30: garbage collection that looked before the newest instance ran may come to its record late."""
    s, web, sandbox, older = running()
    job = s.pod("job", restartPolicy="Never")
    other = s.run_sandbox(job)
    garbage = [s.run_container(job, other, "c1", attempt) for attempt in range(3)]
    for one in garbage:
        s.exited(one, 1)
    s.exited(older, 1)
    newest = s.run_container(web, sandbox, attempt=1)
    shown: dict[str, Any] = {
        "name": "c1",
        "restartCount": 1,
        "state": {"running": {}},
        "containerID": f"fake://{newest.id}",
    }
    last = {"lastState": {"terminated": {"exitCode": 1}}}
    s.status(web, "Running", **PAST, containerStatuses=[shown | last])
    if breaks:
        s.wait(2)
    for one in (*garbage, older):
        s.wait(0.6).remove(one)
    s.delete(web)
    s.status(web, "Running", **PAST, containerStatuses=[shown])

    assert bool(s.judge("TERM-30").breaks) is breaks


@pytest.mark.parametrize("gone", [(), ("newest",), ("newest", "older"), ("older",)])
def test_older_record_tells_what_is_left(gone: tuple[str, ...]) -> None:
    """TERM-30: an older record is reported where the newest was removed before it."""
    s, web, sandbox, older = running()
    s.exited(older, 1)
    newest = s.run_container(web, sandbox, attempt=1)
    ended: dict[str, Any] = {"name": "c1", "restartCount": 1, "state": {"terminated": {"exitCode": 0}}}
    s.delete(web)
    s.stop(newest)
    s.status(web, "Failed", **PAST, containerStatuses=[ended | {"containerID": f"fake://{newest.id}"}])
    s.wait(1)
    for one in gone:
        s.wait(1).remove({"newest": newest, "older": older}[one])
    reported = ended | {"restartCount": 0, "containerID": f"fake://{older.id}"}
    s.status(web, "Failed", **PAST, containerStatuses=[reported])

    assert bool(s.judge("TERM-30").breaks) is ("newest" not in gone)


@pytest.mark.parametrize("source", ["file", "api"])
def test_static_pod_has_no_status_when_its_kubelet_starts(source: str) -> None:
    """TERM-30: what a kubelet has reported of a static pod stands in no manifest: the next begins anew."""
    s, web, *_ = running(source=source)
    s.status(web, "Failed", **PAST, **COUNTED)
    s.record("kubelet", op="killed")
    s.wait(1).record("kubelet", op="started")
    s.status(web, "Failed", **(PAST | COUNTED | {"podIP": ""}))

    assert bool(s.judge("TERM-30").breaks) is (source == "api")


@detects("TERM-30", if_right=Verdict.NOT_EXERCISED, begin=lambda: running(source="file"), gone=(True, False))
def test_nothing_tells_what_a_mirror_reported_that_is_gone(
    s: TraceBuilder, web: PodHandle, *, gone: bool
) -> None:
    """TERM-30: once its file is gone a static pod's past stands in its mirror only."""
    s.status(web, **PAST, **COUNTED)
    s.unset(web)
    if gone:
        s.deleted(web)
    s.status(web, **(PAST | COUNTED | {"startTime": "2026-01-01T00:00:09Z"}))


@pytest.mark.parametrize(
    ("fault", "file_is_gone", "breaks"),
    [
        ("the watch is late", True, False),
        ("the watch is gone", True, False),
        ("the API server is away", True, True),
        ("the watch is late", False, True),
    ],
)
def test_what_a_mirror_was_sent_may_come_late(fault: str, *, file_is_gone: bool, breaks: bool) -> None:
    """TERM-30: once its file is gone a static pod's past is what is known of its mirror."""
    s, web, *_ = running(source="file")
    s.record("fault", what=fault, values={"seconds": "20"})
    s.status(web, **PAST, **COUNTED)
    if file_is_gone:
        s.unset(web)
    ended = {"startTime": "2026-01-01T00:00:09Z"}
    s.wait(1).status(web, "Failed", **(PAST | COUNTED | ended))

    assert bool(s.judge("TERM-30").breaks) is breaks


@pytest.mark.parametrize(
    ("ready", "reason", "verdict"),
    [("False", "PodCompleted", KEPT), ("True", "", BROKEN), ("False", "PodFailed", BROKEN)],
)
def test_ended_pod_is_not_ready(ready: str, reason: str, verdict: Verdict) -> None:
    """TERM-31: Ready and ContainersReady are False in a terminal phase."""
    s, web, *_ = running()
    kinds = ("Ready", "ContainersReady")
    s.status(web, "Succeeded", conditions=[{"type": k, "status": ready, "reason": reason} for k in kinds])

    assert s.judge("TERM-31").verdict is verdict


@pytest.mark.parametrize(("end", "verdict"), [("ContainerStatusUnknown", KEPT), ("Error", BROKEN)])
def test_end_that_is_made_up_leaves_the_conditions(end: str, verdict: Verdict) -> None:
    """TERM-31: what was not ready as it waited keeps that reason, where no record says how it ended."""
    s, web, *_ = running()
    ended = {"name": "c1", "state": {"terminated": {"exitCode": 137, "reason": end}}}
    unready = [
        {"type": kind, "status": "False", "reason": "ContainersNotReady"}
        for kind in ("Ready", "ContainersReady")
    ]
    s.status(web, "Failed", conditions=unready, containerStatuses=[ended])

    assert s.judge("TERM-31").verdict is verdict


@pytest.mark.parametrize(("source", "breaks"), [("file", False), ("api", True)])
def test_static_pod_has_ended_before_its_sandbox(source: str, *, breaks: bool) -> None:
    """TERM-32: no worker knows the UID of a mirror, so that its status does not wait for the sandbox."""
    s, web, _, c1 = running(source=source, policy="Never")
    s.exited(c1, 0)
    s.status(web, "Succeeded", **shown(0))

    assert bool(s.judge("TERM-32").breaks) is breaks


@pytest.mark.parametrize("by_others", [True, False])
def test_record_that_others_take_away_takes_the_last_state_along(*, by_others: bool) -> None:
    """TERM-30: of what somebody else removes while its successor runs nothing is reported any more."""
    s, web, sandbox, ended = running()
    s.sandbox_died(sandbox)
    s.exited(ended, 1)
    c1 = s.run_container(web, s.run_sandbox(web, 1), "c1", 1)
    named: dict[str, Any] = {"name": "c1", "restartCount": 1, "containerID": f"fake://{c1.id}"}
    named["state"] = {"running": {}}
    s.status(
        web, "Running", **PAST, containerStatuses=[named | {"lastState": {"terminated": {"exitCode": 1}}}]
    )
    if by_others:
        s.record("runtime", op="removed", container_id=ended.id)
    else:
        s.wait(1).remove(ended)
    s.delete(web)
    s.status(web, "Running", **PAST, containerStatuses=[named])

    assert bool(s.judge("TERM-30").breaks) is not by_others


@pytest.mark.parametrize(("restarts", "breaks"), [(True, False), (False, True)])
def test_pod_that_a_new_kubelet_refuses_may_run_still(*, restarts: bool, breaks: bool) -> None:
    """TERM-15, TERM-30, TERM-32: no worker of a kubelet that has just started knows what it refuses."""
    s, web, *_ = running()
    s.status(web, "Running", **PAST, **shown(None))
    s.wait(5)
    if restarts:
        s.record("kubelet", op="killed")
        s.record("kubelet", op="started")
    s.wait(5)
    s.status(web, "Failed", reason="NodePorts")

    broken = {each for each in ("TERM-15", "TERM-30", "TERM-32") if s.judge(each).breaks}
    assert broken == ({"TERM-15", "TERM-30", "TERM-32"} if breaks else set())
