"""Contracts on dynamic resources: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

GATES = {"DynamicResourceAllocation": True}
CLAIMS = [{"namespace": "default", "name": "fast"}]
DEVICE = "devices.example/device=fast"


def begin() -> tuple[TraceBuilder, PodHandle]:
    """A pod with a claim that its container uses."""
    s = TraceBuilder(featureGates=GATES)
    uses = {"claims": [{"name": "gpu"}]}
    web = s.pod(
        containers=[{"name": "c1", "image": "img:1", "resources": uses}],
        resourceClaims=[{"name": "gpu", "resourceClaimName": "fast"}],
    )
    return s, web


def prepare(s: TraceBuilder, *, error: str | None = None) -> None:
    """NodePrepareResources."""
    ready = [{"name": "fast", "CDI_devices": [DEVICE]}]
    s.call("NodePrepareResources", {"claims": CLAIMS}, {"claims": ready}, error=error)


def unprepare(s: TraceBuilder) -> None:
    """NodeUnprepareResources."""
    s.call("NodeUnprepareResources", {"claims": CLAIMS}, {})


def run(s: TraceBuilder, web: PodHandle, *devices: str) -> Any:
    """The sandbox and its container with these devices."""
    config = s.container_config(web, "c1", CDI_devices=[{"name": one} for one in devices])
    c1 = s.create(web, s.run_sandbox(web), config=config)
    s.start(c1)
    return c1


@detects("SYNC-18", begin=begin)
def test_failed_preparation_is_reported(s: TraceBuilder, web: PodHandle, *, right: bool) -> None:
    """SYNC-18 breaks when no event tells that resources could not be prepared."""
    prepare(s, error="UNAVAILABLE")
    if right:
        s.record("event", uid=web.uid, type="Warning", reason="FailedPrepareDynamicResources")
    s.wait(12)
    prepare(s)


@detects("SYNC-18", begin=begin)
def test_container_gets_its_devices(s: TraceBuilder, web: PodHandle, *, right: bool) -> None:
    """SYNC-18 breaks when a container is made without the device that it has claimed."""
    prepare(s)
    run(s, web, *([DEVICE] if right else []))


@pytest.mark.parametrize("wrong", ["too early", "after the status", "never"])
@detects("TERM-27", begin=begin)
def test_resources_are_given_back_last(s: TraceBuilder, web: PodHandle, wrong: str, *, right: bool) -> None:
    """TERM-27 breaks when resources go before the containers, after the terminal status, or not at all."""
    prepare(s)
    c1 = run(s, web, DEVICE)
    s.wait(5).delete(web)
    if not right and wrong == "too early":
        unprepare(s)
    s.stop(c1)
    if right:
        unprepare(s)
    if right or wrong != "never":
        s.status(web, "Succeeded")


def test_gate_opens_the_rules() -> None:
    """Where the feature gate is off there are no such rules."""
    s = TraceBuilder()
    s.pod()

    assert s.judge("SYNC-18").verdict is Verdict.NOT_APPLICABLE
