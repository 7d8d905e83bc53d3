"""COND contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from pod_status import again, condition, end_of, ended, runs, tell_status, waits
from running import BROKEN, KEPT
from trace_builder import FULL_CHANNELS, TraceBuilder
from twice import assert_detects, detects

from kubelet_conformance.contract.verdicts import Verdict

INITS = [{"name": "i1", "image": "img:1"}, {"name": "i2", "image": "img:1"}]
SIDECAR = [{"name": "i1", "image": "img:1", "restartPolicy": "Always"}]
DONE, GOES_ON = ended(0, name="i1", ready=True), waits(name="i2")
UNREADY = "containers with unready status: [c1]"


def assert_condition(
    contract_id: str,
    apps: list[dict[str, Any]],
    right: list[dict[str, Any]],
    wrong: list[dict[str, Any]],
    *,
    kubernetes: str = "1.32",
    phase: str = "Running",
    inits: list[dict[str, Any]] | None = None,
    **spec: Any,
) -> None:
    """A status with these containers: the right conditions keep the contract, the wrong ones break it."""

    def tell(s: TraceBuilder, *, is_right: bool) -> None:
        conditions = right if is_right else wrong
        tell_status(s, s.pod(**spec), phase, apps, inits=inits or [], conditions=conditions)

    assert_detects(contract_id, lambda s, right: tell(s, is_right=right), kubernetes=kubernetes)


NAMES_LEFT = condition(
    "Initialized", "False", "ContainersNotInitialized", "containers with incomplete status: [i2]"
)


@pytest.mark.parametrize(("kubernetes", "stays"), [("1.26", False), ("1.32", True)])
def test_started_app_proves_initialization(kubernetes: str, *, stays: bool) -> None:
    """COND-02: since 1.28 an app container that has started is enough."""
    inits = [DONE, GOES_ON]
    options = [[condition("Initialized")], [NAMES_LEFT]]
    right, wrong = options if stays else options[::-1]
    assert_condition(
        "COND-02", [runs()], right, wrong, kubernetes=kubernetes, inits=inits, initContainers=INITS
    )


@pytest.mark.parametrize(
    ("kubernetes", "restarts", "stays"), [("1.35", False, False), ("1.36", False, True), ("1.36", True, None)]
)
@pytest.mark.parametrize("contract_id", ["COND-02", "INIT-15"])
def test_pod_that_was_initialized_stays_so(
    contract_id: str, kubernetes: str, *, restarts: bool, stays: bool | None
) -> None:
    """COND-02, INIT-15: from 1.36 on, unless a new kubelet cannot know that it was initialized."""
    for told in (True, False):
        s = TraceBuilder(kubernetes)
        web = s.pod("web-node-1", source="file", uid="static", initContainers=INITS)
        s.run_sandbox(web)
        tell_status(
            s,
            web,
            "Pending",
            inits=[DONE, ended(0, name="i2", ready=True)],
            conditions=[condition("Initialized")],
        )
        if restarts:
            s.wait(1).record("kubelet", op="killed")
            s.record("kubelet", op="started")
        tell_status(
            s,
            web,
            "Pending",
            inits=[DONE, GOES_ON],
            conditions=[condition("Initialized") if told else NAMES_LEFT],
        )

        assert bool(s.judge(contract_id).breaks) is (stays is not None and told is not stays)


@pytest.mark.parametrize("contract_id", ["COND-02", "INIT-15"])
@pytest.mark.parametrize(("api", "code", "breaks"), [("served", 0, 0), ("served", 1, 1), ("full", 0, 1)])
def test_pod_may_have_been_initialized_between_two_polls(
    contract_id: str, api: str, code: int, breaks: int
) -> None:
    """COND-02, INIT-15: where each init container that runs again ended with 0, and statuses are polled."""
    s = TraceBuilder("1.36", channels={**FULL_CHANNELS, "api": api})
    web = s.pod(initContainers=INITS[:1])
    i1 = s.run_container(web, s.run_sandbox(web), "i1")
    entry = runs(i1, ready=False, lastState=end_of(None, code))
    tell_status(s, web, "Pending", inits=[entry], conditions=[condition("Initialized")])

    assert s.judge(contract_id).breaks == breaks


def test_app_that_waited_proves_nothing_at_the_end() -> None:
    """COND-02: what waits in back-off is reported as lost with its pod, and Initialized stays as it was."""
    s = TraceBuilder()
    web = s.pod(initContainers=SIDECAR)
    unready = condition(
        "Initialized", "False", "ContainersNotInitialized", "containers with incomplete status: [i1]"
    )
    s.run_container(web, s.run_sandbox(web))
    tell_status(s, web, "Running", [again(0)], inits=[ended(0, name="i1")], conditions=[unready])
    lost = ended(137)
    lost["state"]["terminated"]["reason"] = "ContainerStatusUnknown"
    tell_status(s, web, "Running", [lost], inits=[ended(0, name="i1")], conditions=[unready])

    assert s.judge("COND-02").verdict is KEPT


@pytest.mark.parametrize("waited", [True, False])
def test_pod_that_ended_has_failed_only_by_what_ran(*, waited: bool) -> None:
    """COND-03: what never ran is reported as lost with its pod, and ContainersReady stays as it was."""
    s = TraceBuilder()
    web = s.pod(restartPolicy="Never")
    s.run_container(web, s.run_sandbox(web))
    unready = condition("ContainersReady", "False", "ContainersNotReady", UNREADY)
    before = waits("CreateContainerError") if waited else runs(ready=False)
    tell_status(s, web, "Pending", [before], conditions=[unready])
    lost = ended(137)
    lost["state"]["terminated"]["reason"] = "ContainerStatusUnknown"
    tell_status(s, web, "Pending", [lost], conditions=[unready])

    assert s.judge("COND-03").verdict is (KEPT if waited else BROKEN)


@pytest.mark.parametrize(("api", "breaks"), [("served", False), ("full", True)])
def test_status_of_a_waiting_container_may_be_missed(api: str, *, breaks: bool) -> None:
    """COND-03: where statuses are sampled, none before the pod's end need have shown the container."""
    s = TraceBuilder(channels=FULL_CHANNELS | {"api": api})
    web = s.pod(restartPolicy="Never")
    s.run_container(web, s.run_sandbox(web))
    unready = condition("ContainersReady", "False", "ContainersNotReady", UNREADY)
    lost = ended(137)
    lost["state"]["terminated"]["reason"] = "ContainerStatusUnknown"
    tell_status(s, web, "Pending", [lost], conditions=[unready])

    assert bool(s.judge("COND-03").breaks) is breaks


