"""BACKOFF contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

SERIES = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0)
NOTICED = 0.5
"""How long after an end a trace's kubelet reads it."""


def pod(s: TraceBuilder, **more: Any) -> tuple[PodHandle, SandboxHandle]:
    """A pod of one container and its sandbox."""
    web = s.pod(**more)
    return web, s.run_sandbox(web)


def crashes(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, times: int, *, name: str = "c1", code: int = 1
) -> int:
    """The container crashes at once, again and again, and is made again when it may be; its next attempt."""
    for attempt in range(times):
        s.wait(SERIES[attempt - 1] if attempt else 0)
        s.exited(s.run_container(web, sandbox, name, attempt), code)
    return times


@pytest.mark.parametrize("crash", [2, 3, 4, 5, 6, 7, 8])
@detects("BACKOFF-01")
def test_delay_doubles_up_to_300_seconds(s: TraceBuilder, crash: int, *, right: bool) -> None:
    """BACKOFF-01 breaks when any restart of the series comes 2 s early."""
    web, sandbox = pod(s)
    attempt = crashes(s, web, sandbox, crash)
    s.wait(SERIES[crash - 1] - NOTICED - (0 if right else 2)).run_container(web, sandbox, attempt=attempt)


@pytest.mark.parametrize("gate", ["ReduceDefaultCrashLoopBackOffDecay", "KubeletCrashLoopBackOffMax"])
def test_other_figures_are_not_judged(gate: str) -> None:
    """Under a gate that changes the figures no delay is required."""
    s = TraceBuilder("1.33", featureGates={gate: True})
    web, sandbox = pod(s)
    attempt = crashes(s, web, sandbox, 2)
    s.wait(1).run_container(web, sandbox, attempt=attempt)

    assert s.judge("BACKOFF-01").verdict is Verdict.KEPT


@detects("BACKOFF-02")
def test_delay_counts_from_the_end(s: TraceBuilder, *, right: bool) -> None:
    """BACKOFF-02 breaks when the restart has not come with the first retry after the delay."""
    web, sandbox = pod(s)
    attempt = crashes(s, web, sandbox, 2)
    s.wait(24 if right else 40).run_container(web, sandbox, attempt=attempt)


@pytest.mark.parametrize(
    ("rpc", "verdict"),
    [("PullImage", Verdict.KEPT), ("ImageStatus", Verdict.KEPT), ("ListImages", Verdict.BROKEN)],
)
def test_attempt_without_an_image_may_have_counted(rpc: str, verdict: Verdict) -> None:
    """BACKOFF-02 allows for an attempt whose image was not found or pulled: the delay may have doubled."""
    s = TraceBuilder()
    web, sandbox = pod(s)
    attempt = crashes(s, web, sandbox, 2)
    request = {"image": {"image": "img:1"}}
    more = {"sandbox_config": sandbox.config} if rpc == "PullImage" else {}
    s.wait(12).call(rpc, {**request, **more} if rpc != "ListImages" else {}, error="UNKNOWN")
    s.wait(15).exited(s.run_container(web, sandbox, attempt=attempt), 1)
    s.wait(55).run_container(web, sandbox, attempt=attempt + 1)

    assert s.judge("BACKOFF-02").verdict is verdict


@detects("BACKOFF-01", if_right=Verdict.NOT_EXERCISED, killed=(True, False))
def test_what_was_killed_too_late_does_not_count(s: TraceBuilder, *, killed: bool) -> None:
    """BACKOFF-01: a kubelet that kills what has just exited has taken it to run, and counts no crash."""
    web, sandbox = pod(s)
    for attempt in range(3):
        one = s.wait(1).run_container(web, sandbox, attempt=attempt)
        s.wait(4).exited(one, 1)
        if killed:
            s.stop(one)


@detects("BACKOFF-03")
def test_long_run_begins_anew(s: TraceBuilder, *, right: bool) -> None:
    """BACKOFF-03 breaks when a container that ran for over 600 s still waits."""
    web, sandbox = pod(s)
    attempt = crashes(s, web, sandbox, 3)
    last = s.wait(20).run_container(web, sandbox, attempt=attempt)
    s.wait(601).exited(last, 1)
    s.wait(1 if right else 40).run_container(web, sandbox, attempt=attempt + 1)


