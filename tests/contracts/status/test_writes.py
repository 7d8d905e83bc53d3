"""STATUS contracts about writing: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from pod_status import runs, tell_status
from running import BROKEN, KEPT
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

NOON = "2026-01-01T00:00:00Z"


def write(s: TraceBuilder, pod: PodHandle, body: dict[str, Any], *, code: int = 200, **fields: Any) -> None:
    """The kubelet's PATCH of a pod's status."""
    reported: dict[str, Any] = {"verb": "patch", "subresource": "status", "precondition": pod.uid}
    whole = {"metadata": {"uid": pod.uid}, "status": body}
    s.record("api", resource="pods", uid=pod.uid, body=whole, code=code, **(reported | fields))


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        ({}, KEPT),
        ({"subresource": ""}, BROKEN),
        ({"verb": "update"}, BROKEN),
        ({"precondition": None}, BROKEN),
    ],
)
def test_statuses_are_patched(wrong: dict[str, Any], verdict: Verdict) -> None:
    """STATUS-01: a status is written by PATCH of the status, with the pod's UID."""
    s = TraceBuilder()
    web = s.pod()
    write(s, web, {"phase": "Running"}, **wrong)

    assert s.judge("STATUS-01").verdict is verdict


@pytest.mark.parametrize(
    "body",
    [
        {"phase": "Running"},
        {"conditions": [{"type": "PodScheduled", "status": "True"}]},
        {"$setElementOrder/conditions": [], "podIP": None},
    ],
)
@detects("STATUS-01")
def test_unchanged_status_is_not_patched(s: TraceBuilder, body: dict[str, Any], *, right: bool) -> None:
    """STATUS-01: a PATCH that changes nothing breaks it, one that does keeps it."""
    web = s.pod()
    s.wait(1)
    write(s, web, {"phase": "Running"})
    tell_status(s, web, "Running", [runs()])
    write(s, web, {"phase": "Running"})
    s.wait(10)
    write(s, web, {"phase": "Failed"} if right else body)


def test_what_others_wrote_may_be_put_back() -> None:
    """STATUS-01: after another's write the same PATCH changes something again."""
    s = TraceBuilder()
    web = s.pod()
    s.wait(1)
    tell_status(s, web, "Running", [runs()])
    write(s, web, {"phase": "Running"})
    s.wait(5).set(web)
    write(s, web, {"phase": "Running"})

    assert s.judge("STATUS-01").verdict is KEPT


@detects("STATUS-01", limit=("20000000", "20M"))
def test_amount_in_digits_is_spelled_otherwise_by_the_api_server(s: TraceBuilder, limit: str) -> None:
    """STATUS-01: what a kubelet writes as 20000000 it reads as 20M, and writes again."""
    web = s.pod()
    s.wait(1)
    given = {"limits": {"memory": limit}}
    container = runs(resources=given)
    tell_status(s, web, "Running", [container])
    write(s, web, {"phase": "Running"})
    s.wait(5)
    write(s, web, {"containerStatuses": [container]})


@detects("STATUS-05", changes=(2, 0))
def test_missing_pod_is_asked_for_when_it_changes(s: TraceBuilder, changes: int) -> None:
    """STATUS-05: each start of a container makes a status that is tried once more."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    for attempt in range(changes):
        s.run_container(web, sandbox, attempt=attempt)
    for _ in range(7):
        s.wait(0.2).record("api", verb="get", resource="pods", namespace="default", name="web", code=404)


@detects("STATUS-05", changes=(2, 0))
def test_missing_pod_is_asked_for_when_another_changes(s: TraceBuilder, changes: int) -> None:
    """STATUS-05: with the status of any pod each that was not written yet is tried once more."""
    s.pod()
    other = s.pod("other")
    for _ in range(changes):
        tell_status(s, other, "Running", [runs()])
    for _ in range(7):
        s.wait(0.2).record("api", verb="get", resource="pods", namespace="default", name="web", code=404)


@detects("STATUS-05", others=(2, 0))
def test_missing_pods_are_asked_for_together(s: TraceBuilder, others: int) -> None:
    """STATUS-05: of several pods that are gone each has changed, which makes a batch of all."""
    for name in (*(f"other-{i}" for i in range(others)), *["web"] * 7):
        s.wait(0.2).record("api", verb="get", resource="pods", namespace="default", name=name, code=404)


@pytest.mark.parametrize("without", ["time", "kubelet", "end", "stop", "housekeeping"])
def test_what_was_never_forgotten_may_go_on(without: str) -> None:
    """STATUS-14: the kubelet had no time to forget, or was away meanwhile, or has not ended the pod yet."""
    s = TraceBuilder(started=NOON)
    web = s.pod("web-node-1", source="file", uid="static", terminationGracePeriodSeconds=0)
    sandbox = s.run_sandbox(web)
    tell_status(s, web, "Running", [runs()], startTime=NOON)
    s.wait(10)
    if without not in {"end", "stop"}:
        s.stop_sandbox(sandbox)
    s.unset(web)
    if without == "kubelet":
        s.record("kubelet", op="killed")
        s.wait(100).record("kubelet", op="started")
    elif without == "housekeeping":
        s.call("ListPodSandbox", {}, {}, takes=100)
    elif without == "end":
        s.wait(100)
    elif without == "stop":
        s.wait(100).sandbox_died(sandbox)
    else:
        s.wait(1).set(web)
        s.wait(100)
    s.set(web)
    s.run_sandbox(web, 1)
    tell_status(s, web, "Running", [runs()], startTime=NOON)

    assert s.judge("STATUS-14").verdict is Verdict.NOT_EXERCISED


@pytest.mark.parametrize(
    ("how", "verdict"),
    [
        *(("runs", KEPT), ("idle", BROKEN), ("writes", BROKEN)),
        *(
            ("Never", Verdict.NOT_EXERCISED),
            ("http", Verdict.NOT_EXERCISED),
            ("pulls", Verdict.NOT_EXERCISED),
        ),
    ],
)
def test_standalone_kubelet(how: str, verdict: Verdict) -> None:
    """STATUS-15: without an API server static pods run, and nothing is written; an image may not be there."""
    s = TraceBuilder(standalone=True)
    c1 = {"name": "c1", "image": "img:1", "imagePullPolicy": how if how == "Never" else "IfNotPresent"}
    web = s.pod("web", source="http" if how == "http" else "file", uid="static", containers=[c1])
    web.manifest["metadata"]["name"] = "web-node-1"
    if how in {"runs", "writes"}:
        s.run_container(web, s.run_sandbox(web))
    if how == "pulls":
        s.begin("PullImage", {"image": {"image": "img:1"}, "sandbox_config": s.run_sandbox(web).config})
    if how == "writes":
        write(s, web, {"phase": "Running"})
    s.wait(60).call("ListContainers", {}, {})

    assert s.judge("STATUS-15").verdict is verdict