@pytest.mark.parametrize(
    ("apps", "phase", "right", "wrong"),
    [
        ([runs()], "Running", condition("ContainersReady"), condition("ContainersReady", "False")),
        (
            [ended(1)],
            "Failed",
            condition("ContainersReady", "False", "PodFailed"),
            condition("ContainersReady", "False", "ContainersNotReady", UNREADY),
        ),
        (
            [runs(ready=False)],
            "Running",
            condition("ContainersReady", "False", "ContainersNotReady", UNREADY),
            condition("ContainersReady"),
        ),
    ],
)
def test_containers_ready_follows_the_containers(
    apps: list[dict[str, Any]], phase: str, right: dict[str, Any], wrong: dict[str, Any]
) -> None:
    """COND-03: every app container has to be ready, and a failed pod says so."""
    assert_condition("COND-03", apps, [right], [wrong], phase=phase, restartPolicy="Never")


@detects("COND-02", "SIDECAR-17")
def test_start_of_a_sidecar_is_reported_after_what_follows_from_it(s: TraceBuilder, *, right: bool) -> None:
    """A sync may know of a startup probe's success before the loop tells `started`, but not for long."""
    probe = {"tcpSocket": {"port": 8080}}
    web = s.pod(initContainers=[SIDECAR[0] | {"startupProbe": probe}])
    for started in (False, right):
        inits = [runs(name="i1", ready=False, started=started)]
        tell_status(s, web, "Pending", [waits()], inits=inits, conditions=[condition("Initialized")])
        s.wait(1)
    s.wait(10)