@detects("BACKOFF-01", "RESTART-05", if_right=Verdict.NOT_EXERCISED, runs=(False, True))
def test_sidecars_come_first_where_no_app_runs(s: TraceBuilder, *, runs: bool) -> None:
    """BACKOFF-01, RESTART-05: the only app container waits for a sidecar that sits out its back-off."""
    sidecar = {"name": "s1", "image": "img:1", "restartPolicy": "Always"}
    web, sandbox = pod(s, initContainers=[sidecar])
    first = s.run_container(web, sandbox, "s1")
    c1 = s.run_container(web, sandbox)
    if not runs:
        s.exited(first, 1)
    s.wait(5).exited(c1, 1)
    s.wait(60).stop_here()


@pytest.mark.parametrize(
    ("runs", "wanted", "verdict"),
    [(2, "img:1", Verdict.KEPT), (1, "img:1", Verdict.BROKEN), (2, "img:3", Verdict.BROKEN)],
)
def test_image_that_is_back_may_be_held_up(runs: int, wanted: str, verdict: Verdict) -> None:
    """BACKOFF-05: what was made again before has a back-off of its own, though its records are gone."""
    s = TraceBuilder()
    web, sandbox = pod(s)
    made: list[ContainerHandle] = []
    for attempt, image in enumerate([*["img:1"] * runs, "img:2"]):
        web.manifest["spec"]["containers"][0]["image"] = image
        s.set(web)
        made.append(s.run_container(web, sandbox, attempt=attempt))
        s.exited(made[-1], 1)
        s.wait(1)
    for one in made[:-1]:
        s.remove(one)
    web.manifest["spec"]["containers"][0]["image"] = wanted
    s.set(web)
    s.wait(40).stop_here()

    assert s.judge("BACKOFF-05").verdict is verdict


@detects("BACKOFF-05", if_right=Verdict.NOT_EXERCISED, policy=("Never", None))
def test_new_image_that_may_not_be_pulled_is_not_owed(s: TraceBuilder, policy: str | None) -> None:
    """BACKOFF-05: with pull policy Never nothing shows whether the new image is there."""
    own = {"imagePullPolicy": policy} if policy else {}
    web, sandbox = pod(s, containers=[{"name": "c1", "image": "img:1", **own}])
    crashes(s, web, sandbox, 4)
    web.manifest["spec"]["containers"][0]["image"] = "img:2"
    s.set(web)
    s.wait(40).stop_here()


