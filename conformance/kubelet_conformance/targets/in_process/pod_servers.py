"""The servers in a fake node's pods, as probes and hooks meet them over the network."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.faults import Effect, Faults
from kubelet_reference.util.ports import FetchError, HttpAnswer, PlainAnswerError

_OK = 200


class PodServers:
    """A server of each kind in every pod of which a container runs; `listens` says so by address.

    `whose` gives the UID of the pod that has an address, "" if none has it.

    HTTP is answered with 200 at every path, every port is open for TCP, and every gRPC service is SERVING,
    by default. Faults hit requests by the names `httpGet /path`, `tcpSocket 80` and `grpc SERVICE`.
    Fits the reference's ports `HttpGet` and `PodNetwork`.
    """

    def __init__(
        self,
        recorder: Recorder,
        listens: Callable[[str], bool],
        whose: Callable[[str], str],
        sleep: Callable[[float], Awaitable[None]],
        faults: Faults,
    ) -> None:
        self._recorder = recorder
        self._listens = listens
        self._whose = whose
        self._sleep = sleep
        self._faults = faults
        self._answers: dict[str, tuple[HttpAnswer, float]] = {}
        self._plain: set[str] = set()
        self._closed: set[int] = set()
        self._health: dict[str, str] = {}
        self._headers: dict[str, dict[str, str]] = {}

    def headers(self, path: str) -> Mapping[str, str]:
        """The headers of the last request for this path, by names in lower case."""
        return self._headers.get(path, {})

    def answer_http(  # noqa: PLR0913 - each is a side of an answer
        self,
        path: str,
        status: int,
        *,
        location: str = "",
        delay: float = 0,
        body: str = "",
        plain: bool = False,
    ) -> None:
        """From now on answer requests for this path so, after `delay` seconds; status 0 refuses.

        A `plain` server knows no TLS.
        """
        self._answers[path] = HttpAnswer(status, location, body), delay
        (self._plain.add if plain else self._plain.discard)(path)

    def open_port(self, port: int, *, is_open: bool) -> None:
        """From now on take or refuse TCP connections at this port."""
        (self._closed.discard if is_open else self._closed.add)(port)

    def report_health(self, service: str, status: str) -> None:
        """From now on answer health checks of this service so, such as NOT_SERVING; "" refuses.

        With UNIMPLEMENTED the server knows of no health checks.
        """
        self._health[service] = status

    async def get(self, url: str, headers: Mapping[str, str]) -> int:
        """The status of the answer to a hook; see `kubelet_reference.util.ports.HttpGet`."""
        return (await self._answer(url, headers)).status

    async def http_get(self, url: str, headers: Mapping[str, str], *, seconds: float) -> HttpAnswer:
        """One request of a probe; see `kubelet_reference.util.ports.PodNetwork`."""
        del seconds
        return await self._answer(url, headers)

    async def _answer(self, url: str, headers: Mapping[str, str]) -> HttpAnswer:
        asked = urlsplit(url)
        host, port = asked.hostname or "", asked.port or 0
        about: dict[str, str | int] = {"url": url}
        given = {name.lower(): value for name, value in headers.items()}
        self._headers[asked.path] = {"host": asked.netloc, **given}
        if "authorization" in given:
            about["authorized"] = True
        await self._reach("httpGet", asked.path, host, port, about)
        if asked.scheme == "https" and asked.path in self._plain:
            self._record("httpGet", "plain", host, about)
            raise PlainAnswerError("server gave HTTP response to HTTPS client")
        answer, delay = self._answers.get(asked.path, (HttpAnswer(_OK), 0))
        if delay:
            await self._wait("httpGet", self._sleep(delay), host, about)
        said = {"location": answer.location, "text": answer.body}
        about |= {name: value for name, value in said.items() if value}
        self._record("httpGet", str(answer.status) if answer.status else "refused", host, about)
        if answer.status == 0:
            raise FetchError(f"Get {url!r}: connection refused")
        return answer

    async def tcp_connect(self, host: str, port: int, *, seconds: float) -> None:
        """One connection of a probe."""
        del seconds
        about = {"port": port}
        await self._reach("tcpSocket", str(port), host, port, about)
        self._record("tcpSocket", "refused" if port in self._closed else "open", host, about)
        if port in self._closed:
            raise _refused(host, port)

    async def grpc_check(self, host: str, port: int, service: str, *, seconds: float) -> str:
        """One health check."""
        del seconds
        about: dict[str, str | int] = {"port": port, "service": service}
        await self._reach("grpc", service, host, port, about)
        status = self._health.get(service, "SERVING")
        self._record("grpc", status or "refused", host, about)
        if status == "UNIMPLEMENTED":
            raise FetchError("error: this server does not implement the grpc health protocol")
        if not status:
            raise _refused(host, port)
        return status

    async def _reach(
        self, handler: str, what: str, host: str, port: int, about: Mapping[str, str | int]
    ) -> None:
        """Return when the server has the request; raises `FetchError` where it is refused."""
        delay, active = self._faults.on_call(f"{handler} {what}", {"uid": self._whose(host)})
        if delay:
            await self._wait(handler, self._sleep(delay), host, about)
        if active is not None and active.fault.effect in {Effect.HANG, Effect.LOST_REPLY}:
            await self._wait(handler, active.until_healed(), host, about)
        elif active is not None or not self._listens(host):
            self._record(handler, "refused", host, about)
            raise _refused(host, port)

    async def _wait(
        self, handler: str, wait: Awaitable[None], host: str, about: Mapping[str, str | int]
    ) -> None:
        """Take so long; the client may have left by then."""
        try:
            await wait
        except asyncio.CancelledError:
            self._record(handler, "unanswered", host, about)
            raise

    def _record(self, handler: str, outcome: str, host: str, about: Mapping[str, str | int]) -> None:
        owner = self._whose(host)
        whom = {"uid": owner} if owner else {}
        self._recorder.record("probe", handler=handler, outcome=outcome, host=host, **whom, **about)


def _refused(host: str, port: int) -> FetchError:
    return FetchError(f"dial tcp {host}:{port}: connect: connection refused")