@detects("COND-02", later=(1, 10))
def test_initialized_follows_with_the_next_sync(s: TraceBuilder, later: int) -> None:
    """COND-02: until the next sync, which comes soon, several probes' results may be reported one by one."""
    web = s.pod(initContainers=SIDECAR)
    text = "containers with incomplete status: [i1]"
    waiting = [condition("Initialized", "False", "ContainersNotInitialized", text)]
    for started, ready in ((False, False), (True, False), (True, True)):
        inits = [runs(name="i1", ready=ready, started=started)]
        tell_status(s, web, "Pending", [waits()], inits=inits, conditions=waiting)
        s.wait(later)


@detects("COND-03", begin=lambda: TraceBuilder(started="2026-01-01T00:00:00.900Z"), after=(5.2, 5.0))
def test_deadline_counts_from_the_fraction_of_a_second(s: TraceBuilder, after: float) -> None:
    """COND-03: past its deadline a pod that still runs is not ready, by the trace's clock to the fraction."""
    web = s.pod(activeDeadlineSeconds=5)
    failed = condition("ContainersReady", "False", "PodFailed")
    start = "2026-01-01T00:00:01Z"
    tell_status(s.wait(after), web, "Running", [runs()], conditions=[failed], startTime=start)


@detects("COND-03", phase=("Failed", "Running"))
def test_phase_that_was_sent_once_counts_to_the_end(s: TraceBuilder, phase: str) -> None:
    """COND-03: a pod that another client has ended is Failed to its worker, whatever was sent since."""
    web = s.pod()
    for sent in (phase, "Running"):
        web.manifest["status"] = {"phase": sent}
        s.set(web)
    failed = condition("ContainersReady", "False", "PodFailed")
    tell_status(s, web, "Failed", [ended(0)], conditions=[failed])


READY = [condition("ContainersReady"), condition("Ready")]
SHUT = [condition("ContainersReady"), condition("Ready", "False", "ReadinessGatesNotReady", "gate")]
GATES: dict[str, Any] = {"readinessGates": [{"conditionType": "example.com/up"}]}


@pytest.mark.parametrize(
    ("gate", "right", "wrong"),
    [
        ([], SHUT, READY),
        ([condition("example.com/up", "False")], SHUT, READY),
        ([condition("example.com/up")], READY, SHUT),
    ],
)
def test_ready_needs_every_gate(
    gate: list[dict[str, Any]], right: list[dict[str, Any]], wrong: list[dict[str, Any]]
) -> None:
    """COND-04: a missing or False gate keeps the pod from being Ready."""
    assert_condition("COND-04", [runs()], right + gate, wrong + gate, **GATES)


def ready_to_start(s: TraceBuilder, pod: Any, apps: list[dict[str, Any]], *, value: bool) -> None:
    """A status with the condition under test."""
    tell_status(s, pod, "Running", apps, conditions=[condition("PodReadyToStartContainers", str(value))])


@detects("COND-06")
def test_not_ready_to_start_without_sandbox(s: TraceBuilder, *, right: bool) -> None:
    """COND-06: the condition is False before a sandbox was run."""
    ready_to_start(s, s.pod(), [waits()], value=not right)


@detects("COND-06")
def test_not_ready_to_start_after_the_sandbox_is_gone(s: TraceBuilder, *, right: bool) -> None:
    """COND-06: the condition does not stay True."""
    pod = s.pod()
    sandbox = s.run_sandbox(pod)
    c1 = s.run_container(pod, sandbox)
    s.stop_sandbox(sandbox)
    s.wait(30)
    s.sandbox_status(sandbox, state="SANDBOX_NOTREADY")
    ready_to_start(s, pod, [ended(0, c1)], value=not right)


@detects("COND-06")
def test_stop_that_failed_may_have_taken_place(s: TraceBuilder, *, right: bool) -> None:
    """COND-06: after a stop that failed the sandbox may be gone; once it is read as ready it is not."""
    pod = s.pod()
    sandbox = s.run_sandbox(pod)
    c1 = s.run_container(pod, sandbox)
    s.stop_sandbox(sandbox, error="DEADLINE_EXCEEDED")
    if not right:
        s.wait(1).sandbox_status(sandbox)
    ready_to_start(s, pod, [runs(c1)], value=False)


