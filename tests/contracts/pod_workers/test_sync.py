"""SYNC contracts on the order of a sync: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from outside_world import heal, killed, outage, started
from running import running
from trace_builder import FULL_CHANNELS, ContainerHandle, PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

TWO = [{"name": "c1", "image": "img:1"}, {"name": "c2", "image": "img:2"}]
START_TIME = "2026-01-01T00:00:00Z"


def shown(one: ContainerHandle, **state: Any) -> dict[str, Any]:
    """A container status with this state."""
    return {"name": one.name, "containerID": f"fake://{one.id}", "state": state}


def pull(s: TraceBuilder, pod: PodHandle, image: str = "img:1", *, error: str | None = None) -> None:
    """PullImage."""
    request = {"image": {"image": image}, "sandbox_config": s.sandbox_config(pod)}
    s.call("PullImage", request, {"image_ref": f"sha256:{image}"}, error=error)


@detects("SYNC-01")
def test_status_is_older_than_the_sync(s: TraceBuilder, *, right: bool) -> None:
    """SYNC-01 breaks when a container is shown running before anybody read that it runs."""
    web = s.pod()
    c1 = s.create(web, s.run_sandbox(web))
    s.start(c1)
    if right:
        s.container_status(c1, state="CONTAINER_RUNNING")
    s.status(web, containerStatuses=[shown(c1, running={})])


WAITING = [{"name": "c1", "state": {"waiting": {"reason": "ContainerCreating"}}}]
RUNNING: list[dict[str, Any]] = [{"name": "c1", "state": {"running": {}}}]


@pytest.mark.parametrize("wrong", ["phase", "container", "time"])
@detects("SYNC-01")
def test_first_status_shows_nothing_done(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SYNC-01 breaks when a pod's first status is ahead of its first sync, or has no start time."""
    web = s.pod()
    s.status(web, "Pending")
    fields: dict[str, Any] = {"containerStatuses": WAITING, "startTime": START_TIME}
    if not right and wrong == "container":
        fields["containerStatuses"] = RUNNING
    elif not right and wrong == "time":
        fields |= {"startTime": None, "conditions": [{"type": "Ready", "status": "False"}]}
    s.status(web, "Running" if not right and wrong == "phase" else "Pending", **fields)


@detects("SYNC-01", is_away=(True, False))
def test_first_status_may_be_reported_late(s: TraceBuilder, *, is_away: bool) -> None:
    """SYNC-01: what could not be written to the API server is seen by nobody."""
    if is_away:
        outage(s)
    web = s.pod()
    c1 = s.run_container(web, s.run_sandbox(web))
    s.container_status(c1, state="CONTAINER_RUNNING")
    if is_away:
        heal(s.wait(10))
    s.status(web, "Running", startTime=START_TIME, containerStatuses=[shown(c1, running={})])


@detects("SYNC-01", again=(True, False))
def test_first_status_may_be_of_another_life(s: TraceBuilder, *, again: bool) -> None:
    """SYNC-01: what a kubelet did that was killed at once, the next one tells first."""
    web = s.pod()
    c1 = s.run_container(web, s.run_sandbox(web))
    s.container_status(c1, state="CONTAINER_RUNNING")
    if again:
        s.record("kubelet", op="killed")
        s.record("kubelet", op="started")
    s.status(web, "Running", startTime=START_TIME, containerStatuses=[shown(c1, running={})])


@detects("SYNC-03")
def test_collecting_an_old_sandbox_is_no_step(s: TraceBuilder, *, right: bool) -> None:
    """SYNC-03: an old sandbox that is empty may be stopped meanwhile, one with containers may not."""
    web = s.pod()
    old = s.run_sandbox(web)
    c1 = s.run_container(web, old)
    s.sandbox_died(old)
    s.stop_sandbox(old)
    if right:
        s.remove(c1)
    new = s.run_sandbox(web, attempt=1)
    s.begin("StopPodSandbox", {"pod_sandbox_id": old.id})
    s.run_container(web, new, attempt=1)


