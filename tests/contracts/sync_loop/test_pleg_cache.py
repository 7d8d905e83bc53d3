"""PLEG contracts about records that go, stay or race: kept by right traces and broken by wrong ones."""

from __future__ import annotations

import pytest
from running import BROKEN, KEPT, running
from trace_builder import ContainerHandle, SandboxHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict


def removed(s: TraceBuilder, container: ContainerHandle | None, sandbox: SandboxHandle) -> None:
    """The record of a container, or else of the sandbox, goes."""
    ids = {"sandbox_id": sandbox.id} | ({"container_id": container.id} if container else {})
    s.record("runtime", op="removed", **ids)


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
