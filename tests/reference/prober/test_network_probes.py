"""Probes over the network: HTTP, TCP and gRPC."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from lightkube.models.core_v1 import (
    Container,
    ContainerPort,
    GRPCAction,
    HTTPGetAction,
    HTTPHeader,
    TCPSocketAction,
)

from kubelet_fakes.clock import run
from kubelet_reference.api.requests import PortError
from kubelet_reference.api.results import Answer
from kubelet_reference.prober.network_probes import NetworkProbes
from kubelet_reference.server.host.pod_network import RealPodNetwork
from kubelet_reference.util.ports import FetchError, HttpAnswer

IP = "10.1.2.3"
WEB = Container(name="web", ports=[ContainerPort(containerPort=8080, name="http")])


class Network:
    """Answers by URL; what is not set refuses, and "hang" never answers."""

    def __init__(self, answers: Mapping[str, HttpAnswer | str], health: str = "SERVING") -> None:
        self.answers = answers
        self.health = health
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def http_get(self, url: str, headers: Mapping[str, str], *, seconds: float) -> HttpAnswer:
        """The answer of this URL."""
        del seconds
        self.asked.append((url, dict(headers)))
        found = self.answers.get(url, "connection refused")
        if found == "hang":
            await asyncio.Event().wait()
        if isinstance(found, str):
            raise FetchError(found)
        return found

    async def tcp_connect(self, host: str, port: int, *, seconds: float) -> None:
        """Open if the port is among the answers."""
        await self.http_get(f"{host}:{port}", {}, seconds=seconds)

    async def grpc_check(self, host: str, port: int, service: str, *, seconds: float) -> str:
        """The health, where the address and service are among the answers."""
        await self.http_get(f"{host}:{port}/{service}", {}, seconds=seconds)
        return self.health


def http(network: Network, pod_ip: str = IP, **fields: Any) -> Answer:
    """What comes of one HTTP probe."""
    wanted: dict[str, Any] = {"port": 80, "path": "/ready"} | fields
    action = HTTPGetAction(**wanted)
    return run(NetworkProbes(network, 32).http(WEB, action, pod_ip, 1))


@pytest.mark.parametrize(("status", "healthy"), [(199, 0), (200, 1), (204, 1), (399, 1), (400, 0), (500, 0)])
def test_statuses_from_200_to_399_are_healthy(status: int, healthy: int) -> None:
    """A status from 200 to 399 is a success, every other a failure (PROBE-16)."""
    assert http(Network({f"http://{IP}:80/ready": HttpAnswer(status)})).healthy is bool(healthy)


def test_the_body_of_a_failure_is_not_reported() -> None:
    """A failure tells the status alone: a body may hold a secret (PROBE-17)."""
    answer = http(Network({f"http://{IP}:80/ready": HttpAnswer(500, body="password=1")}))

    assert answer == Answer(healthy=False, output="HTTP probe failed with statuscode: 500")


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({}, f"http://{IP}:80/ready"),
        ({"host": "other.example"}, "http://other.example:80/ready"),
        ({"scheme": "HTTPS", "port": "http"}, f"https://{IP}:8080/ready"),
        ({"port": 81, "path": "a?b=c"}, f"http://{IP}:81/a?b=c"),
        ({"path": None}, f"http://{IP}:80/"),
        ({"host": "fd00::1"}, "http://[fd00::1]:80/ready"),
    ],
)
def test_the_request_goes_to_the_pod(fields: dict[str, Any], url: str) -> None:
    """The host is the pod's address unless one is named, a port's name is the container's own (PROBE-20)."""
    network = Network({url: HttpAnswer(200)})

    assert http(network, **fields).healthy
    assert network.asked == [(url, {"User-Agent": "kube-probe/1.32", "Accept": "*/*"})]


def test_a_header_of_the_spec_wins() -> None:
    """What the spec sets replaces what every probe carries, however it is spelled."""
    network = Network({f"http://{IP}:80/ready": HttpAnswer(200)})
    http(network, httpHeaders=[HTTPHeader("user-agent", "me"), HTTPHeader("X", "1")])

    assert network.asked[0][1] == {"Accept": "*/*", "User-Agent": "me", "X": "1"}


def test_a_redirect_within_the_host_is_followed() -> None:
    """A redirect to the same host is followed, and its end counts."""
    there = {f"http://{IP}:80/ready": HttpAnswer(302, "/new"), f"http://{IP}:80/new": HttpAnswer(500)}

    assert not http(Network(there)).healthy


def test_a_redirect_to_another_host_is_healthy_with_a_warning() -> None:
    """A redirect elsewhere is not followed: a success that is warned of (PROBE-16)."""
    network = Network({f"http://{IP}:80/ready": HttpAnswer(301, "http://elsewhere/", "moved")})
    answer = http(network)

    assert answer == Answer(
        healthy=True, output="Probe terminated redirects, Response body: moved", warns=True
    )
    assert len(network.asked) == 1


def test_redirects_in_a_circle_end() -> None:
    """After ten redirects it is a failure."""
    network = Network({f"http://{IP}:80/ready": HttpAnswer(302, "/ready")})
    answer = http(network)

    assert answer.output == f'Get "http://{IP}:80/ready": stopped after 10 redirects'
    assert len(network.asked) == 10