@pytest.mark.parametrize("wrong", ["lastState", "restartCount", "name", "delay"])
@detects("BACKOFF-06")
def test_refusal_is_reported(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """BACKOFF-06 breaks when the status of a held up container tells another end, count, name or delay."""
    web, sandbox = pod(s)
    ended = s.run_container(web, sandbox)
    s.exited(ended, 1)
    bad = "" if right else wrong
    reported = f"back-off {'15s' if bad == 'delay' else '10s'} restarting failed container="
    reported += f"{'c2' if bad == 'name' else 'c1'} pod={web.name}_{web.namespace}({web.uid})"
    last = {"terminated": {"exitCode": 1, "containerID": f"fake://{ended.id}"}}
    one = {
        "name": "c1",
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": reported}},
        "lastState": {} if bad == "lastState" else last,
        "restartCount": 1 if bad == "restartCount" else 0,
    }
    s.status(web, containerStatuses=[one])


@detects("BACKOFF-06", newer=(True, False))
def test_count_is_that_of_the_newest_record(s: TraceBuilder, *, newer: bool) -> None:
    """BACKOFF-06: a record that was made and never started counts, and lastState is of the one before it."""
    web, sandbox = pod(s)
    ended = s.run_container(web, sandbox)
    s.exited(ended, 1)
    second = s.create(web, sandbox, attempt=1)
    message = f"back-off 10s restarting failed container=c1 pod={web.name}_{web.namespace}({web.uid})"
    one = {
        "name": "c1",
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": message}},
        "lastState": {"terminated": {"exitCode": 1, "containerID": f"fake://{ended.id}"}},
        "restartCount": 1,
        "containerID": f"fake://{second.id if newer else ended.id}",
    }
    s.status(web, containerStatuses=[one])


@detects("BACKOFF-06", kubernetes="1.36", count=(1, 0))
def test_count_is_that_of_what_was_reported(s: TraceBuilder, count: int) -> None:
    """BACKOFF-06: from 1.36 on an instance in a new sandbox may count more restarts than its attempt."""
    web, sandbox = pod(s)
    ended = s.run_container(web, sandbox)
    ids = {"name": "c1", "containerID": f"fake://{ended.id}"}
    s.status(web, containerStatuses=[{**ids, "state": {"running": {}}, "restartCount": 1}])
    s.exited(ended, 1)
    message = f"back-off 10s restarting failed container=c1 pod={web.name}_{web.namespace}({web.uid})"
    one = {
        **ids,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": message}},
        "lastState": {"terminated": {"exitCode": 1, "containerID": ids["containerID"]}},
        "restartCount": count,
    }
    s.status(web, containerStatuses=[one])


@detects("BACKOFF-08", if_right=Verdict.NOT_EXERCISED, died=(True, False))
def test_init_containers_come_first_in_another_sandbox(s: TraceBuilder, *, died: bool) -> None:
    """BACKOFF-08: where its sandbox is no more an app container waits for the init containers."""
    web, sandbox = pod(s, initContainers=[{"name": "i1", "image": "img:1"}])
    s.exited(s.run_container(web, sandbox, "i1"), 0)
    attempt = crashes(s, web, sandbox, 6)
    s.record("kubelet", op="killed")
    if died:
        s.sandbox_died(sandbox)
    s.wait(1).record("kubelet", op="started")
    s.wait(130).run_container(web, sandbox, attempt=attempt)


@pytest.mark.parametrize("first", ["c1", "s1"])
@detects("BACKOFF-02", if_right=Verdict.NOT_EXERCISED, code=(0, 1))
def test_sidecar_goes_with_a_pod_that_is_over(s: TraceBuilder, first: str, code: int) -> None:
    """BACKOFF-02: a sidecar is not made again where the last app container has ended for good, soon after."""
    sidecar = {"name": "s1", "image": "img:1", "restartPolicy": "Always"}
    web, sandbox = pod(s, initContainers=[sidecar], restartPolicy="OnFailure")
    s1 = s.run_container(web, sandbox, "s1")
    c1 = s.run_container(web, sandbox)
    s.wait(1).exited(s1, 1)
    both = {"s1": s.run_container(web, sandbox, "s1", attempt=1), "c1": c1}
    s.wait(5)
    ends = both.pop(first), both.popitem()[1]
    for one in ends:
        s.exited(one, code if one is c1 else 1)
    s.wait(60).stop_here()


@detects("BACKOFF-02", if_right=Verdict.NOT_EXERCISED, policy=("Never", "OnFailure"))
def test_sidecar_goes_with_a_pod_whose_init_container_failed(s: TraceBuilder, policy: str) -> None:
    """BACKOFF-02: a sidecar is not made again where an init container has failed for good, soon after."""
    sidecar = {"name": "s1", "image": "img:1", "restartPolicy": "Always"}
    init = [sidecar, {"name": "i2", "image": "img:1"}]
    web, sandbox = pod(s, initContainers=init, restartPolicy=policy)
    s.wait(1).exited(s.run_container(web, sandbox, "s1"), 1)
    s1 = s.run_container(web, sandbox, "s1", attempt=1)
    i2 = s.run_container(web, sandbox, "i2")
    s.wait(5).exited(s1, 1)
    s.wait(1).exited(i2, 1)
    s.wait(60).stop_here()


@detects("BACKOFF-05", if_right=Verdict.NOT_EXERCISED, failed=(True, False))
def test_image_that_another_could_not_pull_is_not_owed(s: TraceBuilder, *, failed: bool) -> None:
    """BACKOFF-05: the back-off of a pull is by the pod and the image, whichever container it was for."""
    names = {"c1": "img:1", "c2": "img:2"}
    web, sandbox = pod(s, containers=[{"name": name, "image": image} for name, image in names.items()])
    if failed:
        s.call(
            "PullImage",
            {"image": {"image": "img:2"}, "sandbox_config": sandbox.config},
            {},
            error="NOT_FOUND",
        )
    crashes(s, web, sandbox, 4)
    web.manifest["spec"]["containers"][0]["image"] = "img:2"
    s.set(web)
    s.wait(40).stop_here()
