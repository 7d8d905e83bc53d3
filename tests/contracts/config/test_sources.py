"""CONFIG contracts: each is kept by a right trace and broken by a wrong one."""

import pytest
from outside_world import (
    SEEN,
    file_pod,
    heal,
    killed,
    outage,
    remove_file,
    start_static,
    started,
    static_config,
    tell_status,
)
from running import BROKEN, KEPT, running
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


@pytest.mark.parametrize("wrong", ["", "stays", "others"])
def test_pod_that_left_its_source_is_killed(wrong: str) -> None:
    """CONFIG-04: what left its source goes, and nothing else."""
    s, _, _, c1 = running()
    own = file_pod(s, "own")
    _, c2 = start_static(s, own)
    remove_file(s.wait(5), own)
    if wrong != "stays":
        s.stop(c2)
    if wrong == "others":
        s.stop(c1)
    s.wait(30).stop_here()

    assert s.judge("CONFIG-04").verdict is (BROKEN if wrong else KEPT)


@detects("CONFIG-04", sidecar=(True, False))
def test_sidecar_is_stopped_after_the_apps(s: TraceBuilder, *, sidecar: bool) -> None:
    """CONFIG-04, STATIC-07: the apps have the pod's grace first; another app is stopped with them."""
    own = file_pod(
        s,
        "own",
        containers=[{"name": "c1", "image": "img:1"}, *[{"name": "s1", "image": "img:1"}] * (not sidecar)],
        initContainers=[{"name": "s1", "image": "img:1", "restartPolicy": "Always"}] * sidecar,
    )
    sandbox, c1 = start_static(s, own)
    s1 = s.run_container(own, sandbox, "s1")
    remove_file(s.wait(5), own)
    s.wait(1).stop(c1)
    s.wait(30).stop(s1)
    s.stop_here()


@pytest.mark.parametrize(
    ("changes", "waits", "verdict"),
    [({}, 0.1, BROKEN), ({}, 12, KEPT), ({"a": "b"}, 0.1, KEPT), ({"a": "b"}, 12, BROKEN)],
)
def test_only_meaningful_changes_count(changes: dict[str, str], waits: float, verdict: Verdict) -> None:
    """CONFIG-05: an annotation wakes a worker that waits for its retry, a new resourceVersion does not."""
    s = TraceBuilder()
    web = s.pod()
    s.run_sandbox(web, error="INTERNAL")
    s.wait(1)
    web.manifest["metadata"] |= {"resourceVersion": "2", **({"annotations": changes} if changes else {})}
    s.set(web)
    if waits > 1:
        tell_status(s.wait(4))
    s.wait(waits).run_sandbox(web)

    assert s.judge("CONFIG-05").verdict is verdict


@detects("CONFIG-06", if_right=Verdict.NOT_EXERCISED, goes=(True, False))
def test_pod_that_ended_late_is_seen_anew(s: TraceBuilder, *, goes: bool) -> None:
    """CONFIG-06: a kubelet that hears late of a file that went and is back ends the pod and sees another."""
    web = s.pod("web-node-1", source="file", uid="static")
    if goes:
        s.wait(5).unset(web)
        s.wait(5).set(web)
    sandbox = s.run_sandbox(web, config=s.sandbox_config(web, annotations={SEEN: "one"}))
    s.wait(1).stop_sandbox(sandbox)
    s.run_sandbox(web, 1, config=s.sandbox_config(web, 1, annotations={SEEN: "two"}))


def deleted_pod(s: TraceBuilder) -> PodHandle:
    """A pod that is being deleted when it is first sent."""
    web = s.pod()
    s.records.pop()
    s.delete(web)
    return web


@detects("CONFIG-08", runs=(False, True))
def test_pod_that_comes_deleted_is_not_started(s: TraceBuilder, *, runs: bool) -> None:
    """CONFIG-08: it goes without ever having run."""
    web = deleted_pod(s)
    if runs:
        s.run_sandbox(web)
    s.wait(1).deleted(web)


@pytest.mark.parametrize("wrong", ["", "early", "never"])
def test_kill_waits_for_all_sources(wrong: str) -> None:
    """CONFIG-17: a removal that comes before every source is seen waits, and is not forgotten."""
    s = TraceBuilder()
    web = file_pod(s)
    _, c1 = start_static(s, web)
    killed(s.wait(5))
    outage(s)
    started(s.wait(1))
    remove_file(s.wait(5), web)
    if wrong == "early":
        s.wait(1).stop(c1)
    heal(s.wait(5))
    if not wrong:
        s.wait(2).stop(c1)

    assert s.judge("CONFIG-17").verdict is (BROKEN if wrong else KEPT)


@pytest.mark.parametrize("contract", ["WORK-22", "CONFIG-18"])
@pytest.mark.parametrize("wrong", ["", "too early", "never"])
def test_pod_comes_again_after_its_end(contract: str, wrong: str) -> None:
    """WORK-22, CONFIG-18: a UID that comes back while it is terminated ends first, then runs afresh."""
    s = TraceBuilder()
    web = file_pod(s, uid="fixed")
    sandbox, c1 = start_static(s, web)
    remove_file(s.wait(5), web)
    call = s.begin("StopContainer", {"container_id": c1.id, "timeout": "30"})
    file_pod(s.wait(1), uid="fixed")
    if wrong == "too early":
        if contract == "WORK-22":
            s.run_sandbox(web, 1, config=static_config(s, web))
        else:
            s.create(web, sandbox, "c1", 1)
    s.wait(5).exited(c1, seen=False)
    s.end("StopContainer", call)
    s.stop_sandbox(sandbox)
    if not wrong:
        s.wait(3).run_sandbox(web, 1, config=static_config(s, web))

    expected = BROKEN if wrong and (contract, wrong) != ("CONFIG-18", "never") else KEPT
    assert s.judge(contract).verdict is expected
