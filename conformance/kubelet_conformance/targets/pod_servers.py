"""The servers in a fake node's pods, as probes and hooks meet them over the network."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kubelet_reference.ports import FetchError, HttpAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from kubelet_conformance.trace.recorder import Recorder

__all__ = ("PodServers",)

_OK = 200


class PodServers:
    """A server of each kind in every pod of which a container runs, as `listens` tells of an address.

    HTTP is answered with 200 at every path, every port is open for TCP, and every gRPC service is SERVING,
    unless told otherwise. Fits the reference's ports `HttpGet` and `PodNetwork`.
    """

    def __init__(
        self,
        recorder: Recorder,
        listens: Callable[[str], bool],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._recorder = recorder
        self._listens = listens
        self._sleep = sleep
        self._answers: dict[str, tuple[HttpAnswer, float]] = {}
        self._closed: set[int] = set()
        self._health: dict[str, str] = {}

    def answer(self, path: str, status: int, location: str = "", delay: float = 0) -> None:
        """From now on answer requests for this path so, after `delay` seconds; status 0 refuses."""
        self._answers[path] = HttpAnswer(status, location), delay

    def open_port(self, port: int, *, is_open: bool) -> None:
        """From now on take or refuse TCP connections at this port."""
        (self._closed.discard if is_open else self._closed.add)(port)

    def report_health(self, service: str, status: str) -> None:
        """From now on answer health checks of this service so, such as NOT_SERVING; "" refuses."""
        self._health[service] = status

    async def get(self, url: str, headers: Mapping[str, str]) -> int:
        """The status of the answer to a hook; see `kubelet_reference.ports.HttpGet`."""
        return (await self._answer(url, headers)).status

    async def http_get(self, url: str, headers: Mapping[str, str], *, seconds: float) -> HttpAnswer:
        """One request of a probe; see `kubelet_reference.ports.PodNetwork`."""
        del seconds
        self._refuse_if_nobody_listens(urlsplit(url).hostname or "", urlsplit(url).port or 0)
        return await self._answer(url, headers)

    async def _answer(self, url: str, headers: Mapping[str, str]) -> HttpAnswer:
        del headers
        answer, delay = self._answers.get(urlsplit(url).path, (HttpAnswer(_OK), 0))
        if delay:
            await self._sleep(delay)
        self._record("httpGet", str(answer.status), url=url)
        if answer.status == 0:
            raise FetchError(f"Get {url!r}: connection refused")
        return answer

    async def tcp_connect(self, host: str, port: int, *, seconds: float) -> None:
        """One connection of a probe."""
        del seconds
        self._refuse_if_nobody_listens(host, port)
        self._record("tcpSocket", "refused" if port in self._closed else "open", host=host, port=port)
        if port in self._closed:
            raise _refused(host, port)

    async def grpc_check(self, host: str, port: int, service: str, *, seconds: float) -> str:
        """One health check."""
        del seconds
        self._refuse_if_nobody_listens(host, port)
        status = self._health.get(service, "SERVING")
        self._record("grpc", status or "refused", host=host, port=port, service=service)
        if not status:
            raise _refused(host, port)
        return status

    def _refuse_if_nobody_listens(self, host: str, port: int) -> None:
        if not self._listens(host):
            raise _refused(host, port)

    def _record(self, handler: str, outcome: str, **fields: str | int) -> None:
        self._recorder.record("probe", handler=handler, outcome=outcome, **fields)


def _refused(host: str, port: int) -> FetchError:
    return FetchError(f"dial tcp {host}:{port}: connect: connection refused")
