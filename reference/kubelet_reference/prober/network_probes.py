"""Probes over the pod's network: HTTP, TCP and gRPC (PROBE-16..20).

What keeps an answer from coming is a failure here, never an error: a server that is away is not healthy.
"""

import asyncio
from urllib.parse import urljoin, urlsplit

from lightkube.models.core_v1 import GRPCAction, HTTPGetAction, TCPSocketAction

from kubelet_reference.api.go_text import duration_text, quoted
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.requests import http_headers, http_url, port_number
from kubelet_reference.api.results import Answer
from kubelet_reference.util.ports import FetchError, HttpAnswer, PodNetwork

REDIRECTS_MAX = 10
_OK, _REDIRECT, _BAD = 200, 300, 400
_FOLLOWED = {301, 302, 303, 307, 308}


class NetworkProbes:
    """Carries such probes out; `pod_ip` in each call is the pod's address by its status, "" if it has none.

    Every method raises `PortError` where the spec names no port. `minor` is the version that the kubelet
    calls itself by, 32 of 1.32.
    """

    def __init__(self, network: PodNetwork, minor: int) -> None:
        self._network = network
        self._user_agent = f"kube-probe/1.{minor}"

    async def http(self, container: AnyContainer, action: HTTPGetAction, pod_ip: str, seconds: int) -> Answer:
        """A status from 200 to 399 is healthy; a redirect away from the host is one too, with a warning."""
        url = http_url(container, action, action.host or pod_ip)
        headers = http_headers(action, self._user_agent)
        try:
            async with asyncio.timeout(seconds):
                answer = await self._followed(url, headers, seconds)
        except TimeoutError:
            late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
            return Answer(healthy=False, output=f"Get {quoted(url)}: {late}")
        except FetchError as error:
            return Answer(healthy=False, output=f"Get {quoted(url)}: {error}")
        if not self.is_healthy(answer.status):
            return Answer(healthy=False, output=self._failure(answer))
        if answer.status >= _REDIRECT:
            text = f"Probe terminated redirects, Response body: {answer.body}"
            return Answer(healthy=True, output=text, warns=True)
        return Answer(healthy=True, output=answer.body)

    def is_healthy(self, status: int) -> bool:
        """Whether an answer with this status is a good one (PROBE-16)."""
        return _OK <= status < _BAD

    def _failure(self, answer: HttpAnswer) -> str:
        """The message for a bad reply; not the server's own text, which may be secret (PROBE-17)."""
        return f"HTTP probe failed with statuscode: {answer.status}"

    async def _followed(self, url: str, headers: dict[str, str], seconds: int) -> HttpAnswer:
        """The answer at the end of all redirects within the host."""
        for _ in range(REDIRECTS_MAX):
            answer = await self._network.http_get(url, headers, seconds=seconds)
            if answer.status not in _FOLLOWED or not answer.location:
                return answer
            onward = urljoin(url, answer.location)
            if urlsplit(onward).hostname != urlsplit(url).hostname:
                return answer
            url = onward
        raise FetchError(f"stopped after {REDIRECTS_MAX} redirects")

    async def tcp(
        self, container: AnyContainer, action: TCPSocketAction, pod_ip: str, seconds: int
    ) -> Answer:
        """A connection that can be opened is healthy (PROBE-18)."""
        port, host = port_number(container, action.port), action.host or pod_ip
        try:
            await self._network.tcp_connect(host, port, seconds=seconds)
        except FetchError as error:
            return Answer(healthy=False, output=str(error))
        return Answer(healthy=True, output="")

    async def grpc(self, action: GRPCAction, pod_ip: str, seconds: int) -> Answer:
        """SERVING is healthy, nothing else is; it is always the pod that is asked (PROBE-19)."""
        try:
            async with asyncio.timeout(seconds):
                status = await self._network.grpc_check(
                    pod_ip, action.port, action.service or "", seconds=seconds
                )
        except TimeoutError:
            late = f"timeout: health rpc did not complete within {duration_text(seconds)}"
            return Answer(healthy=False, output=late)
        except FetchError as error:
            return Answer(healthy=False, output=str(error))
        if status != "SERVING":
            return Answer(healthy=False, output=f"service unhealthy (responded with {quoted(status)})")
        return Answer(healthy=True, output="service healthy")