@pytest.mark.parametrize("after", ["sandbox", "image"])
@detects("SYNC-03")
def test_sync_goes_on(s: TraceBuilder, after: str, *, right: bool) -> None:
    """SYNC-03 breaks when nothing follows a new sandbox, or a pulled image."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    if after == "image":
        pull(s, web)
    s.wait(1 if right else 30).run_container(web, sandbox)


def test_obstacle_excuses_what_does_not_follow() -> None:
    """SYNC-03 owes no container that waits for its config."""
    s = TraceBuilder()
    web = s.pod()
    s.run_sandbox(web)
    waiting = {"name": "c1", "state": {"waiting": {"reason": "CreateContainerConfigError"}}}
    s.status(web, "Pending", containerStatuses=[waiting])

    assert s.judge("SYNC-03").verdict is Verdict.KEPT


@pytest.mark.parametrize("failing", [False, True])
@detects("SYNC-04")
def test_containers_come_in_spec_order(s: TraceBuilder, *, right: bool, failing: bool) -> None:
    """SYNC-04 breaks when the second container is made before the first one."""
    web = s.pod(containers=TWO)
    sandbox = s.run_sandbox(web)
    for name in ("c1", "c2") if right else ("c2", "c1"):
        if failing:
            s.create(web, sandbox, name, error="INTERNAL")
        else:
            s.run_container(web, sandbox, name)


@pytest.mark.parametrize("outcome", ["started", "not made", "not started", "not pulled"])
@detects("SYNC-04")
def test_next_container_is_tried(s: TraceBuilder, outcome: str, *, right: bool) -> None:
    """SYNC-04 breaks when a container is never tried, whatever became of the one before."""
    web = s.pod(containers=TWO)
    sandbox = s.run_sandbox(web)
    if outcome == "started":
        s.run_container(web, sandbox)
    elif outcome == "not made":
        s.create(web, sandbox, error="INTERNAL")
    elif outcome == "not started":
        s.start(s.create(web, sandbox), error="INTERNAL")
    else:
        pull(s, web, error="INTERNAL")
    if right:
        s.run_container(web, sandbox, "c2")


@pytest.mark.parametrize("wrong", ["unread", "none"])
@detects("SYNC-07")
def test_sandbox_is_read_first(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SYNC-07 breaks when a container is made before its sandbox was read, or was there at all."""
    web = s.pod()
    if right or wrong == "unread":
        sandbox = s.run_sandbox(web, read=right)
    else:
        sandbox = s.run_sandbox(web, error="INTERNAL")
    s.create(web, sandbox)


@pytest.mark.parametrize("wrong", ["container", "sandbox"])
@pytest.mark.parametrize("reported", [False, True])
@detects("SYNC-08")
def test_finished_pod_is_let_be(s: TraceBuilder, wrong: str, *, right: bool, reported: bool) -> None:
    """SYNC-08 breaks when something is made after the end of a pod, before or after it is reported."""
    web = s.pod(restartPolicy="Never")
    sandbox = s.run_sandbox(web)
    s.exited(s.run_container(web, sandbox))
    if right or reported:
        s.status(web, "Succeeded")
    if not right and wrong == "container":
        s.create(web, sandbox, attempt=1, error="INTERNAL")
    elif not right:
        s.run_sandbox(web, attempt=1)
    if not right and not reported:
        s.status(web, "Succeeded")


@pytest.mark.parametrize(
    ("api", "removed", "is_broken"), [("served", True, False), ("served", False, True), ("full", True, True)]
)
def test_end_without_a_record_is_forgotten(api: str, *, removed: bool, is_broken: bool) -> None:
    """SYNC-08: where no API server has its status, an ended pod is known by its records alone."""
    s = TraceBuilder(channels=FULL_CHANNELS | {"api": api})
    web = s.pod(restartPolicy="Never")
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.exited(c1)
    if removed:
        s.remove(c1)
    killed(s)
    started(s.wait(1))
    s.create(web, sandbox, attempt=1)
    s.status(web, "Succeeded")

    assert (s.judge("SYNC-08").verdict is Verdict.BROKEN) is is_broken


