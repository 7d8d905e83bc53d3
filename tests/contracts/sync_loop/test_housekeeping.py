"""What the loop makes up for, and in which order: right traces keep the contracts, wrong ones break them."""

from typing import Any

import pytest
from outside_world import heal, killed, outage, started
from running import BROKEN, KEPT, running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def created(s: TraceBuilder, name: str, at: str) -> PodHandle:
    """A pod that wants port 80 of the node and was created then."""
    port: dict[str, Any] = {"name": "c1", "image": "img:1", "ports": [{"containerPort": 80, "hostPort": 80}]}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": at}
    pod = PodHandle({"metadata": metadata, "spec": {"containers": [port]}}, "api")
    s.set(pod)
    return pod


@pytest.mark.parametrize(("first", "verdict"), [("older", KEPT), ("newer", BROKEN), ("", BROKEN)])
def test_older_pod_comes_first(first: str, verdict: Verdict) -> None:
    """LOOP-14: of two pods that want one port the older runs."""
    s = TraceBuilder()
    killed(s)
    pods = {
        "newer": created(s, "newer", "2026-01-01T00:00:09Z"),
        "older": created(s, "older", "2026-01-01T00:00:05Z"),
    }
    started(s.wait(1))
    if first:
        s.wait(2).run_sandbox(pods[first])

    assert s.judge("LOOP-14").verdict is verdict


@detects("LOOP-15", begin=running, waits=(1, 60))
def test_pod_without_object_is_killed(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, waits: float
) -> None:
    """LOOP-15: what runs of a pod whose object is gone is stopped."""
    s.deleted(web)
    s.wait(waits).stop(c1, timeout=2)


@pytest.mark.parametrize(("waits", "verdict"), [(1, KEPT), (85, KEPT), (120, BROKEN)])
def test_resync_makes_up_for_what_was_missed(waits: float, verdict: Verdict) -> None:
    """LOOP-20: a container whose end went unnoticed is run again at the next resync."""
    s, web, sandbox, c1 = running()
    s.exited(c1, 1, seen=False)
    s.wait(waits).create(web, sandbox, "c1", 1)

    assert s.judge("LOOP-20").verdict is verdict


@detects("EVENTS-05", begin=running, waits=(0.1, 20))
def test_nothing_waits_for_its_event(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, waits: float
) -> None:
    """EVENTS-05: a container is started though its creation can be reported to nobody."""
    outage(s)
    s.wait(1).exited(c1, 1)
    again = s.wait(1).create(web, sandbox, "c1", 1)
    s.wait(waits).start(again)
    heal(s)
