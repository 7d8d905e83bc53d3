"""SIDECAR contracts on the gate, on failing starts, on probes and on turns: kept and broken by traces."""

from collections.abc import Iterable
from typing import Any

import pytest
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

STARTUP = {"exec": {"command": ["up"]}, "failureThreshold": 2}
LIVENESS = {"exec": {"command": ["well"]}, "failureThreshold": 1}
FORBIDDEN = "InitContainerRestartPolicyForbidden"


def pod(s: TraceBuilder, *, policy: str = "Always", **more: Any) -> tuple[PodHandle, SandboxHandle]:
    """A pod with the sidecars s1, which has `more`, and s2, with grace 10; and its sandbox."""
    s1 = {"name": "s1", "image": "img:1", "restartPolicy": "Always", **more}
    web = s.pod(
        initContainers=[s1, {**s1, "name": "s2"}], restartPolicy=policy, terminationGracePeriodSeconds=10
    )
    return web, s.run_sandbox(web)


def served(s: TraceBuilder, **more: Any) -> tuple[PodHandle, SandboxHandle, dict[str, ContainerHandle]]:
    """The same when all its containers run; these by name."""
    web, sandbox = pod(s, **more)
    return web, sandbox, {name: s.run_container(web, sandbox, name) for name in ("s1", "s2", "c1")}


def probe(s: TraceBuilder, one: ContainerHandle, command: str, code: int = 0) -> None:
    """ExecSync of a probe, with its exit code."""
    request = {"container_id": one.id, "cmd": [command], "timeout": "1"}
    s.call("ExecSync", request, {"exit_code": code} if code else {})


@pytest.mark.parametrize("wrong", ["ignored", "run"])
@pytest.mark.parametrize(
    ("version", "gates"), [("1.28", {}), ("1.32", {"SidecarContainers": False})], ids=["alpha", "off"]
)
def test_sidecars_are_refused_without_the_gate(version: str, gates: dict[str, bool], wrong: str) -> None:
    """SIDECAR-01 breaks when a pod with a sidecar is left alone, or run, though the gate is off."""

    def tell(*, right: bool) -> TraceBuilder:
        s = TraceBuilder(version, featureGates=gates)
        web = s.wait(2).pod(initContainers=[{"name": "s1", "image": "img:1", "restartPolicy": "Always"}])
        if right:
            s.wait(1).status(web, "Failed", reason=FORBIDDEN, message="Pod was rejected")
        elif wrong == "run":
            s.run_sandbox(web)
        return s

    assert tell(right=True).judge("SIDECAR-01").verdict is Verdict.KEPT
    assert tell(right=False).judge("SIDECAR-01").verdict is Verdict.BROKEN


@pytest.mark.parametrize(("begins", "waits", "breaks"), [(2, 12, False), (2, 14, True), (20, 6, True)])
def test_refusal_may_wait_for_the_first_batch(begins: float, waits: float, *, breaks: bool) -> None:
    """SIDECAR-01: only a kubelet that has just started holds the phase of a refused pod back."""
    s = TraceBuilder("1.28")
    web = s.wait(begins).pod(initContainers=[{"name": "s1", "image": "img:1", "restartPolicy": "Always"}])
    s.wait(waits).status(web, "Failed", reason=FORBIDDEN, message="Pod was rejected")

    assert bool(s.judge("SIDECAR-01").breaks) is breaks


@pytest.mark.parametrize("version", ["1.28", "1.32"])
def test_gate_that_is_on_lets_sidecars_run(version: str) -> None:
    """SIDECAR-01 says nothing where the gate is on, by itself or by the operator."""
    s = TraceBuilder(version, featureGates={"SidecarContainers": True} if version == "1.28" else {})
    served(s.wait(2))

    assert s.judge("SIDECAR-01").verdict is Verdict.NOT_EXERCISED


