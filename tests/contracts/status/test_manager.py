"""STATUS contracts: each is kept by a right trace and broken by a wrong one."""

from collections.abc import Sequence
from typing import Any

import pytest
from outside_world import create_mirror, file_pod, start_static
from pod_status import condition, end_of, ended, runs, tell_status, waits
from running import BROKEN, running
from trace_builder import FULL_CHANNELS, ContainerHandle, PodHandle, TraceBuilder
from twice import assert_detects, detects

IP: dict[str, Any] = {"podIP": "10.88.0.2", "podIPs": [{"ip": "10.88.0.2"}]}
OTHER_IP: dict[str, Any] = {"podIP": "10.88.0.9", "podIPs": [{"ip": "10.88.0.9"}]}
LATER = "2026-01-01T01:00:00Z"


def assert_second(
    contract_id: str,
    right: dict[str, Any],
    wrong: dict[str, Any],
    conditions: Sequence[dict[str, Any]] = (),
) -> None:
    """Two statuses of a pod: the right second one keeps the contract, the wrong one breaks it."""

    def tell(s: TraceBuilder, *, is_right: bool) -> None:
        pod = s.pod()
        tell_status(s, pod, "Running", [runs()], conditions=conditions)
        second: dict[str, Any] = {"apps": [ended(0)], "conditions": conditions}
        tell_status(s, pod, **(second | (right if is_right else wrong)))

    assert_detects(contract_id, lambda s, right: tell(s, is_right=right))


@pytest.mark.parametrize("wrong", [LATER, None])
def test_start_time_never_changes(wrong: str | None) -> None:
    """STATUS-08: startTime stays what it was."""
    assert_second("STATUS-08", {}, {"startTime": wrong})


@detects("STATUS-09")
def test_new_sandbox_moves_the_time_of_its_condition(s: TraceBuilder, *, right: bool) -> None:
    """STATUS-09: between two statuses the sandbox may have been gone; without a new one it was not."""
    pod = s.pod()
    ready_to_start = condition("PodReadyToStartContainers")
    tell_status(s, pod, "Running", [runs()], conditions=[condition("Ready"), ready_to_start])
    if right:
        s.run_sandbox(pod, 1)
    moved = ready_to_start | {"lastTransitionTime": LATER}
    tell_status(s, pod, "Running", [runs()], conditions=[condition("Ready"), moved])


@detects("STATUS-09", outage=(1.0, 5.0))
def test_status_that_was_held_up_is_older(s: TraceBuilder, outage: float) -> None:
    """STATUS-09: what could not be written is sent again a second later, whatever became of the sandbox."""
    pod = s.pod()
    ready_to_start = condition("PodReadyToStartContainers")
    tell_status(s, pod, "Running", [runs()], conditions=[ready_to_start])
    s.wait(5).record("fault", what="the API server is away")
    s.wait(20).record("fault", what="healed: the API server is back")
    s.run_sandbox(pod, 1)
    tell_status(s.wait(outage), pod, "Running", [runs(ready=False)], conditions=[ready_to_start])
    moved = ready_to_start | {"lastTransitionTime": LATER}
    tell_status(s, pod, "Running", [runs(ready=False)], conditions=[moved])


@detects("STATUS-09", code=(1, 0))
def test_results_of_a_probe_may_be_taken_up_together(s: TraceBuilder, code: int) -> None:
    """STATUS-09: a readiness probe that fails and succeeds again moves the time, though no status says so."""
    probe = {"exec": {"command": ["ready"]}, "failureThreshold": 1}
    web = s.pod(containers=[{"name": "c1", "image": "img:1", "readinessProbe": probe}])
    c1 = s.run_container(web, s.run_sandbox(web))
    asked = {"container_id": c1.id, "cmd": ["ready"], "timeout": "1"}
    s.call("ExecSync", asked)
    shown = runs(containerID=f"x://{c1.id}")
    tell_status(s, web, "Running", [shown], conditions=[condition("Ready")])
    for each in (code, 0):
        s.wait(10).call("ExecSync", asked, {"exit_code": each})
    moved = condition("Ready") | {"lastTransitionTime": LATER}
    tell_status(s, web, "Running", [shown], conditions=[moved])


@pytest.mark.parametrize(("api", "is_broken"), [("served", False), ("full", True)])
def test_polled_statuses_may_miss_a_flip(api: str, *, is_broken: bool) -> None:
    """STATUS-09: between two samples a condition may flip and come back."""
    s = TraceBuilder(channels=FULL_CHANNELS | {"api": api})
    pod = s.pod()
    tell_status(s, pod, "Running", [runs()], conditions=[condition("Ready")])
    moved = condition("Ready") | {"lastTransitionTime": LATER}
    tell_status(s, pod, "Running", [runs()], conditions=[moved])

    assert (s.judge("STATUS-09").verdict is BROKEN) is is_broken


