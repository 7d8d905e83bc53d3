"""Which events of a kubelet in a process may be missing."""

import pytest
from outside_world import event
from trace_builder import TraceBuilder

from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, PODS
from kubelet_conformance.contract.definition import Findings, answered, contract
from kubelet_conformance.contract.patterns import done
from kubelet_conformance.contract.patterns import event as reported
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.trace.world.moment import Moment


@contract("START-01", on=done("StartContainer"), needs=(CRI, PODS, EVERY_EVENT))
def owes_an_event(_: Moment) -> Findings:
    """A container that was started has an event within 5 s."""
    return answered(by=reported("Started"), within=5, text="Started comes")


@pytest.mark.parametrize(
    ("before", "clock", "verdict"),
    [
        (0, "wall", Verdict.BROKEN),
        (18, "wall", Verdict.BROKEN),
        (19, "wall", Verdict.NOT_EXERCISED),
        (19, "virtual", Verdict.BROKEN),
    ],
)
def test_events_beyond_the_burst_of_a_pod_are_not_awaited(before: int, clock: str, verdict: Verdict) -> None:
    """A process may post 25 events of one pod at once, and drops others."""
    s = TraceBuilder(clock=clock)
    web = s.pod()
    sandbox = s.run_sandbox(web)
    for _ in range(before):
        event(s, web, "Unhealthy", "c1")
    s.run_container(web, sandbox, "c1")
    s.wait(6).call("ListContainers", {}, {})

    assert s.judge_with(owes_an_event).verdict is verdict
