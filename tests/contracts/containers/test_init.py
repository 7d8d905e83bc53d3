"""INIT contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import assert_detects, detects

from kubelet_conformance.contract.verdicts import Verdict

IMAGE = "img:1"


def container(name: str, **more: Any) -> dict[str, Any]:
    """A container of a manifest."""
    return {"name": name, "image": IMAGE, **more}


def pod(s: TraceBuilder, *inits: str, policy: str = "Always", **more: Any) -> tuple[PodHandle, SandboxHandle]:
    """A pod with these init containers and c1, and its sandbox."""
    web = s.pod(initContainers=[container(name, **more) for name in inits], restartPolicy=policy)
    return web, s.run_sandbox(web)


def ran(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, name: str, attempt: int = 0
) -> ContainerHandle:
    """An init container that completes and whose end the kubelet reads."""
    one = s.run_container(web, sandbox, name, attempt)
    s.wait(1).exited(one)
    return one


def init_status(name: str, code: int | None = None, *, ready: bool = False) -> dict[str, Any]:
    """The status of an init container: running, or ended with `code`."""
    state: dict[str, Any] = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
    return {"name": name, "state": state, "ready": ready, "restartCount": 0}


@pytest.mark.parametrize("late", [False, True])
@detects("INIT-01")
def test_next_container_follows(s: TraceBuilder, *, right: bool, late: bool) -> None:
    """INIT-01 breaks when nothing comes after the last init container, and when it comes late."""
    web, sandbox = pod(s, "i1")
    ran(s, web, sandbox, "i1")
    if right or late:
        s.wait(1 if right else 60).run_container(web, sandbox, "c1")


@pytest.mark.parametrize("ends", [False, True])
@detects("INIT-03")
def test_nothing_runs_beside_an_init_container(s: TraceBuilder, *, right: bool, ends: bool) -> None:
    """INIT-03 breaks when an app container is made while an init container runs."""
    web, sandbox = pod(s, "i1")
    first = s.run_container(web, sandbox, "i1")
    if not right:
        s.run_container(web, sandbox, "c1")
    if right or ends:
        s.wait(1).exited(first)


@detects("INIT-07")
def test_failure_is_read_before_a_retry(s: TraceBuilder, *, right: bool) -> None:
    """INIT-07 breaks when an init container is made again before the kubelet can know that it failed."""
    web, sandbox = pod(s, "i1")
    s.exited(s.run_container(web, sandbox, "i1"), 1, seen=right)
    s.run_container(web, sandbox, "i1", attempt=1)


@pytest.mark.parametrize("wrong", ["left", "retried", "phase"])
@detects("INIT-08")
def test_failed_init_container_under_never_ends_the_pod(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """INIT-08 breaks when the pod is left standing, is retried, or ends as Succeeded."""
    web, sandbox = pod(s, "i1", policy="Never")
    s.exited(s.run_container(web, sandbox, "i1"), code=1)
    s.wait(1)
    if wrong == "retried" and not right:
        s.run_container(web, sandbox, "i1", attempt=1)
    if right or wrong != "left":
        s.stop_sandbox(sandbox)
    phase = "Succeeded" if wrong == "phase" and not right else "Failed"
    s.status(web, phase, initContainerStatuses=[init_status("i1", 1)])


@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
@detects("INIT-09")
def test_out_of_memory_counts_as_failure(s: TraceBuilder, policy: str, *, right: bool) -> None:
    """INIT-09 breaks when an init container with reason OOMKilled and code 0 counts as completed."""
    web, sandbox = pod(s, "i1", policy=policy)
    first = s.run_container(web, sandbox, "i1")
    s.wait(1).container_status(first, state="CONTAINER_EXITED", reason="OOMKilled")
    if not right:
        s.run_container(web, sandbox, "c1")
    elif policy == "Never":
        s.stop_sandbox(sandbox)
    else:
        s.run_container(web, sandbox, "i1", attempt=1)


@pytest.mark.parametrize("policy", ["Always", "Never"])
@detects("INIT-11")
def test_unknown_init_container_is_stopped_first(s: TraceBuilder, policy: str, *, right: bool) -> None:
    """INIT-11 breaks when an unknown instance is not stopped, and when it is replaced under Never."""
    web, sandbox = pod(s, "i1", policy="Always" if right else policy)
    first = s.run_container(web, sandbox, "i1")
    s.container_status(first, state="CONTAINER_UNKNOWN")
    if right or policy == "Never":
        s.stop(first)
    s.run_container(web, sandbox, "i1", attempt=1)


@pytest.mark.parametrize("contract_id", ["INIT-01", "INIT-12"])
@pytest.mark.parametrize(
    ("left", "sidecar", "broken"), [(True, True, False), (False, True, True), (True, False, True)]
)
def test_container_that_never_began_ends_initialization(
    contract_id: str, *, left: bool, sidecar: bool, broken: bool
) -> None:
    """INIT-01, INIT-12: with sidecars and a container left that never began, the pod is initialized."""
    s = TraceBuilder()
    inits = [container("i1"), *([container("s1", restartPolicy="Always")] if sidecar else [])]
    web = s.pod(initContainers=inits, restartPolicy="Always")
    sandbox = s.run_sandbox(web)
    first = ran(s, web, sandbox, "i1")
    if sidecar:
        s.run_container(web, sandbox, "s1")
    if left:
        s.start(s.create(web, sandbox), error="FAILED_PRECONDITION")
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    s.remove(first)
    again = s.run_sandbox(web, attempt=1)
    s.run_container(web, again, "c1")

    assert (s.judge(contract_id).verdict is Verdict.BROKEN) is broken


@pytest.mark.parametrize("contract_id", ["INIT-01", "INIT-02", "INIT-03", "INIT-12"])
@pytest.mark.parametrize("tried", [True, False])
def test_record_that_could_not_be_removed_ends_initialization(contract_id: str, *, tried: bool) -> None:
    """INIT-01, -02, -03, -12: the kubelet goes by a record of the sandbox before that it could not remove."""
    s = TraceBuilder()
    web, sandbox = pod(s, "i1", "i2")
    ran(s, web, sandbox, "i1")
    last = ran(s, web, sandbox, "i2")
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    if tried:
        s.call("RemoveContainer", {"container_id": last.id}, {}, error="UNAVAILABLE")
    again = s.run_sandbox(web, attempt=1)
    i1 = s.run_container(web, again, "i1", attempt=1)
    s.run_container(web, again, "c1")
    s.wait(5).exited(i1)

    assert bool(s.judge(contract_id).breaks) is not tried


@pytest.mark.parametrize("code", [0, 1])
@detects("INIT-15")
def test_ended_init_container_is_ready_by_its_code(s: TraceBuilder, code: int, *, right: bool) -> None:
    """INIT-15 breaks when ready does not follow from the exit code."""
    web, _ = pod(s, "i1")
    ready = (code == 0) == right
    s.status(web, "Pending", initContainerStatuses=[init_status("i1", code, ready=ready)])


@pytest.mark.parametrize("kubernetes", ["1.26", "1.32"])
def test_initialized_follows_the_init_containers(kubernetes: str) -> None:
    """INIT-15 breaks when Initialized is True while an init container runs."""

    def tell(s: TraceBuilder, *, right: bool) -> None:
        web, _ = pod(s, "i1")
        condition = {"type": "Initialized", "status": "False", "reason": "ContainersNotInitialized"}
        if not right:
            condition = {"type": "Initialized", "status": "True"}
        s.status(web, "Pending", initContainerStatuses=[init_status("i1")], conditions=[condition])

    assert_detects("INIT-15", tell, kubernetes=kubernetes)


@detects("INIT-15")
def test_initialized_stays_true_once_an_app_container_has_run(s: TraceBuilder, *, right: bool) -> None:
    """INIT-15 breaks when Initialized falls back for an init container of a new sandbox (1.28 and later)."""
    web, _ = pod(s, "i1")
    condition = {"type": "Initialized", "status": str(right), "reason": "ContainersNotInitialized"}
    s.status(
        web,
        initContainerStatuses=[init_status("i1")],
        containerStatuses=[{"name": "c1", "state": {"terminated": {"exitCode": 0}}, "restartCount": 0}],
        conditions=[condition],
    )


@detects("INIT-16")
def test_what_failed_is_reported_while_init_runs_again(s: TraceBuilder, *, right: bool) -> None:
    """INIT-16: an app container that could not be made waits for that reason in the next sandbox, too."""
    web, sandbox = pod(s, "i1")
    waits = {"name": "c1", "ready": False, "restartCount": 0}
    first = {**waits, "state": {"waiting": {"reason": "PodInitializing"}}}
    s.status(web, "Pending", initContainerStatuses=[init_status("i1")], containerStatuses=[first])
    ran(s, web, sandbox, "i1")
    if right:
        s.create(web, sandbox, error="FAILED_PRECONDITION")
    s.sandbox_died(sandbox)
    s.run_container(web, s.run_sandbox(web, attempt=1), "i1", attempt=1)
    app = {**waits, "state": {"waiting": {"reason": "CreateContainerError"}}}
    s.status(web, "Pending", initContainerStatuses=[init_status("i1")], containerStatuses=[app])


@detects("INIT-16", once=(True, False))
def test_what_no_call_shows_is_reported_while_init_runs_again(s: TraceBuilder, *, once: bool) -> None:
    """INIT-16: so it is with an image that may not be pulled, where the pod was initialized once."""
    web, sandbox = pod(s, "i1")
    if once:
        ran(s, web, sandbox, "i1")
    s.sandbox_died(sandbox)
    s.run_container(web, s.run_sandbox(web, attempt=1), "i1", attempt=1)
    waits = {"name": "c1", "ready": False, "state": {"waiting": {"reason": "ErrImageNeverPull"}}}
    s.status(web, "Pending", initContainerStatuses=[init_status("i1")], containerStatuses=[waits])


@pytest.mark.parametrize("which", ["initContainerStatuses", "containerStatuses"])
@detects("INIT-17")
def test_statuses_stand_in_order(s: TraceBuilder, which: str, *, right: bool) -> None:
    """INIT-17 breaks when init statuses leave the order of the spec, or app statuses that of their names."""
    web = s.pod(
        initContainers=[container("z1"), container("a1")],
        containers=[container("c2"), container("c1")],
    )
    reported = {"initContainerStatuses": ["z1", "a1"], "containerStatuses": ["c1", "c2"]}
    if not right:
        reported[which].reverse()
    reported_all: dict[str, Any] = {
        key: [init_status(one) for one in names] for key, names in reported.items()
    }
    s.status(web, **reported_all)


@pytest.mark.parametrize("died", [True, False])
def test_dead_sandbox_begins_with_the_first_init_container(*, died: bool) -> None:
    """INIT-07: one that fails in a sandbox that has died is not owed its turn before the first."""
    s = TraceBuilder()
    web, sandbox = pod(s, "i1", "i2")
    ran(s, web, sandbox, "i1")
    second = s.run_container(web, sandbox, "i2")
    if died:
        s.sandbox_died(sandbox)
    s.exited(second, code=1)
    s.run_container(web, s.run_sandbox(web, attempt=1), "i1", attempt=1)

    assert s.judge("INIT-07").verdict is (Verdict.NOT_EXERCISED if died else Verdict.BROKEN)


@detects("INIT-01", through=(True, False))
def test_pod_that_is_through_is_not_begun_again(s: TraceBuilder, *, through: bool) -> None:
    """INIT-01: nothing follows in a new sandbox if the app containers ended well when they were stopped."""
    web, sandbox = pod(s, "i1", "i2", policy="OnFailure")
    for name in ("i1", "i2"):
        ran(s, web, sandbox, name)
    c1 = s.run_container(web, sandbox)
    s.sandbox_died(sandbox)
    s.stop(c1, code=0 if through else 137)
    s.exited(s.run_container(web, s.run_sandbox(web, attempt=1), "i1", attempt=1))
    s.wait(60).stop_here()