@pytest.mark.parametrize("probed", [True, False])
def test_container_may_become_ready_just_before_its_end(*, probed: bool) -> None:
    """STATUS-09: what its readiness probe reported last is in no status, and moves the time."""
    s = TraceBuilder()
    probe = {"readinessProbe": {"exec": {"command": ["ready"]}}} if probed else {}
    pod = s.pod(containers=[{"name": "c1", "image": "img:1", **probe}], restartPolicy="Never")
    ready = condition("Ready", "False")
    tell_status(s, pod, "Running", [runs(ready=False)], conditions=[ready])
    tell_status(s, pod, "Succeeded", [ended(0)], conditions=[ready | {"lastTransitionTime": LATER}])

    assert (s.judge("STATUS-09").verdict is BROKEN) is not probed


@detects("STATUS-09", shown=(runs(), ended(0)))
def test_conditions_of_an_end_that_was_not_read_are_made_anew(s: TraceBuilder, shown: dict[str, Any]) -> None:
    """STATUS-09: where the final phase was written while a container ran, its end makes the times anew."""
    pod, ready = s.pod(), condition("Ready", "False")
    tell_status(s, pod, "Failed", [shown], conditions=[ready])
    tell_status(s, pod, "Failed", [ended(0)], conditions=[ready | {"lastTransitionTime": LATER}])


@detects("STATUS-09")
def test_forgotten_status_begins_with_what_the_mirror_reported(s: TraceBuilder, *, right: bool) -> None:
    """STATUS-09: a time goes back where the pod was forgotten with its file, and not before."""
    pod = s.pod("web-node-1", source="file", uid="static")
    s.run_sandbox(pod)
    later = condition("Ready") | {"lastTransitionTime": LATER}
    tell_status(s, pod, "Running", [runs()], conditions=[condition("Initialized"), later])
    if right:
        s.unset(pod)
    second = [condition("Initialized"), condition("Ready", "False")]
    tell_status(s, pod, "Running", [ended(0)], conditions=second)


@detects("STATUS-08", "STATUS-09")
def test_static_pod_that_is_back_begins_anew(s: TraceBuilder, *, right: bool) -> None:
    """STATUS-08, STATUS-09: what was reported in a former life is forgotten, but not in the middle of one."""
    pod = s.pod("web-node-1", source="file", uid="static")
    first = s.run_sandbox(pod)
    s.unset(pod)
    s.wait(1).set(pod)
    tell_status(s, pod, "Running", [ended(0)], conditions=[condition("Ready", "False")])
    s.stop_sandbox(first)
    if right:
        s.wait(5).run_sandbox(pod, 1)
    moved = condition("Ready", "False") | {"lastTransitionTime": LATER}
    for _ in range(2 if right else 1):
        tell_status(s, pod, "Running", [runs()], conditions=[moved], startTime=LATER)
    if not right:
        s.wait(5).run_sandbox(pod, 1)
        for start in (LATER, "2026-01-01T02:00:00Z"):
            moved = condition("Ready", "False") | {"lastTransitionTime": start}
            tell_status(s, pod, "Running", [runs()], conditions=[moved], startTime=start)


@detects("STATUS-08", "STATUS-09")
def test_mirror_that_was_made_anew_may_cost_the_status(s: TraceBuilder, *, right: bool) -> None:
    """STATUS-08, STATUS-09: a write that comes before the new mirror is taken for another pod's."""
    web = file_pod(s)
    create_mirror(s, web)
    start_static(s, web)
    tell_status(s, web, "Running", [runs()], conditions=[condition("Ready")])
    if right:
        s.record("deleted", uid="mirror")
        create_mirror(s, web, "another")
    moved = condition("Ready") | {"lastTransitionTime": LATER}
    tell_status(s, web, "Running", [runs()], conditions=[moved], startTime=LATER)


@pytest.mark.parametrize("contract_id", ["STATUS-08", "STATUS-09", "RESTARTKUBELET-11"])
def test_new_kubelet_knows_no_status_of_a_static_pod(contract_id: str) -> None:
    """STATUS-08, STATUS-09, RESTARTKUBELET-11: its manifest has none, and its mirror may come too late."""

    def tell(s: TraceBuilder, *, right: bool) -> None:
        web = file_pod(s) if right else s.pod()
        start_static(s, web)
        reported = {"conditions": [condition("Ready", "False")]}
        tell_status(s, web, "Running", [ended(0)], **reported)
        s.wait(5).record("kubelet", op="killed")
        s.record("kubelet", op="started")
        moved = {"conditions": [condition("Ready", "False") | {"lastTransitionTime": LATER}]}
        for _ in range(2):
            tell_status(s, web, "Running", [ended(0)], startTime=LATER, **moved)

    if contract_id == "RESTARTKUBELET-11":
        traces = [TraceBuilder(), TraceBuilder()]
        for right, s in zip((True, False), traces, strict=True):
            tell(s, right=right)
        assert [bool(s.judge(contract_id).breaks) for s in traces] == [False, True]
    else:
        assert_detects(contract_id, tell)


