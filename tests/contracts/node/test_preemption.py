"""ADMIT contracts about room and node pressure: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from node_pressure import CRITICAL, configured_node, evict, press, run, stop
from running import BROKEN, KEPT
from trace_builder import PodHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict


def asking(**amounts: str) -> list[dict[str, Any]]:
    """A container that asks for so much."""
    return [{"name": "c1", "image": "img:1", "resources": {"requests": amounts}}]


def refuse(s: TraceBuilder, pod: PodHandle, reason: str) -> None:
    """The pod is refused."""
    s.wait(0.5).status(pod, "Failed", reason=reason, message="Pod was rejected: no")


@pytest.mark.parametrize("wrong", ["", "refused", "grace", "phase", "critical"])
def test_critical_pod_gets_its_room(wrong: str) -> None:
    """ADMIT-08: others make room, in their own time."""
    s = configured_node()
    rank = CRITICAL if wrong == "critical" else 0
    web = run(s, containers=asking(cpu="800m"), grace=20, priority=rank)
    new = s.pod("new", containers=asking(cpu="500m"), priority=CRITICAL)
    if wrong == "refused":
        refuse(s, new, "OutOfcpu")
    else:
        evict(s, web, "Preempting", after=0)
        stop(s, web, 2 if wrong == "grace" else 20)
        web.fails("Preempting", "Succeeded" if wrong == "phase" else "Failed")
        s.run_sandbox(new)
    s.stop_here()

    assert s.judge("ADMIT-08").verdict is (BROKEN if wrong else KEPT)


TOLERATES = [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("signal", "spec", "refused", "verdict"),
    [
        ("memory.available", {}, True, KEPT),
        ("memory.available", {}, False, BROKEN),
        ("memory.available", {"containers": asking(memory="10Mi")}, False, KEPT),
        ("memory.available", {"containers": asking(memory="10Mi")}, True, BROKEN),
        ("memory.available", {"tolerations": TOLERATES}, False, KEPT),
        ("nodefs.available", {"containers": asking(memory="10Mi")}, True, KEPT),
        ("nodefs.available", {"containers": asking(memory="10Mi")}, False, BROKEN),
        ("nodefs.available", {"priority": CRITICAL}, False, KEPT),
        ("nodefs.available", {"priority": CRITICAL}, True, BROKEN),
    ],
)
def test_short_node_takes_little(
    signal: str, spec: dict[str, Any], *, refused: bool, verdict: Verdict
) -> None:
    """ADMIT-09: what is short, and what the pod asks for, decide."""
    s = configured_node()
    press(s, "5Mi" if signal.startswith("memory") else "2%", signal)
    web = s.wait(30).pod(**spec)
    if refused:
        refuse(s, web, "Evicted")
    else:
        s.run_sandbox(web)
    s.stop_here()

    assert s.judge("ADMIT-09").verdict is verdict
