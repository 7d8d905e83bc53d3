"""CSTAT contracts on states: each is kept by a right trace and broken by a wrong one."""

from datetime import UTC, datetime
from typing import Any

import pytest
from outside_world import file_pod, start_static
from pod_status import again, end_of, ended, runs, tell_status, waits
from running import running
from trace_builder import NOON, ContainerHandle, PodHandle, TraceBuilder
from twice import assert_detects, assert_verdict, detects

UNKNOWN_END = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}


def assert_status(contract_id: str, right: dict[str, Any], wrong: dict[str, Any], **spec: Any) -> None:
    """A pod that was just made and has one container: this entry is right, that one is wrong."""

    def tell(s: TraceBuilder, *, right_one: bool) -> None:
        tell_status(s, s.pod(**spec), "Pending", [right if right_one else wrong])

    assert_detects(contract_id, lambda s, right: tell(s, right_one=right))


def stamp(seconds: float) -> str:
    """A time of the API's, `seconds` after the trace's noon."""
    return datetime.fromtimestamp(NOON + int(seconds), UTC).isoformat()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (waits(), waits("PodInitializing")),
        (waits("ErrImagePull"), waits("")),
        (waits(), runs()),
    ],
)
def test_container_without_record_waits(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    """CSTAT-01: before it is created a container waits with the default reason or the error."""
    assert_status("CSTAT-01", right, wrong)


@detects("CSTAT-01")
def test_end_that_is_noticed_late_is_reported_what_is_back(s: TraceBuilder, *, right: bool) -> None:
    """CSTAT-01: a container that never ran is reported as ended where its pod's file went before the end."""
    pod = s.pod("web-node-1", source="file", uid="static")
    sandbox = s.run_sandbox(pod)
    tell_status(s, pod, "Pending", [waits()])
    if right:
        s.unset(pod)
        s.wait(1).set(pod)
    s.stop_sandbox(sandbox)
    tell_status(s, pod, "Pending", [{"name": "c1", "state": UNKNOWN_END}])


def test_container_of_a_pod_with_inits_waits_for_them() -> None:
    """CSTAT-01: the default reason is PodInitializing where the pod has init containers."""
    inits = [{"name": "i1", "image": "img:1"}]
    assert_status("CSTAT-01", waits("PodInitializing"), waits(), initContainers=inits)


@pytest.mark.parametrize("wrong", ["exit code", "id", "end", "not ended"])
@detects("CSTAT-02", begin=running)
def test_terminated_state_is_that_of_the_record(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, wrong: str, *, right: bool
) -> None:
    """CSTAT-02: exit code, id and times of the end are the record's."""
    if right or wrong != "not ended":
        s.exited(c1, 3)
    entry = ended(3 if right or wrong != "exit code" else 0, c1)
    if wrong == "id" and not right:
        entry["state"]["terminated"]["containerID"] = "fake://other"
    late = 100 if wrong == "end" and not right else 0
    entry["state"]["terminated"]["finishedAt"] = stamp(s.now + late)
    tell_status(s, web, "Running", [entry])


@detects("CSTAT-02", begin=running)
def test_running_state_does_not_outlive_the_exit(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, *, right: bool
) -> None:
    """CSTAT-02: a container that exited long ago is not shown running."""
    s.exited(c1, 1)
    s.wait(1 if right else 30)
    tell_status(s, web, "Running", [runs(c1)])


@pytest.mark.parametrize(
    ("ends", "verdict"), [("never", "kept"), ("just now", "kept"), ("at once", "broken")]
)
def test_running_state_is_kept_while_the_worker_waits(ends: str, verdict: str) -> None:
    """CSTAT-02: a result of a probe reported during a long pull, or just after it, says no state."""
    s, web, _, c1 = running()
    tell_status(s, web, "Running", [runs(c1, ready=False)])
    pull = s.begin("PullImage", {"image": {"image": "img:2"}, "sandbox_config": s.sandbox_config(web)})
    s.exited(c1, 1)
    for moment in ("at once", "just now"):
        if ends == moment:
            s.end("PullImage", pull, {"image_ref": "img:2"})
        s.wait(30 if moment == "at once" else 0.5)
    tell_status(s, web, "Running", [runs(c1)])

    assert s.judge("CSTAT-02").verdict.words == verdict


@detects("CSTAT-02", kind=("initContainers", "containers"))
def test_running_state_is_kept_while_room_is_made(s: TraceBuilder, kind: str) -> None:
    """CSTAT-02: so it is while a sync removes an init container, which is to run again."""
    apps = [{"name": "c1", "image": "img:1"}]
    old = {"name": "old", "image": "img:1"}
    spec: dict[str, Any] = {"containers": apps} | {kind: [*(apps if kind == "containers" else ()), old]}
    web = s.pod(**spec)
    sandbox = s.run_sandbox(web)
    other, c1 = (s.run_container(web, sandbox, name) for name in ("old", "c1"))
    tell_status(s, web, "Running", [runs(c1, ready=False)])
    s.wait(10).exited(c1, 1)
    s.stop_sandbox(sandbox)
    s.begin("RemoveContainer", {"container_id": other.id})
    s.wait(30)
    tell_status(s, web, "Running", [runs(c1)])


def test_lost_state_is_reported_at_the_end_of_a_former_life() -> None:
    """CSTAT-02, -14, -15: what does not run is reported as lost where its pod's file went and is back."""
    for right in (True, False):
        s = TraceBuilder()
        web = s.pod("web-node-1", source="file", uid="static")
        sandbox = s.run_sandbox(web)
        c1 = s.run_container(web, sandbox)
        s.exited(c1, 1)
        second = s.create(web, sandbox, attempt=1)
        s.start(second, error="INTERNAL")
        s.container_status(second, state="CONTAINER_CREATED")
        last = {"lastState": end_of(c1, 1)}
        tell_status(s, web, "Running", [waits("RunContainerError", second) | last])
        if right:
            s.unset(web)
            s.wait(1).set(web)
        s.remove(c1)
        s.stop_sandbox(sandbox)
        s.wait(10)
        tell_status(s, web, "Running", [waits(of=second) | last | {"state": UNKNOWN_END}])

        for contract_id in ("CSTAT-02", "CSTAT-14", "CSTAT-15"):
            assert bool(s.judge(contract_id).breaks) is not right, contract_id


@detects("CSTAT-04", edited=(True, False))
def test_end_that_an_edit_has_made_up_is_moved(s: TraceBuilder, *, edited: bool) -> None:
    """CSTAT-04: what had to go for an edit of its file is back, and tells the end that was made up then."""
    web = file_pod(s)
    sandbox, c1 = start_static(s, web)
    s.exited(c1, 1)
    if edited:
        file_pod(s.wait(5), containers=[{"name": "c1", "image": "img:2"}])
    s.stop_sandbox(sandbox)
    s.remove(c1)
    if edited:
        file_pod(s.wait(5))
    tell_status(s, web, "Pending", [waits("CrashLoopBackOff", c1) | {"lastState": UNKNOWN_END}])


@pytest.mark.parametrize(
    "rpc", ["ListContainers", "ListPodSandbox", "ContainerStatus", "PodSandboxStatus", "ImageStatus"]
)
@pytest.mark.parametrize(("way", "verdict"), [("hangs", "kept"), ("is late", "kept"), ("comes", "broken")])
def test_running_state_is_kept_while_the_kubelet_is_blind(rpc: str, way: str, verdict: str) -> None:
    """CSTAT-02: without a look nobody can know that a container has exited."""
    s, web, _, c1 = running()
    s.exited(c1, 1, seen=False)
    listing = s.begin(rpc, {})
    if way == "comes":
        s.end(rpc, listing, {})
    s.wait(30)
    if way == "is late":
        s.end(rpc, listing, {})
    tell_status(s, web, "Running", [runs(c1)])

    assert s.judge("CSTAT-02").verdict.words == verdict


def restarted(code: int = 1) -> tuple[TraceBuilder, Any, Any, Any]:
    """A trace in which c1 exited and was started again."""
    s, web, sandbox, first = running()
    s.exited(first, code)
    return s, web, first, s.run_container(web, sandbox, "c1", 1)


def test_last_state_is_that_of_its_record() -> None:
    """CSTAT-02: lastState has the exit code of the record it names."""
    for right in (True, False):
        s, web, first, second = restarted(3)
        tell_status(s, web, "Running", [runs(second, lastState=end_of(first, 3 if right else 4))])

        assert s.judge("CSTAT-02").verdict.words == ("kept" if right else "broken")


def test_last_state_is_of_the_record_before() -> None:
    """CSTAT-03: state is of the newest record and lastState of the one before it."""
    for right in (True, False):
        s, web, first, second = restarted()
        s.exited(second, 1)
        last = first if right else second
        tell_status(s, web, "Running", [ended(1, second, lastState=end_of(last, 1))])

        assert s.judge("CSTAT-03").verdict.words == ("kept" if right else "broken")


@pytest.mark.parametrize(
    "wrong", [{"lastState": {}}, {"state": {"waiting": {"reason": "ContainerCreating"}}}]
)
@detects("CSTAT-04", begin=running)
def test_refused_restart_waits_after_its_end(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, wrong: dict[str, Any], *, right: bool
) -> None:
    """CSTAT-04: a crash loop waits with its reason, and its end is in lastState."""
    s.exited(c1, 1)
    tell_status(s, web, "Running", [again(1, c1) | ({} if right else wrong)])


@pytest.mark.parametrize("wrong", [{"lastState": {}}, {"restartCount": 0}])
@detects("CSTAT-06", begin=running)
def test_vanished_record_leaves_its_trace(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, wrong: dict[str, Any], *, right: bool
) -> None:
    """CSTAT-06: a container lost while it ran is shown to have ended with 137, and is counted."""
    tell_status(s, web, "Running", [runs(c1)])
    s.record("runtime", op="removed", container_id=c1.id)
    entry = waits() | {"lastState": UNKNOWN_END, "restartCount": 1} | ({} if right else wrong)
    tell_status(s, web, "Running", [entry])


@pytest.mark.parametrize("kubernetes", ["1.32", "1.36"])
def test_invented_end_goes_with_the_next_record(kubernetes: str) -> None:
    """CSTAT-14: once the container runs again, the end of the vanished record is shown from 1.36 on only."""
    for right in (True, False):
        s, web, sandbox, c1 = running(kubernetes)
        tell_status(s, web, "Running", [runs(c1)])
        s.record("runtime", op="removed", container_id=c1.id)
        tell_status(s, web, "Running", [waits() | {"lastState": UNKNOWN_END, "restartCount": 1}])
        second = s.run_container(web, sandbox, "c1", 1)
        s.wait(10)
        is_shown = right is (kubernetes == "1.36")
        tell_status(s, web, "Running", [runs(second, lastState=UNKNOWN_END if is_shown else {})])

        assert_verdict(s, "CSTAT-14", right=right)


@pytest.mark.parametrize("away", [True, False])
def test_status_that_was_put_off_may_have_the_last_state(*, away: bool) -> None:
    """CSTAT-14: what could not be written as the API server was away was built before the record went."""
    s, web, first, second = restarted()
    tell_status(s, web, "Running", [runs(second, lastState=end_of(first, 1))])
    if away:
        s.record("fault", what="the API server is away")
    s.exited(second, 137)
    s.remove(first)
    if away:
        s.record("fault", what="healed: the API server is back")
    s.wait(9)
    tell_status(s, web, "Running", [ended(137, second, lastState=end_of(first, 1))])

    assert bool(s.judge("CSTAT-14").breaks) is not away


@detects("CSTAT-03", kubernetes="1.36", last=("first", "second"))
def test_sandboxes_count_their_init_containers_anew(s: TraceBuilder, last: str) -> None:
    """CSTAT-03: of two records with the same attempt, in two sandboxes, the older one is the last state."""
    web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    inits = list[ContainerHandle]()
    for attempt in range(2):
        inits.append(s.run_container(web, s.run_sandbox(web, attempt), "i1"))
        s.wait(1).exited(inits[-1], 1)
    shown, other = inits if last == "second" else reversed(inits)
    tell_status(s, web, "Pending", inits=[ended(1, shown, name="i1", lastState=end_of(other, 1))])
