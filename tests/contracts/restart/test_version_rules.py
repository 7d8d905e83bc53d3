"""Rules that hold from one version on: what is right for one of two versions is wrong for the other."""

from typing import Any

import pytest
from node_pressure import CRITICAL, configured_node, run, shut_down, stop
from outside_world import api_write, event
from pod_status import condition, tell_status
from running import BROKEN, KEPT, running
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

NOT_EXERCISED = Verdict.NOT_EXERCISED
HASH = "io.kubernetes.container.hash"


def create(s: TraceBuilder, name: str, command: str, reported: str) -> None:
    """A pod whose container c1 of img:1 runs a command, with this hash."""
    web = s.pod(name, containers=[{"name": "c1", "image": "img:1", "command": [command]}])
    config = s.container_config(web, "c1")
    config["annotations"] |= {HASH: reported}
    s.create(web, s.run_sandbox(web), config=config)


@pytest.mark.parametrize(
    ("version", "hashes", "verdict"),
    [
        ("1.30", ("aa", "bb"), KEPT),
        ("1.30", ("aa", "aa"), BROKEN),
        ("1.31", ("aa", "aa"), KEPT),
        ("1.31", ("aa", "bb"), BROKEN),
    ],
)
def test_what_a_hash_covers(version: str, hashes: tuple[str, str], verdict: Verdict) -> None:
    """RESTART-08: up to 1.30 another command is another hash, from 1.31 on it is not."""
    s = TraceBuilder(version)
    create(s, "one", "run", hashes[0])
    create(s, "two", "walk", hashes[1])

    assert s.judge("RESTART-08").verdict is verdict


def test_hash_of_one_definition_says_nothing() -> None:
    """RESTART-08: up to 1.30 two containers that run the same may have one hash or two."""
    s = TraceBuilder("1.26")
    create(s, "one", "run", "aa")
    create(s, "two", "run", "aa")

    assert s.judge("RESTART-08").verdict is NOT_EXERCISED


READY: dict[str, Any] = {"readinessProbe": {"exec": {"command": ["ready"]}, "periodSeconds": 20}}


@pytest.mark.parametrize(
    ("version", "gap", "verdict"),
    [("1.32", 20, KEPT), ("1.32", 9, BROKEN), ("1.32", 0.2, NOT_EXERCISED), ("1.31", 9, NOT_EXERCISED)],
)
def test_run_out_of_turn_begins_the_period_anew(version: str, gap: float, verdict: Verdict) -> None:
    """PROBE-23: from 1.32 on what is ready is probed again a period later, or at once if so asked."""
    s, _, _, c1 = running(version, **READY)
    for wait in (0, gap):
        s.wait(wait).call("ExecSync", {"container_id": c1.id, "cmd": ["ready"], "timeout": "1"}, {})
    s.stop_here()

    assert s.judge("PROBE-23").verdict is verdict


def test_what_is_not_ready_may_be_probed_at_any_time() -> None:
    """PROBE-23: each sync may have a readiness probe run that has not succeeded."""
    s, _, _, c1 = running(**READY)
    for wait in (0, 3, 9):
        s.wait(wait).call(
            "ExecSync", {"container_id": c1.id, "cmd": ["ready"], "timeout": "1"}, {"exit_code": 1}
        )
    s.stop_here()

    assert s.judge("PROBE-23").verdict is NOT_EXERCISED


@pytest.mark.parametrize(
    ("version", "looks", "verdict"),
    [("1.34", 3, KEPT), ("1.34", 1, BROKEN), ("1.35", 1, NOT_EXERCISED)],
)
def test_looks_at_a_crash_loop_are_reported(version: str, looks: int, verdict: Verdict) -> None:
    """WORK-16: up to 1.34 a pod is looked at all through its back-off, which events tell."""
    s, web, sandbox, c1 = running(version)
    s.exited(c1, 1)
    for _ in range(looks):
        event(s, web, "BackOff", "c1", kind="Warning")
        s.wait(12)
    s.wait(36 - 12 * looks).run_container(web, sandbox, "c1", 1)
    s.stop_here()

    assert s.judge("WORK-16").verdict is verdict


def test_looks_may_be_untold_where_events_are_limited() -> None:
    """WORK-16: a channel that holds events back shows nothing of the kind."""
    s, web, sandbox, c1 = running("1.32")
    s.header["channels"] = {**s.header["channels"], "events": "limited"}
    s.exited(c1, 1)
    event(s, web, "BackOff", "c1", kind="Warning")
    s.wait(36).run_container(web, sandbox, "c1", 1)
    s.stop_here()

    assert s.judge("WORK-16").verdict is NOT_EXERCISED


@pytest.mark.parametrize(
    ("version", "addresses", "verdict"),
    [
        ("1.30", [{"ip": "192.0.2.2"}], KEPT),
        ("1.30", [], BROKEN),
        ("1.30", [{"ip": "192.0.2.9"}], BROKEN),
        ("1.29", [], NOT_EXERCISED),
    ],
)
def test_host_has_its_addresses(version: str, addresses: list[dict[str, str]], verdict: Verdict) -> None:
    """STATUS-16: from 1.30 on hostIPs is written with hostIP, whatever the API server keeps of it."""
    s = TraceBuilder(version)
    web = s.pod()
    reported = {"hostIP": "192.0.2.2"} | ({"hostIPs": addresses} if addresses else {})
    api_write(
        s, "patch", web.uid, subresource="status", body={"metadata": {"uid": web.uid}, "status": reported}
    )

    assert s.judge("STATUS-16").verdict is verdict