@detects("SANDBOX-08", if_right=Verdict.NOT_EXERCISED, ended=(True, False))
def test_sidecar_that_ended_with_its_pod_may_run_once_more(s: TraceBuilder, *, ended: bool) -> None:
    """SYNC-08, SANDBOX-08: while the last sidecar does not run, the pod is taken for one that begins."""
    sc = {"name": "sc", "image": "img:1", "restartPolicy": "Always"}
    web = s.pod(restartPolicy="Never", initContainers=[sc])
    sandbox = s.run_sandbox(web)
    sidecar, c1 = s.run_container(web, sandbox, "sc"), s.run_container(web, sandbox)
    if ended:
        s.exited(sidecar, 1)
    s.exited(c1)
    s.run_container(web, sandbox, "sc", 1)
    s.stop_sandbox(sandbox)
    s.status(web, "Succeeded")

    assert bool(s.judge("SYNC-08").breaks) is not ended


@pytest.mark.parametrize("read_first", [False, True])
@pytest.mark.parametrize("contract_id", ["SYNC-08", "SANDBOX-08"])
def test_sync_that_did_not_know_of_the_end_goes_on(contract_id: str, *, read_first: bool) -> None:
    """A sidecar is made again by the sync that began to kill it before the end of its pod was read."""
    s = TraceBuilder()
    inits = [{"name": "sc", "image": "img:1", "restartPolicy": "Always"}, {"name": "i1", "image": "img:1"}]
    web = s.pod(restartPolicy="Never", initContainers=inits)
    sandbox = s.run_sandbox(web)
    sidecar, i1 = s.run_container(web, sandbox, "sc"), s.run_container(web, sandbox, "i1")
    s.exited(i1)
    c1 = s.run_container(web, sandbox)
    s.wait(10).exited(c1, seen=read_first)
    stop = s.wait(1).begin("StopContainer", {"container_id": sidecar.id, "timeout": "30"})
    if not read_first:
        s.wait(1).container_status(c1, state="CONTAINER_EXITED")
    s.wait(2).exited(sidecar)
    s.end("StopContainer", stop, {})
    s.run_container(web, sandbox, "sc", 1)
    s.stop_sandbox(sandbox)
    s.status(web, "Succeeded")

    assert bool(s.judge(contract_id).breaks) is read_first


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("contract_id", ["SYNC-08", "SANDBOX-08", "TERM-21"])
def test_end_in_a_pre_stop_hook_is_none_of_its_own(contract_id: str, *, killed: bool) -> None:
    """What is killed for a change may end by itself in its preStop hook: the same sync makes it again."""
    s, web, sandbox, c1 = running(policy="OnFailure", lifecycle={"preStop": {"exec": {"command": ["bye"]}}})
    if killed:
        hook = s.begin("ExecSync", {"container_id": c1.id, "cmd": ["bye"]})
        s.exited(c1)
        s.end("ExecSync", hook, {"exit_code": 137})
        s.call("StopContainer", {"container_id": c1.id, "timeout": "29"}, {})
    else:
        s.exited(c1)
    second = s.run_container(web, sandbox, attempt=1)
    s.wait(20).exited(second)
    s.stop_sandbox(sandbox)
    s.status(web, "Succeeded")

    assert bool(s.judge(contract_id).breaks) is not killed


def network(s: TraceBuilder, *, ready: bool) -> None:
    """The runtime's status."""
    conditions = [{"type": "RuntimeReady", "status": True}, {"type": "NetworkReady", "status": ready}]
    s.call("Status", {}, {"status": {"conditions": conditions}})


@pytest.mark.parametrize("host", [False, True])
@detects("SYNC-09")
def test_pod_waits_for_the_network(s: TraceBuilder, *, right: bool, host: bool) -> None:
    """SYNC-09 breaks when a pod gets its sandbox while the network is not ready."""
    network(s, ready=False)
    web = s.pod(hostNetwork=host and right)
    s.wait(1)
    if right and not host:
        network(s, ready=True)
    s.run_sandbox(web)


@detects("SYNC-09", waits=(2, 12))
def test_pod_is_run_soon_after_the_network_is_ready(s: TraceBuilder, *, waits: float) -> None:
    """SYNC-09 breaks when a pod that was held back gets its sandbox late."""
    network(s, ready=False)
    web = s.wait(1).pod()
    s.record("event", uid=web.uid, type="Warning", reason="NetworkNotReady", message="", count=1)
    s.wait(1)
    network(s, ready=True)
    s.wait(waits).run_sandbox(web)
