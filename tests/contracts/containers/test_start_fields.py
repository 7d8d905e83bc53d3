"""START-06 and WORK-16: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from running import BROKEN, KEPT, PRE_STOP, running
from trace_builder import TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

GRACE = "io.kubernetes.pod.terminationGracePeriod"


@pytest.mark.parametrize(
    ("version", "noted", "verdict"),
    [("1.32", "1", KEPT), ("1.32", "-5", BROKEN), ("1.26", "-5", KEPT), ("1.26", "-6", BROKEN)],
)
@pytest.mark.parametrize("contract", ["START-05", "START-06"])
def test_negative_grace_counts_as_one_second(
    contract: str, version: str, noted: str, verdict: Verdict
) -> None:
    """START-05, START-06: a negative grace is noted as 1, and before 1.27 it may be noted as it is."""
    s = TraceBuilder(version)
    web = s.pod(terminationGracePeriodSeconds=-5)
    config = s.container_config(web, "c1")
    config["annotations"][GRACE] = noted
    s.create(web, s.run_sandbox(web), config=config)

    assert s.judge(contract).verdict is verdict


HOOK = {"io.kubernetes.container.preStopHandler": "{}"}


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        ("annotations", "", ""),
        ("annotations", "io.kubernetes.container.hash", ""),
        ("annotations", "io.kubernetes.container.restartCount", "3"),
        ("annotations", "io.kubernetes.container.terminationMessagePath", ""),
        ("annotations", "io.kubernetes.pod.terminationGracePeriod", "30"),
        ("annotations", "io.kubernetes.container.preStopHandler", ""),
        ("labels", "io.kubernetes.pod.uid", "x"),
        ("labels", "io.kubernetes.container.name", "x"),
    ],
)
def test_container_carries_its_state(place: str, key: str, value: str) -> None:
    """START-06: a container without one of these cannot be looked after by another kubelet."""
    s = TraceBuilder()
    containers = [{"name": "c1", "image": "img:1", "lifecycle": PRE_STOP}]
    web = s.pod(terminationGracePeriodSeconds=10, containers=containers)
    config: dict[str, Any] = s.container_config(web, "c1")
    config["annotations"] |= HOOK
    if key:
        config[place][key] = value
    s.create(web, s.run_sandbox(web), config=config)

    assert s.judge("START-06").verdict is (BROKEN if key else KEPT)


@pytest.mark.parametrize(
    ("version", "waits", "verdict"),
    [("1.32", 24, KEPT), ("1.32", 40, BROKEN), ("1.35", 11, KEPT), ("1.35", 24, BROKEN)],
)
def test_crash_loop_is_looked_at_again(version: str, waits: float, verdict: Verdict) -> None:
    """WORK-16: up to 1.34 the end of a back-off is noticed 16 s later at the latest, then at once."""
    s, web, sandbox, c1 = running(version)
    s.exited(c1, 1)
    again = s.run_container(web, sandbox, "c1", 1)
    s.wait(1).exited(again, 1)
    s.wait(waits).run_container(web, sandbox, "c1", 2)

    assert s.judge("WORK-16").verdict is verdict