@pytest.mark.parametrize("wrong", ["left", "followed", "not made again", "followed before it is made again"])
@detects("SIDECAR-05")
def test_failed_startup_makes_a_sidecar_again(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SIDECAR-05 breaks when a sidecar that does not start is left, or what comes next is made."""
    web, sandbox = pod(s, startupProbe=STARTUP)
    s1 = s.run_container(web, sandbox, "s1")
    probe(s, s1, "up", 1)
    probe(s.wait(1), s1, "up", 1)
    if right or "made again" in wrong:
        s.stop(s1, 10)
    if right:
        s.run_container(web, sandbox, "s1", attempt=1)
    elif "followed" in wrong:
        s.run_container(web, sandbox, "s2")


@pytest.mark.parametrize("rpc", ["CreateContainer", "StartContainer"])
@detects("SIDECAR-08")
def test_failing_sidecar_holds_up_no_other(s: TraceBuilder, rpc: str, *, right: bool) -> None:
    """SIDECAR-08 breaks when a sidecar is not made again for as long as one before it cannot be."""
    web, sandbox, one = served(s)
    s.wait(5).exited(one["s1"], 1)
    s.exited(one["s2"], 1)
    if rpc == "CreateContainer":
        s.create(web, sandbox, "s1", attempt=1, error="INTERNAL")
    else:
        s.start(s.create(web, sandbox, "s1", attempt=1), error="INTERNAL")
    if right:
        s.run_container(web, sandbox, "s2", attempt=1)


@pytest.mark.parametrize("wrong", ["out of turn", "twice"])
@detects("SIDECAR-25")
def test_probes_kill_nothing_in_the_end(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SIDECAR-25 breaks when a sidecar of a pod that goes is stopped because its probe fails."""
    web, _, one = served(s, livenessProbe=LIVENESS)
    s.delete(web, 10)
    stop = s.begin("StopContainer", {"container_id": one["c1"].id, "timeout": "10"})
    probe(s.wait(1), one["s1"], "well", 1)
    if not right and wrong == "out of turn":
        s.stop(one["s1"], 10)
    s.exited(one["c1"], 0, seen=False)
    s.end("StopContainer", stop)
    s.stop(one["s2"], 9)
    first = s.begin("StopContainer", {"container_id": one["s1"].id, "timeout": "9"})
    if not right and wrong == "twice":
        s.begin("StopContainer", {"container_id": one["s1"].id, "timeout": "9"})
    s.end("StopContainer", first)


@pytest.mark.parametrize("first", ["s2", "c1"])
@detects("SIDECAR-26")
def test_ended_apps_do_not_prove_initialization(s: TraceBuilder, first: str, *, right: bool) -> None:
    """SIDECAR-26 breaks when an app container opens a new sandbox, or comes before the last sidecar."""
    web, sandbox, one = served(s)
    for container in one.values():
        s.exited(container, 255)
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    again = s.run_sandbox(web, attempt=1)
    s.run_container(web, again, "s1", attempt=1)
    if right:
        s.run_container(web, again, "s2", attempt=0)
    elif first == "s2":
        s.create(web, again, "s2")
    s.run_container(web, again, "c1", attempt=1)


def killing(s: TraceBuilder, web: PodHandle, names: Iterable[str]) -> None:
    """The events of the kill of these containers, a moment after it has begun."""
    for name in names:
        fields = {"uid": web.uid, "type": "Normal", "reason": "Killing", "message": "", "count": 1}
        s.wait(0.01).record("event", **fields, container=f"spec.containers{{{name}}}")


@pytest.mark.parametrize(("late", "breaks"), [(False, False), (True, True)])
def test_events_of_sidecars_do_not_wait_for_their_turn(*, late: bool, breaks: bool) -> None:
    """SIDECAR-27: on wall time an event is posted beside the first stop, and not when the sidecar stops."""
    s = TraceBuilder(clock="wall")
    web, _, one = served(s)
    s.wait(1).delete(web, 30)
    first = s.begin("StopContainer", {"container_id": one["c1"].id, "timeout": "30"})
    if not late:
        killing(s, web, one)
    s.wait(4).end("StopContainer", first, {})
    s.exited(one["c1"], 0)
    last = s.begin("StopContainer", {"container_id": one["s1"].id, "timeout": "26"})
    if late:
        killing(s, web, one)
    s.wait(1).end("StopContainer", last, {})
    s.exited(one["s1"], 0)

    assert bool(s.judge("SIDECAR-27").breaks) is breaks


@detects("SIDECAR-27", if_right=Verdict.NOT_EXERCISED, is_back=(True, False))
def test_file_that_is_back_at_once_kills_nothing(s: TraceBuilder, *, is_back: bool) -> None:
    """SIDECAR-27 asks nothing for a static pod whose file is written again before anybody has looked."""
    inits = [{"name": "s1", "image": "img:1", "restartPolicy": "Always"}]
    web = s.pod(source="file", initContainers=inits)
    sandbox = s.run_sandbox(web)
    for name in ("s1", "c1"):
        s.run_container(web, sandbox, name)
    s.wait(1).unset(web)
    if is_back:
        s.set(web)
    s.wait(60).call("ListContainers", {}, {})


def test_sidecars_may_be_probed_to_the_end() -> None:
    """PROBE-13 is about app containers: nothing comes of what those of sidecars find."""
    s = TraceBuilder()
    web, _, one = served(s, livenessProbe=LIVENESS)
    s.delete(web, 10)
    for _ in range(8):
        probe(s.wait(1), one["s1"], "well")
    s.stop(one["s1"], 2)

    assert s.judge("PROBE-13").verdict is not Verdict.BROKEN
