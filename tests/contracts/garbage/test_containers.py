"""GC contracts: each is kept by a right trace and broken by a wrong one."""

import pytest
from running import BROKEN, KEPT, running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def died_three_times() -> tuple[TraceBuilder, PodHandle, SandboxHandle, list[ContainerHandle]]:
    """A container of which three instances ended, and a fourth runs."""
    s, web, sandbox, c1 = running()
    every = [c1]
    for attempt in range(1, 4):
        s.exited(every[-1], 1)
        every.append(s.run_container(web, sandbox, "c1", attempt))
    return s, web, sandbox, every


@pytest.mark.parametrize(("waits", "may_go"), [(40, {0}), (1, {0, 1})])
@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_oldest_goes_first(first: int, waits: int, may_go: set[int]) -> None:
    """GC-01: of three dead instances the oldest goes first; soon after a death all but the newest may go."""
    s, _, _, every = died_three_times()
    s.wait(waits).remove(every[first])

    assert s.judge("GC-01").verdict is (KEPT if first in may_go else BROKEN)


@detects("GC-01", begin=running, waits=(1, 20))
def test_never_started_record_may_stay_behind(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, waits: int
) -> None:
    """GC-01: a death makes due what has ended, and leaves alone what never began."""
    s.exited(c1, 1)
    s.create(web, sandbox, "c1", 1)
    ended = s.run_container(web, sandbox, "c1", 2)
    s.remove(c1)
    s.exited(ended, 1)
    newest = s.run_container(web, sandbox, "c1", 3)
    s.wait(20).exited(newest, 1)
    s.wait(waits).remove(ended)


@pytest.mark.parametrize(("seconds", "verdict"), [(30, KEPT), (0, BROKEN)])
def test_removals_wait_for_each_other(seconds: int, verdict: Verdict) -> None:
    """GC-01: what a death has made due may come as late as the removal before it takes."""
    s, web, sandbox, every = died_three_times()
    s.wait(1)
    call = s.begin("RemoveContainer", {"container_id": s.run_container(web, sandbox, "c2", 0).id})
    s.wait(seconds).end("RemoveContainer", call)
    s.wait(30 - seconds).remove(every[1])

    assert s.judge("GC-01").verdict is verdict


@pytest.mark.parametrize(("how", "verdict"), [("older", KEPT), ("newest", BROKEN), ("none", BROKEN)])
def test_newest_is_kept(how: str, verdict: Verdict) -> None:
    """GC-10: after the second death the first instance goes, and the second stays."""
    s, web, sandbox, c1 = running()
    s.exited(c1, 1)
    second = s.run_container(web, sandbox, "c1", 1)
    s.wait(20).exited(second, 1)
    if how == "older":
        s.remove(c1)
    elif how == "newest":
        s.remove(second)

    assert s.judge("GC-10").verdict is verdict


@detects("GC-10", begin=running, asked=(True, False))
def test_removal_may_be_under_way(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, asked: bool
) -> None:
    """GC-10: what is asked to go while the next one dies need not be asked once more."""
    s.exited(c1, 1)
    second = s.run_container(web, sandbox, "c1", 1)
    s.wait(20)
    call = s.begin("RemoveContainer", {"container_id": c1.id}) if asked else ""
    s.exited(second, 1)
    if call:
        s.wait(1).end("RemoveContainer", call, {})
    s.wait(60).call("ListContainers", {}, {})


@pytest.mark.parametrize("first", ["fails", "succeeds"])
def test_nothing_goes_before_a_first_relist(first: str) -> None:
    """GC-02: a kubelet that hears events lists again five minutes after its first relist failed."""
    s = TraceBuilder(featureGates={"EventedPLEG": True})
    web = s.pod()
    c1 = s.run_container(web, s.run_sandbox(web))
    s.wait(5).exited(c1, 1)
    s.record("kubelet", op="killed")
    s.record("kubelet", op="started")
    s.call(
        "ListContainers",
        {},
        {"containers": [{"id": c1.id}]},
        error="UNAVAILABLE" if first == "fails" else None,
    )
    s.unset(web)
    s.deleted(web)
    s.wait(100).call("ListPodSandbox", {}, {})

    assert bool(s.judge("GC-02").breaks) is (first == "succeeds")


@pytest.mark.parametrize(
    ("how", "verdict"),
    [
        ("right", KEPT),
        ("late", KEPT),
        ("standing", BROKEN),
        ("not again", BROKEN),
        ("full", BROKEN),
        ("wanted", BROKEN),
        ("left", BROKEN),
        ("refused", Verdict.NOT_EXERCISED),
    ],
)
def test_sandbox_goes_at_the_end(how: str, verdict: Verdict) -> None:
    """GC-05: a sandbox goes when it was stopped, is empty, and its pod is gone.

    It stays while the runtime refuses to remove what is in it.
    """
    s, web, sandbox, c1 = running()
    if how != "wanted":
        s.delete(web)
    s.stop(c1)
    if how != "standing":
        s.stop_sandbox(sandbox)
    if how not in {"full", "refused"}:
        s.remove(c1)
    if how != "wanted":
        s.deleted(web)
    s.wait(40)
    if how == "refused":
        s.call("RemoveContainer", {"container_id": c1.id}, {}, error="UNKNOWN")
    if how == "late":
        s.call("StopPodSandbox", {"pod_sandbox_id": sandbox.id}, {}, takes=30)
    elif how not in {"standing", "not again"}:
        s.stop_sandbox(sandbox)
    if how not in {"left", "refused"}:
        s.call("RemovePodSandbox", {"pod_sandbox_id": sandbox.id}, {})

    assert s.judge("GC-05").verdict is verdict


@detects("GC-05", begin=running, waits=(0, 20))
def test_pod_that_comes_back_during_a_round(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, waits: int
) -> None:
    """GC-05: a round that began before a pod was wanted again takes it for gone, a later one does not."""
    s.unset(web)
    s.stop(c1)
    s.sandbox_died(sandbox)
    s.remove(c1)
    s.wait(40)
    s.set(web)
    s.wait(waits).stop_sandbox(sandbox)
    s.call("RemovePodSandbox", {"pod_sandbox_id": sandbox.id}, {})
