"""PHASE contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any, TypeAlias

import pytest
from outside_world import create_mirror, file_pod, start_static
from pod_status import again, ended, runs, tell_status, waits
from running import BROKEN, KEPT, running
from trace_builder import PodHandle, TraceBuilder
from twice import assert_detects, detects

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts.tables.status import COUNTS

SECOND: dict[str, Any] = {"name": "c2"}
INIT: dict[str, Any] = {"name": "i1"}
Case: TypeAlias = tuple[str, str, list[dict[str, Any]], list[dict[str, Any]], str, str]
"""A contract, the restart policy, the statuses of init and app containers, and a right and a wrong phase."""
CASES: list[Case] = [
    ("PHASE-02", "Always", [], [waits(), runs(**SECOND)], "Pending", "Running"),
    ("PHASE-02", "Always", [], [runs(), runs(**SECOND)], "Running", "Pending"),
    ("PHASE-03", "Always", [], [again(1)], "Running", "Pending"),
    ("PHASE-03", "Always", [], [again(1), runs(**SECOND)], "Running", "Pending"),
    ("PHASE-05", "Always", [], [ended(0)], "Running", "Succeeded"),
    ("PHASE-06", "OnFailure", [], [ended(0)], "Succeeded", "Failed"),
    ("PHASE-06", "Never", [], [ended(0), ended(0, **SECOND)], "Succeeded", "Failed"),
    ("PHASE-07", "Never", [], [ended(1), ended(0, **SECOND)], "Failed", "Succeeded"),
    ("PHASE-07", "OnFailure", [], [ended(1)], "Running", "Failed"),
    ("PHASE-08", "Never", [], [ended(1), runs(**SECOND)], "Running", "Failed"),
    ("PHASE-09", "Always", [runs(**INIT)], [waits()], "Pending", "Running"),
    ("PHASE-09", "Never", [ended(1, **INIT)], [waits()], "Failed", "Succeeded"),
    ("PHASE-09", "OnFailure", [ended(1, **INIT)], [waits()], "Pending", "Failed"),
    ("PHASE-10", "Always", [again(0, **INIT)], [runs()], "Running", "Pending"),
    ("PHASE-15", "Always", [], [waits()], "Pending", "Running"),
]


def spec(policy: str, inits: list[dict[str, Any]], apps: list[dict[str, Any]]) -> dict[str, Any]:
    """A pod spec with a container for each status, and always with c1."""
    names = {"c1", *(app["name"] for app in apps)}
    lists = {"containers": sorted(names), "initContainers": [init["name"] for init in inits]}
    containers = {key: [{"name": n, "image": "img:1"} for n in names] for key, names in lists.items()}
    return {"restartPolicy": policy, **containers}


@pytest.mark.parametrize("case", CASES)
def test_phase_follows_the_containers(case: Case) -> None:
    """PHASE-02 to PHASE-10, PHASE-15: the containers decide, in the order of the table."""
    contract_id, policy, inits, apps, phase, wrong = case

    def tell(s: TraceBuilder, *, right: bool) -> None:
        tell_status(s, s.pod(**spec(policy, inits, apps)), phase if right else wrong, apps, inits=inits)

    assert_detects(contract_id, tell)


def tell_lost(s: TraceBuilder, web: PodHandle) -> None:
    """The sandbox of a pod that is to go is stopped, and its container, which never ran, is shown as lost."""
    s.stop_sandbox(s.run_sandbox(web))
    lost = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}
    tell_status(s, web, "Pending", [{"name": "c1", "state": lost}])


@detects("PHASE-05", if_right=Verdict.NOT_EXERCISED, goes=(True, False))
def test_end_that_is_noticed_late_leaves_the_phase(s: TraceBuilder, *, goes: bool) -> None:
    """PHASE-05: the end of a pod whose file went and is back may be reported of what is wanted again."""
    web = s.pod("web-node-1", source="file", uid="static")
    if goes:
        s.wait(5).unset(web)
        s.wait(5).set(web)
    tell_lost(s, web)


@detects("PHASE-07", if_right=Verdict.NOT_EXERCISED, goes=(True, False))
def test_end_leaves_the_phase_of_a_static_pod(s: TraceBuilder, *, goes: bool) -> None:
    """PHASE-07: at the end of a static pod what never ran is reported as lost, and the phase is as it was."""
    web = s.pod("web-node-1", source="file", uid="static", restartPolicy="OnFailure")
    if goes:
        s.wait(5).unset(web)
    tell_lost(s, web)


@pytest.mark.parametrize(("kubernetes", "breaks"), [("1.36", 0), ("1.35", 1)])
def test_new_sandbox_whose_sidecar_has_just_started_is_pending(kubernetes: str, breaks: int) -> None:
    """PHASE-02: from 1.36 on app containers of the sandbox before do not show that a pod is initialized."""
    s = TraceBuilder(kubernetes)
    web = s.pod(initContainers=[{**INIT, "image": "img:1", "restartPolicy": "Always"}])
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox, "c1")
    s.exited(c1, 1)
    s.stop_sandbox(sandbox)
    i1 = s.run_container(web, s.run_sandbox(web, 1), "i1")
    tell_status(s, web, "Pending", [ended(1, c1)], inits=[runs(i1)])

    assert s.judge("PHASE-02").breaks == breaks


@detects("PHASE-02", anew=(True, False))
def test_phase_is_held_back_at_that_of_the_mirror(s: TraceBuilder, *, anew: bool) -> None:
    """PHASE-02: at its deadline a static pod that runs is Pending where its mirror is new, else as before."""
    web = file_pod(s, activeDeadlineSeconds=10)
    create_mirror(s, web)
    start_static(s, web)
    tell_status(s, web, "Running", [runs()], startTime="2026-01-01T00:00:00Z")
    s.wait(20)
    if anew:
        s.record("deleted", uid="mirror")
        create_mirror(s, web, "another")
    tell_status(s, web, "Pending", [runs()], startTime="2026-01-01T00:00:00Z")


@detects("PHASE-03", follows=(True, False))
def test_phase_follows_what_a_probe_finds_long_after(s: TraceBuilder, *, follows: bool) -> None:
    """PHASE-03: a result of a probe is reported at once, however long the status before was ago."""
    web = s.pod(initContainers=[{"name": "s1", "image": "img:1", "restartPolicy": "Always"}])
    for started, phase in (
        (False, "Pending"),
        (True, "Pending"),
        (True, "Running" if follows else "Pending"),
    ):
        tell_status(s, web, phase, [again(1)], inits=[runs(name="s1", started=started)])
        s.wait(1 if started else 30)
    s.wait(30)


@pytest.mark.parametrize("waited", [1, 10])
def test_phase_follows_with_the_next_sync(waited: int) -> None:
    """PHASE-02: a result of a probe is reported at once, and the phase follows soon."""
    s = TraceBuilder()
    sidecar = {"name": "s1", "image": "img:1", "restartPolicy": "Always"}
    web = s.pod(initContainers=[sidecar])
    for started in (False, True):
        inits = [runs(name="s1", started=started)]
        tell_status(s, web, "Pending", [again(1)], inits=inits)
        s.wait(waited)

    assert bool(s.judge("PHASE-02").breaks or s.judge("PHASE-03").breaks) is (waited > 1)


@pytest.mark.parametrize("ends", [True, False])
def test_end_does_not_wait_for_debugging(*, ends: bool) -> None:
    """PHASE-01: a pod ends though an ephemeral container runs."""
    s = TraceBuilder()
    debugger = [{"name": "dbg", "image": "img:1"}]
    job = s.pod(restartPolicy="Never", terminationGracePeriodSeconds=5, ephemeralContainers=debugger)
    sandbox = s.run_sandbox(job)
    c1, dbg = (s.run_container(job, sandbox, name) for name in ("c1", "dbg"))
    s.exited(c1)
    if ends:
        s.stop(dbg)
        tell_status(s, job, "Succeeded", [ended(0, c1)])
    s.wait(60).call("ListContainers", {}, {})

    assert s.judge("PHASE-01").verdict is (KEPT if ends else BROKEN)


@detects("PHASE-13")
def test_eviction_decides_before_the_containers(s: TraceBuilder, *, right: bool) -> None:
    """PHASE-13: an evicted pod is Failed even where all its containers ended with 0."""
    tell_status(s, s.pod(), "Failed" if right else "Succeeded", [ended(0)], reason="Evicted")


@pytest.mark.parametrize(
    ("contract_id", "code", "phase"), [("PHASE-06", 0, "Succeeded"), ("PHASE-07", 1, "Failed")]
)
def test_last_phase_is_not_held_for_ever(contract_id: str, code: int, phase: str) -> None:
    """PHASE-06, PHASE-07: the terminal phase comes once the sandbox is stopped."""
    for right in (True, False):
        s, web, sandbox, c1 = running(policy="Never")
        s.exited(c1, code)
        tell_status(s, web, "Running", [ended(code, c1)])
        s.stop_sandbox(sandbox)
        tell_status(s, web, phase if right else "Running", [ended(code, c1)])
        verdict = s.judge(contract_id).verdict.words

        assert verdict == ("kept" if right else "broken")


@detects("PHASE-09")
def test_failed_init_is_not_held_for_ever(s: TraceBuilder, *, right: bool) -> None:
    """PHASE-09: Failed comes once the sandbox of a pod with a failed init container is stopped."""
    pod = s.pod(**spec("Never", [waits(**INIT)], [waits()]))
    sandbox = s.run_sandbox(pod)
    i1 = s.run_container(pod, sandbox, "i1")
    s.exited(i1, 1)
    s.stop_sandbox(sandbox)
    tell_status(s, pod, "Failed" if right else "Pending", [waits()], inits=[ended(1, i1)])


def test_api_servers_own_status_is_not_judged() -> None:
    """PHASE-02: the first status has no conditions and was not written by a kubelet."""
    s = TraceBuilder()
    s.status(s.pod(), "Pending")

    assert s.judge("PHASE-02").verdict.words == "not exercised"


def test_every_kind_of_container_counts_in_every_state() -> None:
    """The table of counts leaves no container out and names none twice."""
    states = {seen for row in COUNTS for seen in row.seen}
    named = [(row.kind, seen) for row in COUNTS for seen in row.seen]

    assert len(named) == len(set(named))
    assert {(k, s) for k in ("init", "app") for s in states} <= {*named}


@detects("PHASE-06", if_right=Verdict.NOT_EXERCISED, mirrored=(False, True))
def test_static_pod_that_nobody_shows_is_reported_nowhere(s: TraceBuilder, *, mirrored: bool) -> None:
    """PHASE-06: without its mirror nothing is written of a static pod that has ended."""
    web = file_pod(s, restartPolicy="Never")
    create_mirror(s, web)
    sandbox, c1 = start_static(s, web)
    if not mirrored:
        s.record("deleted", uid="mirror")
    s.exited(c1, 0)
    s.stop_sandbox(sandbox)
    s.wait(60).stop_here()


@detects("PHASE-06", if_right=Verdict.NOT_EXERCISED, away=(True, False))
def test_static_pod_that_ended_before_it_was_shown_is_reported_nowhere(
    s: TraceBuilder, *, away: bool
) -> None:
    """PHASE-06: one that comes to its end while the API server is away gets no mirror any more."""
    web = file_pod(s, restartPolicy="Never")
    if away:
        s.record("fault", what="the API server is away")
    sandbox, c1 = start_static(s, web)
    s.exited(c1, 0)
    s.wait(1).call("StopPodSandbox", {"pod_sandbox_id": sandbox.id})
    s.wait(20)


@pytest.mark.parametrize(
    ("again", "verdict"),
    [((), KEPT), (("Running",), KEPT), (("Running", "Running"), BROKEN), (("Pending",), BROKEN)],
)
def test_last_status_may_be_written_over_the_phase_of_a_client(
    again: tuple[str, ...], verdict: Verdict
) -> None:
    """PHASE-11: the last status may be written once more over the phase that another client has written."""
    s, web, _, c1 = running()
    s.status(web, "Running", containerStatuses=[runs(c1)])
    web.manifest["status"] = {"phase": "Failed"}
    s.wait(1).set(web)
    for phase in again:
        s.wait(1).status(web, phase, containerStatuses=[runs(c1)])
    s.wait(1).status(web, "Failed", containerStatuses=[ended(0)])

    assert s.judge("PHASE-11").verdict is verdict