@pytest.mark.parametrize(
    ("version", "written", "verdict"),
    [("1.27", True, KEPT), ("1.27", False, BROKEN), ("1.26", False, KEPT), ("1.26", True, BROKEN)],
)
def test_pod_sent_as_ended_is_synced_once(version: str, *, written: bool, verdict: Verdict) -> None:
    """WORK-29: from 1.27 on a kubelet that starts completes the status of a pod that had ended.

    Before, it writes none.
    """
    s = TraceBuilder(version)
    s.record("kubelet", op="killed")
    job = s.pod("job")
    job.manifest["status"] = {"phase": "Succeeded"}
    s.set(job)
    s.record("kubelet", op="started")
    if written:
        tell_status(s.wait(2), job, "Succeeded", conditions=[condition("Ready", "False", "PodCompleted")])
    s.wait(60).stop_here()

    assert s.judge("WORK-29").verdict is verdict


@pytest.mark.parametrize(("restarted", "verdict"), [(False, NOT_EXERCISED), (True, BROKEN)])
def test_pod_ends_under_way_or_before_it_is_first_seen(*, restarted: bool, verdict: Verdict) -> None:
    """WORK-29: what was begun when another writer ended a pod is not held against the kubelet."""
    s = TraceBuilder("1.36")
    web = s.pod()
    sandbox = s.run_sandbox(web)
    web.manifest["status"] = {"phase": "Failed"}
    s.set(web)
    if restarted:
        s.record("kubelet", op="killed")
        s.record("kubelet", op="started")
    s.run_container(web, sandbox)
    s.stop_here()

    assert s.judge("WORK-29").verdict is verdict


@pytest.mark.parametrize(
    ("version", "replaced", "verdict"),
    [("1.27", True, KEPT), ("1.27", False, BROKEN), ("1.26", False, NOT_EXERCISED)],
)
def test_what_never_ran_has_not_succeeded(version: str, *, replaced: bool, verdict: Verdict) -> None:
    """SANDBOX-07: from 1.27 on a container that was made and never ran is left to run."""
    s = TraceBuilder(version)
    job = s.pod("job", restartPolicy="OnFailure")
    sandbox = s.run_sandbox(job)
    s.start(s.create(job, sandbox), error="INTERNAL")
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    if replaced:
        s.run_sandbox(job, 1)

    assert s.judge("SANDBOX-07").verdict is verdict


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("version", ["1.26", "1.32"])
def test_failed_container_is_left_to_run(version: str, *, replaced: bool) -> None:
    """SANDBOX-07: in every version a pod of which something has failed gets another sandbox."""
    s, job, sandbox, c1 = running(version, policy="OnFailure")
    s.exited(c1, 1)
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    if replaced:
        s.run_sandbox(job, 1)

    assert s.judge("SANDBOX-07").verdict is (KEPT if replaced else BROKEN)


GRACEFUL = {"shutdownGracePeriod": "1m0s", "shutdownGracePeriodCriticalPods": "20s"}


@pytest.mark.parametrize("waits", [1, 40])
@pytest.mark.parametrize("version", ["1.31", "1.32"])
def test_next_group_waits_for_volumes(version: str, waits: int) -> None:
    """SHUT-03: from 1.32 on a volume that stays holds the next group up till the time of its own is over."""
    s = configured_node(version, **GRACEFUL)
    volumes: list[dict[str, Any]] = [{"name": "cache", "emptyDir": {}}]
    system, web = run(s, "system", priority=CRITICAL), run(s, volumes=volumes)
    s.record("fault", what=f"the disk fails at /var/lib/kubelet/pods/{web.pod.uid}/volumes")
    shut_down(s)
    stop(s, web, 30)
    s.wait(waits)
    stop(s, system, 20)
    s.stop_here()

    is_right = (waits == 1) is (version == "1.31")
    assert s.judge("SHUT-03").verdict is (KEPT if is_right else BROKEN)


@detects("PLEG-14", begin=lambda: TraceBuilder(featureGates={"EventedPLEG": True}), opened=(True, False))
def test_stream_is_opened(s: TraceBuilder, *, opened: bool) -> None:
    """PLEG-14: a kubelet with the gate hears the runtime's events."""
    if opened:
        s.record("call", rpc="GetContainerEvents", id="stream", request={})
    s.wait(60)


def shows_an_image(s: TraceBuilder) -> PodHandle:
    """A pod with a volume that shows data:1."""
    reads = {"name": "c1", "image": "img:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    return s.pod(containers=[reads], volumes=[{"name": "data", "image": {"reference": "data:1"}}])


@detects(
    "IMAGE-20", begin=lambda: TraceBuilder(featureGates={"ImageVolume": True}), image=("data:1", "img:1")
)
def test_shown_image_is_asked_for(s: TraceBuilder, image: str) -> None:
    """IMAGE-20: the image of a volume is asked for as that of a container is."""
    s.run_sandbox(shows_an_image(s))
    s.call("ImageStatus", {"image": {"image": image}}, {})


@detects(
    "SYNC-18", begin=lambda: TraceBuilder(featureGates={"DynamicResourceAllocation": True}), met=(True, False)
)
def test_preparation_may_be_awaited(s: TraceBuilder, *, met: bool) -> None:
    """SYNC-18: who knows that there is a plugin says so by a wait."""
    s.record("expect", contract="SYNC-18", awaited="its claim is prepared", by=s.now, met=met)


@detects("PROBE-16", met=(True, False))
def test_readiness_by_status_may_be_awaited(s: TraceBuilder, *, met: bool) -> None:
    """PROBE-16: who knows what servers answer says so by a wait."""
    s.record("expect", contract="PROBE-16", awaited="all are ready", by=s.now, met=met)