@detects("STATUS-09")
def test_pod_may_have_been_ready_between(s: TraceBuilder, *, right: bool) -> None:
    """STATUS-09: a sync may know that a probe succeeded before the loop tells it, which follows soon."""
    probe = {"exec": {"command": ["ready"]}}
    web = s.pod(containers=[{"name": "c1", "image": "img:1", "readinessProbe": probe}])
    unready = condition("Ready", "False")
    moved = {"lastTransitionTime": LATER}
    tell_status(s, web, "Running", [runs(ready=False)], conditions=[unready])
    tell_status(s, web, "Running", [runs(ready=False)], conditions=[unready | moved])
    if right:
        tell_status(s, web, "Running", [runs()], conditions=[condition("Ready") | moved])
    s.wait(60).stop_here()


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
@detects("STATUS-10")
def test_ended_container_stays_ended(s: TraceBuilder, policy: str, *, right: bool) -> None:
    """STATUS-10: what the policy never restarts does not run again."""
    pod = s.pod(restartPolicy=policy)
    tell_status(s, pod, "Running", [ended(0)])
    tell_status(s, pod, "Running", [ended(0) if right else runs()])


@detects("STATUS-12")
def test_messages_share_their_limit(s: TraceBuilder, *, right: bool) -> None:
    """STATUS-12: two containers have 6 KiB each."""
    text = "x" * (6144 if right else 6145)
    first = ended(1, state=end_of(None, 1, message=text))
    tell_status(s, s.pod(), "Running", [first, waits(name="c2")])


@pytest.mark.parametrize(
    "wrong",
    [OTHER_IP, {"podIP": "10.88.0.2"}, {"podIP": None}, IP | {"hostIP": None}, IP | {"qosClass": None}],
)
@detects("STATUS-16", begin=running)
def test_address_is_that_of_the_sandbox(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, wrong: dict[str, Any], *, right: bool
) -> None:
    """STATUS-16: podIP is what the runtime gave, hostIP and qosClass are there."""
    tell_status(s, web, "Running", [runs(c1)], **(IP if right else wrong))


@detects("STATUS-16", begin=running, is_missing=(True, False))
def test_host_is_unknown_without_the_nodes_object(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, *, is_missing: bool
) -> None:
    """STATUS-16: a kubelet that finds no object of its node writes no hostIP."""
    if is_missing:
        s.record("fault", what="the node's object is missing")
    addresses: dict[str, Any] = {**IP, "hostIP": None}
    tell_status(s, web, "Running", [runs(c1)], **addresses)


@detects("STATUS-16")
def test_address_may_be_missing_while_an_image_is_asked_for(s: TraceBuilder, *, right: bool) -> None:
    """STATUS-16: what is written while a sync waits for an image was known before its sandbox was."""
    web = s.pod()
    s.run_sandbox(web)
    asked = s.begin("ImageStatus", {"image": {"image": "img:1"}})
    tell_status(s.wait(1), web, "Pending", [waits()], **IP)
    s.wait(9)
    if not right:
        s.end("ImageStatus", asked, {})
        s.wait(1)
    tell_status(s, web, "Pending", [waits()])


@pytest.mark.parametrize("fails", [True, False])
@detects("STATUS-16")
def test_address_may_be_missing_while_no_relist_succeeds(
    s: TraceBuilder, *, right: bool, fails: bool
) -> None:
    """STATUS-16: the sync after the one that ran the sandbox waits until its pod could be read."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    read = s.begin("PodSandboxStatus", {"pod_sandbox_id": sandbox.id})
    tell_status(s.wait(9), web, "Pending", [waits()])
    s.end("PodSandboxStatus", read, error="UNAVAILABLE" if fails else None)
    tell_status(s.wait(2 if right else 9), web, "Pending", [waits(reason="ErrImagePull")])


@detects("STATUS-16")
def test_host_network_has_the_hosts_address(s: TraceBuilder, *, right: bool) -> None:
    """STATUS-16: a pod on the host's network has its IP."""
    ip = "192.0.2.2" if right else "10.88.0.2"
    tell_status(s, s.pod(hostNetwork=True), "Running", [runs()], podIP=ip, podIPs=[{"ip": ip}])


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_no_address_follows_while_an_end_is_final(policy: str) -> None:
    """STATUS-16: no status is written at all while what it says has ended for good runs again."""
    s = TraceBuilder()
    web = s.pod(restartPolicy=policy)
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(5).exited(c1, 0)
    s.sandbox_died(sandbox)
    second = s.run_sandbox(web, 1, read=False)
    s.sandbox_status(second, network={"ip": "10.88.0.9"})
    s.run_container(web, second, attempt=1)
    tell_status(s.wait(30), web, "Running", [ended(0, c1)], **IP)

    assert bool(s.judge("STATUS-16").breaks) is (policy == "Always")
