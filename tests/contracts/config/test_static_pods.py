"""STATIC contracts on static pods: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from outside_world import HASH, SEEN, SOURCE, file_pod, remove_file, start_static, static_config, tell_status
from running import BROKEN, KEPT
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

OTHER = [{"name": "c1", "image": "img:2"}]


@pytest.mark.parametrize("wrong", ["", "same UID", "never"])
def test_edited_pod_is_another_pod(wrong: str) -> None:
    """STATIC-02: an edit gives another UID."""
    s = TraceBuilder()
    web = file_pod(s)
    sandbox, c1 = start_static(s, web)
    again = file_pod(s.wait(10), containers=OTHER)
    s.stop(c1)
    s.stop_sandbox(sandbox)
    if wrong == "same UID":
        s.wait(10).run_sandbox(web, 1, config=static_config(s, web))
    elif not wrong:
        start_static(s.wait(3), again)

    assert s.judge("STATIC-02").verdict is (BROKEN if wrong else KEPT)


@detects("STATIC-02", waits=(True, False))
def test_edit_is_noticed_late(s: TraceBuilder, *, waits: bool) -> None:
    """STATIC-02: while a list of what runs keeps the kubelet waiting it runs the manifest before the edit."""
    web = file_pod(s)
    sandbox, _ = start_static(s, web)
    s.wait(10).sandbox_died(sandbox)
    listed = s.begin("ListContainers", {"filter": {}})
    if not waits:
        s.end("ListContainers", listed, {"containers": []})
    again = file_pod(s, containers=OTHER)
    s.wait(9)
    if waits:
        s.end("ListContainers", listed, {"containers": []})
    s.run_sandbox(web, 1, config=static_config(s, web))
    start_static(s.wait(3), again)


@detects("STATIC-02", changes=(False, True))
def test_unchanged_manifest_keeps_its_uid(s: TraceBuilder, *, changes: bool) -> None:
    """STATIC-02: the same content is the same pod."""
    web = file_pod(s)
    sandbox, _ = start_static(s, web)
    s.wait(10).sandbox_died(sandbox)
    if changes:
        web.manifest["metadata"]["uid"] = "another"
    s.run_sandbox(web, 1, config=static_config(s, web))


@pytest.mark.parametrize(
    ("annotations", "verdict"),
    [
        ({}, KEPT),
        ({HASH: ""}, BROKEN),
        ({HASH: "abc"}, BROKEN),
        ({SOURCE: "api"}, BROKEN),
        ({SEEN: ""}, BROKEN),
    ],
)
def test_sandbox_tells_where_its_pod_came_from(annotations: dict[str, str], verdict: Verdict) -> None:
    """STATIC-03: hash, source and time stand in annotations."""
    s = TraceBuilder()
    web = file_pod(s)
    s.run_sandbox(web, config=static_config(s, web, **annotations))

    assert s.judge("STATIC-03").verdict is verdict


@detects("STATIC-05", if_right=Verdict.NOT_EXERCISED, ends=(True, False))
def test_static_pod_may_fail_before_it_is_reported(s: TraceBuilder, *, ends: bool) -> None:
    """STATIC-05: where the mirror comes late, an init container may have failed before the first status."""
    inits = [{"name": "i1", "image": "img:1"}]
    web = file_pod(s, restartPolicy="Never", initContainers=inits)
    sandbox = s.run_sandbox(web, config=static_config(s, web))
    i1 = s.run_container(web, sandbox, "i1")
    if ends:
        s.exited(i1, 1)
    s.record("status", uid="mirror", namespace="default", name=web.name, status={"phase": "Failed"})


def two_static(s: TraceBuilder) -> tuple[PodHandle, Any, PodHandle, Any]:
    """Two static pods that run."""
    web = file_pod(s)
    first = start_static(s, web)
    own = file_pod(s, "own")
    return web, first, own, start_static(s, own)


@pytest.mark.parametrize("wrong", ["", "stays", "others"])
def test_bad_manifest_disturbs_no_other(wrong: str) -> None:
    """STATIC-07: a manifest that cannot be read any more costs its own pod, and that alone."""
    s = TraceBuilder()
    tell_status(s)
    web, (_, c1), _, (sandbox, c2) = two_static(s)
    remove_file(s.wait(5), web)
    if wrong != "stays":
        s.wait(20).stop(c1)
    if wrong == "others":
        s.stop(c2)
        s.stop_sandbox(sandbox)
    tell_status(s.wait(30))
    s.stop_here()

    assert s.judge("STATIC-07").verdict is (BROKEN if wrong else KEPT)


@detects("STATIC-07", ended=(True, False))
def test_pod_that_ended_by_itself_goes(s: TraceBuilder, *, ended: bool) -> None:
    """STATIC-07: the sandbox of a pod that has come to its end is stopped, whatever goes elsewhere."""
    tell_status(s)
    web, (_, c1), _, (sandbox, c2) = two_static(s)
    remove_file(s.wait(5), web)
    s.wait(1).stop(c1)
    if ended:
        s.exited(c2, seen=False)
    s.stop_sandbox(sandbox)
    tell_status(s.wait(30))
    s.stop_here()


@detects("STATIC-07")
def test_pod_of_another_network_is_moved(s: TraceBuilder, *, right: bool) -> None:
    """STATIC-07: a pod that is to use the node's network gets another sandbox, whatever goes elsewhere."""
    tell_status(s)
    web = file_pod(s)
    _, c1 = start_static(s, web)
    own = file_pod(s, "own", uid="u1")
    sandbox, c2 = start_static(s, own)
    file_pod(s, "own", uid="u1", hostNetwork=right)
    remove_file(s, web)
    s.wait(1).stop(c1)
    s.stop(c2)
    s.stop_sandbox(sandbox)
    tell_status(s.wait(30))


