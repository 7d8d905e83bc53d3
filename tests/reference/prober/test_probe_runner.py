"""One execution of a probe."""

from collections.abc import Sequence
from typing import Any

import grpc
import pytest
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import EnvVar, EnvVarSource, ObjectFieldSelector
from msgspec.structs import replace
from observation import failure, probed_pod

from kubelet_fakes.clock import run
from kubelet_reference.api import pods
from kubelet_reference.api.events import Recorder
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.results import ProbeKind, ProbeOutcome
from kubelet_reference.cri.client import CriClient
from kubelet_reference.prober.network_probes import NetworkProbes
from kubelet_reference.prober.prober import ProbeRunner, ProbeTarget
from kubelet_reference.server.host.pod_network import RealPodNetwork
from kubelet_reference.util.ports import PodEvent

Reply = cri.ExecSyncResponse | grpc.RpcError


class Execs(CriClient):
    """Answers execs one after another and notes them."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, list[str], int]] = []

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_seconds: int = 0
    ) -> cri.ExecSyncResponse:
        """The next reply."""
        self.asked.append((container_id, list(command), timeout_seconds))
        reply = self.replies.pop(0)
        if isinstance(reply, grpc.RpcError):
            raise reply
        return reply


class Bench:
    """A runner over such answers."""

    def __init__(self, *replies: Reply) -> None:
        self.execs = Execs(*replies)
        self.events: list[PodEvent] = []
        self.metrics = Metrics()
        network = NetworkProbes(RealPodNetwork(), minor=32)
        self.runner = ProbeRunner(self.execs, network, lambda _: None, Recorder(self), self.metrics)

    def emit(self, event: PodEvent) -> None:
        """Take an event."""
        self.events.append(event)

    def probe(self, kind: ProbeKind = ProbeKind.LIVENESS, **fields: Any) -> ProbeOutcome | None:
        """Run the probe once on instance c1."""
        probes: dict[str, Any] = {kind.lower(): fields}
        pod = probed_pod(**probes)
        container = pods.containers(pod)[0]
        probe = getattr(container, f"{kind.lower()}Probe")
        return run(self.runner.run(ProbeTarget(kind, probe, pod, container, "c1")))

    @property
    def reported(self) -> list[str]:
        """The events in words."""
        return [f"{event.type} {event.reason} {event.field_path} {event.message}" for event in self.events]


def _exit(code: int, **output: bytes) -> cri.ExecSyncResponse:
    return cri.ExecSyncResponse(exit_code=code, **output)


def test_exit_code_0_is_success() -> None:
    """The command is run in the instance with the probe's time limit; 0 is success, without an event."""
    bench = Bench(_exit(0))

    assert bench.probe(timeoutSeconds=7) is ProbeOutcome.SUCCESS
    assert bench.execs.asked == [("c1", ["liveness"], 7)]
    assert bench.reported == []


def test_another_exit_code_is_failure() -> None:
    """Every failure is reported with the command's output, as the kubelet words it (PROBE-15, PROBE-22)."""
    bench = Bench(_exit(3, stdout=b"out ", stderr=b"err"))

    assert bench.probe(ProbeKind.READINESS) is ProbeOutcome.FAILURE
    assert bench.reported == ["Warning Unhealthy spec.containers{web} Readiness probe failed: out err"]


def test_a_timeout_is_failure() -> None:
    """A command that runs too long has failed and is not tried again (PROBE-15)."""
    bench = Bench(failure(grpc.StatusCode.DEADLINE_EXCEEDED))

    assert bench.probe() is ProbeOutcome.FAILURE
    assert bench.reported == [
        (
            "Warning Unhealthy spec.containers{web} Liveness probe failed: "
            'command timed out: "liveness" timed out after 1s'
        )
    ]


def test_an_error_of_the_runtime_is_no_outcome() -> None:
    """Three attempts, one event, and no outcome at all (PROBE-14); ids are not reported (EVENTS-03)."""
    bench = Bench(failure(), failure(), failure(text="no c1"))

    assert bench.probe() is None
    assert len(bench.execs.asked) == 3
    assert bench.reported == [
        (
            "Warning Unhealthy spec.containers{web} Liveness probe errored: "
            "rpc error: code = Internal desc = no web"
        )
    ]


@pytest.mark.parametrize(("code", "outcome"), [(0, ProbeOutcome.SUCCESS), (1, ProbeOutcome.FAILURE)])
def test_an_error_may_pass(code: int, outcome: ProbeOutcome) -> None:
    """The first attempt that the runtime answers counts (PROBE-14)."""
    bench = Bench(failure(), failure(), _exit(code))

    assert bench.probe() is outcome


def test_only_the_containers_own_values_are_filled_in() -> None:
    """References to plain values of env are replaced, others stay, and a doubled dollar is one (PROBE-21)."""
    bench = Bench(_exit(0))
    pod = probed_pod(liveness={"exec": {"command": ["$(A)", "x$(B)$(C)", "$$(A)", "$(D)", "$5"]}})
    field = EnvVarSource(fieldRef=ObjectFieldSelector(fieldPath="metadata.name"))
    env = [EnvVar(name="A", value="1"), EnvVar(name="B"), EnvVar(name="D", valueFrom=field)]
    container = replace(pods.containers(pod)[0], env=env)
    probe = container.livenessProbe
    assert probe is not None
    run(bench.runner.run(ProbeTarget(ProbeKind.LIVENESS, probe, pod, container, "c1")))

    assert bench.execs.asked[0][1] == ["1", "x$(C)", "$(A)", "$(D)", "$5"]


def test_outcomes_are_counted() -> None:
    """Each outcome is counted under the probe's kind and result."""
    bench = Bench(_exit(0), _exit(1))
    bench.probe()
    bench.probe()
    lines = bench.metrics.exposition().decode().splitlines()
    labels = 'container="web",namespace="default",pod="a",probe_type="Liveness"'

    assert f'prober_probe_total{{{labels},result="successful"}} 1.0' in lines
    assert f'prober_probe_total{{{labels},result="failed"}} 1.0' in lines