@detects("COND-06", waits=(True, False))
def test_sandbox_is_reported_as_before_while_the_worker_waits(s: TraceBuilder, *, waits: bool) -> None:
    """COND-06: a sync that waits for news of an image has not looked at the sandbox since."""
    pod = s.pod()
    sandbox = s.run_sandbox(pod)
    c1 = s.run_container(pod, sandbox)
    looked = s.begin("ImageStatus", {"image": {"image": "img:1"}})
    if not waits:
        s.end("ImageStatus", looked, {})
    s.sandbox_died(sandbox)
    s.sandbox_status(sandbox, state="SANDBOX_NOTREADY")
    s.wait(20)
    ready_to_start(s, pod, [ended(0, c1)], value=True)


@detects("COND-06", inspects=(False, True))
def test_sandbox_that_cannot_be_inspected(s: TraceBuilder, *, inspects: bool) -> None:
    """COND-06: a kubelet that cannot look at a dead sandbox tells what it has known of it."""
    pod = s.pod()
    sandbox = s.run_sandbox(pod)
    c1 = s.run_container(pod, sandbox)
    s.wait(1).record("runtime", op="sandbox-died", sandbox_id=sandbox.id)
    s.wait(30)
    if inspects:
        s.sandbox_status(sandbox, state="SANDBOX_NOTREADY")
    ready_to_start(s, pod, [ended(0, c1)], value=True)


@pytest.mark.parametrize(
    ("kubernetes", "when", "verdict"),
    [("1.32", "pull", BROKEN), ("1.32", "after", KEPT), ("1.36", "pull", KEPT), ("1.36", "after", BROKEN)],
)
def test_new_sandbox_is_reported(kubernetes: str, when: str, verdict: Verdict) -> None:
    """COND-07: up to 1.35 a new sandbox is reported after the pull, from 1.36 on before it."""
    s = TraceBuilder(kubernetes)
    pod = s.pod()
    tell_status(s, pod, "Pending", [waits()], conditions=[condition("PodReadyToStartContainers", "False")])
    s.run_sandbox(pod)
    pull = s.begin("PullImage", {"image": {"image": "img:1"}, "sandbox_config": s.sandbox_config(pod)})
    s.wait(1)
    if when == "pull":
        tell_status(s, pod, "Pending", [waits()], conditions=[condition("PodReadyToStartContainers")])
    s.wait(30).end("PullImage", pull, {"image_ref": "sha256:img:1"})
    tell_status(s, pod, "Pending", [waits()], conditions=[condition("PodReadyToStartContainers")])
    s.wait(1).call("ListContainers", {}, {})

    assert s.judge("COND-07").verdict is verdict


@pytest.mark.parametrize(
    ("since", "verdict"), [("", BROKEN), ("a failed pull", KEPT), ("a restart of the kubelet", KEPT)]
)
def test_later_sync_tells_a_sandbox_while_it_pulls(since: str, verdict: Verdict) -> None:
    """COND-07: a sync that has found the sandbox tells of it, though it pulls an image, too."""
    s = TraceBuilder()
    pod = s.pod()
    tell_status(s, pod, "Pending", [waits()], conditions=[condition("PodReadyToStartContainers", "False")])
    s.run_sandbox(pod)
    asked = {"image": {"image": "img:1"}, "sandbox_config": s.sandbox_config(pod)}
    if since == "a failed pull":
        s.call("PullImage", asked, error="INTERNAL")
    elif since:
        s.begin("PullImage", asked)
        s.record("kubelet", op="killed")
        s.record("kubelet", op="started")
    s.wait(11).begin("PullImage", asked)
    tell_status(s, pod, "Pending", [waits()], conditions=[condition("PodReadyToStartContainers")])

    assert s.judge("COND-07").verdict is verdict


@detects("COND-06", said=("False", "True"))
def test_not_ready_to_start_in_the_end(s: TraceBuilder, said: str) -> None:
    """COND-06: the last status of a deleted pod tells of no sandbox."""
    pod = s.pod()
    sandbox = s.run_sandbox(pod)
    s.delete(pod)
    s.stop_sandbox(sandbox)
    tell_status(s, pod, "Failed", [ended(137)], conditions=[condition("PodReadyToStartContainers", said)])
    s.deleted(pod)
