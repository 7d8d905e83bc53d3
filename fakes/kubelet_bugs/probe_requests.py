"""Bugs of probes over the network: whom they ask, and what they make of the answer."""

from __future__ import annotations

from urllib.parse import urljoin

from lightkube.models.core_v1 import GRPCAction, TCPSocketAction
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference.network_probes import NetworkProbes
from kubelet_reference.parts import Parts
from kubelet_reference.pods import AnyContainer
from kubelet_reference.ports import HttpAnswer
from kubelet_reference.probe_runner import ProbeRunner, ProbeTarget
from kubelet_reference.results import Answer


class _GoesAnywhere(NetworkProbes):
    """Follows every redirect, wherever it leads."""

    async def _followed(self, url: str, headers: dict[str, str], seconds: int) -> HttpAnswer:
        answer = await super()._followed(url, headers, seconds)
        if not answer.location:
            return answer
        return await self._followed(urljoin(url, answer.location), headers, seconds)


class _OnlyTheBest(NetworkProbes):
    """Takes no answer for healthy but one with status 200."""

    def is_healthy(self, status: int) -> bool:
        return status == 200  # noqa: PLR2004 - OK


class _RepeatsWhatWasSaid(NetworkProbes):
    """Tells what the server said when it failed."""

    def _failure(self, answer: HttpAnswer) -> str:
        return f"{super()._failure(answer)}: {answer.body}"


class _WaitsForAWord(NetworkProbes):
    """Takes a connection on which the server says nothing for a failure."""

    async def tcp(
        self, container: AnyContainer, action: TCPSocketAction, pod_ip: str, seconds: int
    ) -> Answer:
        found = await super().tcp(container, action, pod_ip, seconds)
        return replace(found, healthy=False, output=found.output or "read: EOF")


class _OldServersAreFine(NetworkProbes):
    """Takes a server that knows of no health checks for a healthy one."""

    async def grpc(self, action: GRPCAction, pod_ip: str, seconds: int) -> Answer:
        found = await super().grpc(action, pod_ip, seconds)
        return replace(found, healthy=found.healthy or "does not implement" in found.output)


class _AsksTheNode(ProbeRunner):
    """Takes the node itself for every pod."""

    def _pod_ip(self, target: ProbeTarget) -> str:
        del target
        return "127.0.0.1"


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-PROBE-16",
        "A probe follows redirects to other hosts.",
        lambda: Parts(network_probes=_GoesAnywhere),
        ("PROBE-16",),
    ),
    Bug(
        "MUT-PROBE-16-B",
        "A probe succeeds with no status but 200.",
        lambda: Parts(network_probes=_OnlyTheBest),
        ("PROBE-16",),
    ),
    Bug(
        "MUT-PROBE-17",
        "An event repeats what a server said when it failed.",
        lambda: Parts(network_probes=_RepeatsWhatWasSaid),
        ("PROBE-17",),
    ),
    Bug(
        "MUT-PROBE-18",
        "A connection on which nothing is said is a failure.",
        lambda: Parts(network_probes=_WaitsForAWord),
        ("PROBE-18",),
    ),
    Bug(
        "MUT-PROBE-19",
        "A server that knows of no health checks is healthy.",
        lambda: Parts(network_probes=_OldServersAreFine),
        ("PROBE-19",),
    ),
    Bug(
        "MUT-PROBE-20",
        "Probes are sent to the node instead of the pod.",
        lambda: Parts(probe_runner=_AsksTheNode),
        ("PROBE-20",),
    ),
)
