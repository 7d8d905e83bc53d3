"""Runs one probe: its handler, with retries, and the events that report it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import grpc
import msgspec
from lightkube.models.core_v1 import Container, ExecAction, GRPCAction, Pod, PodStatus, Probe

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason, Recorder
from kubelet_reference.api.expansion import expand
from kubelet_reference.api.go_text import duration_text, quoted, text_of
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.requests import PortError
from kubelet_reference.api.results import Answer, ProbeKind, ProbeOutcome
from kubelet_reference.cri.client import CriClient
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.prober.network_probes import NetworkProbes

ATTEMPTS = 3
"""How often a probe that cannot be carried out is tried at one tick (PROBE-14)."""
OUTPUT_BYTES = 10_240
"""So much of a command's output is kept."""


class ProbeTarget(msgspec.Struct, frozen=True):
    """Which probe of which instance of a container."""

    kind: ProbeKind
    probe: Probe
    pod: Pod
    container: Container
    container_id: str


@dataclass(eq=False)
class ProbeRunner:
    """Carries probes out; `stored_status` gives a pod's status, and so its address, by its UID."""

    client: CriClient
    network: NetworkProbes
    stored_status: Callable[[str], PodStatus | None]
    recorder: Recorder
    metrics: Metrics

    async def run(self, target: ProbeTarget) -> ProbeOutcome | None:
        """The outcome, or None if the probe could not be carried out: that is no failure (PROBE-14)."""
        answer = await self._attempts(target)
        if isinstance(answer, str):
            self._tell(target, f"{target.kind} probe errored: {answer}")
            return None
        self.metrics.probed(target.kind, target.container.name, target.pod, healthy=answer.healthy)
        if answer.warns:
            self._warn(target, f"{target.kind} probe warning: {answer.output}")
        if answer.healthy:
            return ProbeOutcome.SUCCESS
        # Each failure is an event of its own, whatever the threshold (PROBE-22).
        self._tell(target, f"{target.kind} probe failed: {answer.output}")
        return ProbeOutcome.FAILURE

    async def _attempts(self, target: ProbeTarget) -> Answer | str:
        """The first answer of three attempts, or the text of the last error."""
        text = ""
        for _ in range(ATTEMPTS):
            try:
                return await self._handle(target)
            except (grpc.RpcError, PortError) as error:
                text = wrapped_text(error)
        return text

    async def _handle(self, target: ProbeTarget) -> Answer:
        """Ask the probe's handler once."""
        probe, one, seconds = target.probe, target.container, target.probe.timeoutSeconds or 1
        if probe.exec is not None:
            return await self._exec(target, self._command(probe.exec, one), seconds)
        if probe.httpGet is not None:
            return await self.network.http(one, probe.httpGet, self._pod_ip(target), seconds)
        if probe.tcpSocket is not None:
            return await self.network.tcp(one, probe.tcpSocket, self._pod_ip(target), seconds)
        # A probe has one handler.
        return await self.network.grpc(cast("GRPCAction", probe.grpc), self._pod_ip(target), seconds)

    def _pod_ip(self, target: ProbeTarget) -> str:
        """The pod's address as its status has it (PROBE-20); "" if it has none."""
        status = self.stored_status(pods.uid(target.pod))
        return (status.podIP if status else None) or ""

    async def _exec(self, target: ProbeTarget, command: Sequence[str], seconds: int) -> Answer:
        """Run the command: exit code 0 is healthy, another is not, and neither is running too long."""
        try:
            reply = await self.client.exec_sync(target.container_id, command, seconds)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return self._too_slow(command, seconds)
            raise
        output = text_of((reply.stdout + reply.stderr)[:OUTPUT_BYTES])
        return Answer(reply.exit_code == 0, output)

    def _too_slow(self, command: Sequence[str], seconds: int) -> Answer:
        """A command that does not end in time is a failure (PROBE-15, since 1.20)."""
        text = f"command timed out: {quoted(' '.join(command))} timed out after {duration_text(seconds)}"
        return Answer(healthy=False, output=text)

    def _command(self, action: ExecAction, container: Container) -> list[str]:
        """The command with `$(NAME)` replaced by the values that the container's own env gives (PROBE-21)."""
        values = {one.name: one.value or "" for one in container.env or () if one.valueFrom is None}
        return [expand(word, values) for word in action.command or ()]

    def _tell(self, target: ProbeTarget, text: str) -> None:
        name, key = target.container.name, target.container_id
        self.recorder.warning(target.pod, Reason.UNHEALTHY, text, name, container_id=key)

    def _warn(self, target: ProbeTarget, text: str) -> None:
        self.recorder.warning(target.pod, Reason.PROBE_WARNING, text, target.container.name)
