"""Bugs of probes over the network: whom they ask, and what they make of the answer."""

from __future__ import annotations

from urllib.parse import urljoin

from lightkube.models.core_v1 import GRPCAction, TCPSocketAction
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.network_probes import NetworkProbes
from kubelet_reference.pods import AnyContainer
from kubelet_reference.ports import HttpAnswer
from kubelet_reference.probe_runner import ProbeRunner, ProbeTarget
from kubelet_reference.results import Answer


@bug("MUT-PROBE-16", breaks="PROBE-16")
class GoesAnywhere(NetworkProbes):
    """A probe follows redirects to other hosts."""

    async def _followed(self, url: str, headers: dict[str, str], seconds: int) -> HttpAnswer:
        answer = await super()._followed(url, headers, seconds)
        if not answer.location:
            return answer
        return await self._followed(urljoin(url, answer.location), headers, seconds)


@bug("MUT-PROBE-16-B", breaks="PROBE-16")
class OnlyTheBest(NetworkProbes):
    """A probe succeeds with no status but 200."""

    def is_healthy(self, status: int) -> bool:
        return status == 200  # noqa: PLR2004 - OK


@bug("MUT-PROBE-17", breaks="PROBE-17")
class RepeatsWhatWasSaid(NetworkProbes):
    """An event repeats what a server said when it failed."""

    def _failure(self, answer: HttpAnswer) -> str:
        return f"{super()._failure(answer)}: {answer.body}"


@bug("MUT-PROBE-18", breaks="PROBE-18")
class WaitsForAWord(NetworkProbes):
    """A connection on which nothing is said is a failure."""

    async def tcp(
        self, container: AnyContainer, action: TCPSocketAction, pod_ip: str, seconds: int
    ) -> Answer:
        found = await super().tcp(container, action, pod_ip, seconds)
        return structs.replace(found, healthy=False, output=found.output or "read: EOF")


@bug("MUT-PROBE-19", breaks="PROBE-19")
class OldServersAreFine(NetworkProbes):
    """A server that knows of no health checks is healthy."""

    async def grpc(self, action: GRPCAction, pod_ip: str, seconds: int) -> Answer:
        found = await super().grpc(action, pod_ip, seconds)
        return structs.replace(found, healthy=found.healthy or "does not implement" in found.output)


@bug("MUT-PROBE-20", breaks="PROBE-20")
class AsksTheNode(ProbeRunner):
    """Probes are sent to the node instead of the pod."""

    def _pod_ip(self, target: ProbeTarget) -> str:
        return "127.0.0.1"
