"""PLEG contracts about records that go, stay or race: kept by right stories and broken by wrong ones."""

from __future__ import annotations

import pytest
from running import BROKEN, KEPT, running, two_running
from story import ContainerHandle, PodHandle, SandboxHandle, Story

from kubelet_conformance.contract.verdicts import Verdict


def removed(s: Story, container: ContainerHandle | None, sandbox: SandboxHandle) -> None:
    """The record of a container, or else of the sandbox, goes."""
    ids = {"sandbox_id": sandbox.id} | ({"container_id": container.id} if container else {})
    s.record("runtime", op="removed", **ids)


def fit(s: Story, *, ready: bool = True) -> None:
    """The runtime tells whether it is ready."""
    conditions = [{"type": "RuntimeReady", "status": ready}, {"type": "NetworkReady", "status": True}]
    s.call("Status", {}, {"status": {"conditions": conditions}})


def listed(s: Story, web: PodHandle, *containers: ContainerHandle) -> None:
    """The containers of the pod are listed."""
    chosen = {"filter": {"label_selector": {"io.kubernetes.pod.uid": web.uid}}}
    found = [
        {"id": one.id, "metadata": one.config["metadata"], "labels": one.config["labels"]}
        for one in containers
    ]
    s.call("ListContainers", chosen, {"containers": found})


@pytest.mark.parametrize(("waits", "verdict"), [(1, KEPT), (60, BROKEN)])
def test_container_that_went_while_it_ran_has_died(waits: float, verdict: Verdict) -> None:
    """PLEG-03: a running container that has no record any more is made again at once."""
    s, web, sandbox, c1 = running()
    s.wait(10)
    removed(s, c1, sandbox)
    s.wait(waits).create(web, sandbox, "c1", 1)

    assert s.judge("PLEG-03").verdict is verdict


@pytest.mark.parametrize(("waits", "verdict"), [(1, KEPT), (60, BROKEN)])
def test_quiet_pod_is_stopped_at_once(waits: float, verdict: Verdict) -> None:
    """PLEG-06: a pod that nothing happens to is stopped within a relist when it is deleted."""
    s, web, _, c1 = running()
    s.wait(10).delete(web)
    s.wait(waits).stop(c1)

    assert s.judge("PLEG-06").verdict is verdict


@pytest.mark.parametrize(("waits", "verdict"), [(1, KEPT), (60, BROKEN)])
def test_pod_that_has_ended_unseen_is_stopped_with_its_sandbox(waits: float, verdict: Verdict) -> None:
    """PLEG-06: of a pod whose container has ended just its sandbox is left to stop."""
    s, web, sandbox, c1 = running()
    s.exited(c1, 1, seen=False)
    s.wait(20).delete(web)
    s.wait(waits).stop_sandbox(sandbox)

    assert s.judge("PLEG-06").verdict is verdict


@pytest.mark.parametrize(("attempt", "verdict"), [(0, KEPT), (1, BROKEN)])
def test_pod_without_records_begins_anew(attempt: int, verdict: Verdict) -> None:
    """PLEG-07: a pod of which nothing is left gets its first sandbox again."""
    s, web, sandbox, _ = running()
    s.wait(10)
    removed(s, None, sandbox)
    s.wait(1).run_sandbox(web, attempt)

    assert s.judge("PLEG-07").verdict is verdict


@pytest.mark.parametrize(("waits", "verdict"), [(True, KEPT), (False, BROKEN)])
def test_blind_kubelet_begins_nothing(*, waits: bool, verdict: Verdict) -> None:
    """PLEG-08: a pod that is wanted after three minutes without a relist waits for one."""
    s, *_ = running()
    s.wait(1).call("ListContainers", {"filter": {}}, {})
    s.wait(1).call("ListContainers", {"filter": {}}, error="UNAVAILABLE")
    late = s.wait(200).pod("late")
    if not waits:
        s.run_sandbox(late)
    s.wait(1).call("ListContainers", {"filter": {}}, {})

    assert s.judge("PLEG-08").verdict is verdict


@pytest.mark.parametrize(("waits", "verdict"), [(1, KEPT), (60, BROKEN)])
def test_relist_waits_for_nobody(waits: float, verdict: Verdict) -> None:
    """PLEG-09: while the loop stands still the runtime is listed as before."""
    s, _, _, c1 = running()
    fit(s, ready=False)
    s.wait(2).exited(c1, 1)
    s.wait(waits).call("ListPodSandbox", {}, {})

    assert s.judge("PLEG-09").verdict is verdict


@pytest.mark.parametrize(("goes_on", "verdict"), [(True, KEPT), (False, BROKEN)])
def test_record_that_is_gone_is_left_out(*, goes_on: bool, verdict: Verdict) -> None:
    """PLEG-11: that one container is gone does not keep the next one from being asked about."""
    s, web, _, c1, c2 = two_running()
    listed(s, web, c1, c2)
    s.call("ContainerStatus", {"container_id": c1.id}, error="NOT_FOUND")
    if not goes_on:
        s.wait(1)
        listed(s, web, c2)
    s.container_status(c2, state="CONTAINER_RUNNING")

    assert s.judge("PLEG-11").verdict is verdict


@pytest.mark.parametrize(("newest", "verdict"), [(True, KEPT), (False, BROKEN)])
def test_newest_record_counts(*, newest: bool, verdict: Verdict) -> None:
    """PLEG-12: a status shows the instance that was made last."""
    s, web, sandbox, c1 = running()
    s.exited(c1, 1)
    again = s.run_container(web, sandbox, "c1", 1)
    shown = again if newest else c1
    s.wait(10).status(
        web, containerStatuses=[{"name": "c1", "containerID": f"fake://{shown.id}", "state": {"running": {}}}]
    )

    assert s.judge("PLEG-12").verdict is verdict