@pytest.mark.parametrize(
    ("trouble", "reported"),
    [
        ("dial tcp: refused", "dial tcp: refused"),
        ("hang", "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
    ],
)
def test_no_answer_is_a_failure(trouble: str, reported: str) -> None:
    """What keeps an answer from coming, or comes too late, is a failure and no error (PROBE-16)."""
    answer = http(Network({f"http://{IP}:80/ready": trouble}))

    assert answer == Answer(healthy=False, output=f'Get "http://{IP}:80/ready": {reported}')


def test_a_port_that_is_none_is_an_error() -> None:
    """A port that the container does not have is no failure: the probe cannot be carried out (PROBE-14)."""
    with pytest.raises(PortError, match='couldn\'t find port "nope" in container web'):
        http(Network({}), port="nope")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({f"{IP}:8080": HttpAnswer(0)}, Answer(healthy=True, output="")),
        ({}, Answer(healthy=False, output="connection refused")),
    ],
)
def test_an_open_port_is_healthy(answers: dict[str, HttpAnswer | str], expected: Answer) -> None:
    """A TCP probe asks for no more than a connection (PROBE-18)."""
    probes = NetworkProbes(Network(answers), 32)

    assert run(probes.tcp(WEB, TCPSocketAction(port="http"), IP, 1)) == expected


@pytest.mark.parametrize(
    ("answers", "health", "expected"),
    [
        ({f"{IP}:9/s": HttpAnswer(0)}, "SERVING", Answer(healthy=True, output="service healthy")),
        (
            {f"{IP}:9/s": HttpAnswer(0)},
            "NOT_SERVING",
            Answer(healthy=False, output='service unhealthy (responded with "NOT_SERVING")'),
        ),
        ({}, "SERVING", Answer(healthy=False, output="connection refused")),
        (
            {f"{IP}:9/s": "hang"},
            "SERVING",
            Answer(healthy=False, output="timeout: health rpc did not complete within 1s"),
        ),
    ],
)
def test_only_serving_is_healthy(answers: dict[str, HttpAnswer | str], health: str, expected: Answer) -> None:
    """A gRPC probe asks the pod itself, and SERVING is its only success (PROBE-19)."""
    probes = NetworkProbes(Network(answers, health), 32)

    assert run(probes.grpc(GRPCAction(port=9, service="s"), IP, 1)) == expected


# The real network, on loopback.


async def _with_server(reply: bytes, use: Callable[[int], Awaitable[Any]]) -> Any:
    """What `use` says of a server on a port of this machine that answers each connection so."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        return await use(server.sockets[0].getsockname()[1])


def _asked(reply: bytes, path: str = "/") -> HttpAnswer:
    def ask(port: int) -> Awaitable[HttpAnswer]:
        return RealPodNetwork().http_get(f"http://127.0.0.1:{port}{path}", {"A": "b"}, seconds=30)

    answer: HttpAnswer = asyncio.run(_with_server(reply, ask))
    return answer


def test_a_real_answer_is_read() -> None:
    """Status, place and the beginning of the body come back; a redirect is not followed."""
    body = b"x" * 20_000
    head = b"HTTP/1.1 302 Found\r\nLocation: http://other/\r\nContent-Length: 20000\r\n\r\n"
    answer = _asked(head + body)

    assert (answer.status, answer.location) == (302, "http://other/")
    assert set(answer.body) == {"x"}
    assert len(answer.body) <= 10_240


def test_rubbish_is_no_answer() -> None:
    """A server that does not speak HTTP gives an error with a text."""
    with pytest.raises(FetchError, match=r"."):
        _asked(b"220 mail\r\n\r\n")


def _closed_port() -> int:
    async def find() -> int:
        server = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0)
        async with server:
            port: int = server.sockets[0].getsockname()[1]
            return port

    return asyncio.run(find())


def test_a_closed_port_is_reported_as_go_tells_it() -> None:
    """Nobody at the port reads as in the kubelet's own events, whatever the protocol."""
    port = _closed_port()
    network = RealPodNetwork()
    reported = f"dial tcp 127.0.0.1:{port}: connect: connection refused"

    with pytest.raises(FetchError) as tcp:
        asyncio.run(network.tcp_connect("127.0.0.1", port, seconds=30))
    with pytest.raises(FetchError) as web:
        asyncio.run(network.http_get(f"http://127.0.0.1:{port}/", {}, seconds=30))
    assert str(tcp.value) == reported
    assert str(web.value) == reported


async def _health(service: str) -> str:
    """What a real health server says of a service; it knows "up" only."""

    async def check(request: health_pb2.HealthCheckRequest, context: Any) -> health_pb2.HealthCheckResponse:
        if request.service != "up":
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "not me")
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)

    handler = grpc.unary_unary_rpc_method_handler(
        check,
        request_deserializer=health_pb2.HealthCheckRequest.FromString,
        response_serializer=health_pb2.HealthCheckResponse.SerializeToString,
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        return await RealPodNetwork().grpc_check("127.0.0.1", port, service, seconds=30)
    finally:
        await server.stop(None)


def test_a_real_health_server_is_asked() -> None:
    """Its answer comes back by name; a server without health checks is reported as such (PROBE-19)."""
    assert asyncio.run(_health("up")) == "SERVING"
    with pytest.raises(FetchError, match="does not implement the grpc health protocol"):
        asyncio.run(_health("other"))