@pytest.mark.parametrize("right", [True, False])
def test_pod_whose_time_is_over_goes_by_itself(*, right: bool) -> None:
    """STATIC-07: a deadline that passes ends its own pod, whatever becomes of the other manifests."""
    s = TraceBuilder()
    tell_status(s)
    web = file_pod(s)
    _, c1 = start_static(s, web)
    limit: dict[str, Any] = {"activeDeadlineSeconds": 10} if right else {}
    own = file_pod(s, "own", **limit)
    sandbox, c2 = start_static(s, own)
    remove_file(s.wait(5), web)
    s.wait(1).stop(c1)
    s.wait(9).stop(c2)
    s.stop_sandbox(sandbox)
    tell_status(s.wait(30))

    assert s.judge("STATIC-07").verdict is (KEPT if right else BROKEN)


@pytest.mark.parametrize("wrong", ["", "running", "sandbox"])
def test_static_pod_waits_for_the_one_before(wrong: str) -> None:
    """STATIC-18: the next version starts when the one before has ended altogether."""
    s = TraceBuilder()
    sandbox, c1 = start_static(s, file_pod(s))
    again = file_pod(s.wait(10), containers=OTHER)
    if wrong != "running":
        s.stop(c1)
    if not wrong:
        s.stop_sandbox(sandbox)
    start_static(s.wait(1), again)

    assert s.judge("STATIC-18").verdict is (BROKEN if wrong else KEPT)


@pytest.mark.parametrize(
    ("kubernetes", "spec", "refused"),
    [
        ("1.34", {"imagePullSecrets": [{"name": "s"}]}, True),
        ("1.34", {"serviceAccountName": "robot"}, True),
        ("1.33", {"serviceAccountName": "robot"}, False),
        ("1.33", {"resourceClaims": [{"name": "gpu"}]}, True),
        ("1.34", {}, False),
    ],
)
def test_static_pod_refers_to_no_api_object(kubernetes: str, spec: dict[str, Any], *, refused: bool) -> None:
    """STATIC-22: from 1.34 on such a pod must not run; SANDBOX-01 and STATIC-09 do not wait for it."""
    waits, runs = TraceBuilder(kubernetes), TraceBuilder(kubernetes)
    for s in (waits, runs):
        web = file_pod(s.wait(5), **spec)
        if s is runs:
            s.run_sandbox(web, config=static_config(s, web))
        s.wait(60).record("kubelet", op="killed")

    assert bool(runs.judge("STATIC-22").breaks) is refused
    assert bool(waits.judge("SANDBOX-01").breaks) is not refused
    assert bool(waits.judge("STATIC-09").breaks) is not refused


@pytest.mark.parametrize(
    ("where", "refers"),
    [
        ({"env": [{"name": "E", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]}, True),
        ({"env": [{"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}, False),
        ({"envFrom": [{"secretRef": {"name": "s"}}]}, True),
    ],
)
def test_variables_of_a_static_pod_refer_to_no_api_object(where: dict[str, Any], *, refers: bool) -> None:
    """STATIC-22: variables count too, but not those of the pod's own fields."""
    s = TraceBuilder("1.34")
    web = file_pod(s, containers=[{"name": "c1", "image": "img:1", **where}])
    s.run_sandbox(web, config=static_config(s, web))
    s.record("kubelet", op="killed")

    assert bool(s.judge("STATIC-22").breaks) is refers


@detects("STATIC-06", if_right=Verdict.NOT_EXERCISED, late=(False, True))
def test_file_is_removed_before_it_is_observed(s: TraceBuilder, *, late: bool) -> None:
    """STATIC-06: a pod whose file went unobserved may be run at once, and not later."""
    web = file_pod(s)
    remove_file(s.wait(0.05), web)
    start_static(s.wait(60 if late else 0.05), web)
