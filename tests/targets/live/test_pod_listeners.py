"""The servers of pods whose addresses are loopback addresses: clients reach them, and it is on the record."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2 as cri
from on_loop import on_loop

from kubelet_conformance.targets.cri_endpoint import connected
from kubelet_conformance.targets.live.pod_listeners import ListeningPodServers
from kubelet_conformance.targets.live.private_runtimes import own_fake
from kubelet_conformance.trace.format.recorder import Item, Recorder
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.server.host.pod_network import RealPodNetwork
from kubelet_reference.util.ports import FetchError, PlainAnswerError

PROBES: list[dict[str, Any]] = [
    {"readinessProbe": {"httpGet": {"port": "web"}}, "ports": [{"name": "web", "containerPort": 8080}]},
    {"readinessProbe": {"tcpSocket": {"port": 7001}}},
    {"livenessProbe": {"grpc": {"port": 9000}}},
    {"lifecycle": {"postStart": {"httpGet": {"port": 8443, "path": "begun", "scheme": "HTTPS"}}}},
]


@asynccontextmanager
async def served(tmp_path: Path) -> AsyncGenerator[tuple[str, ListeningPodServers, Recorder]]:
    """The address of a static pod of which a container runs, its servers, and the record."""
    recorder = Recorder(lambda: 0.0)
    async with (
        own_fake(tmp_path / "cri.sock") as fake,
        connected(fake.socket) as endpoint,
        fake.servers(recorder, "node-1") as servers,
    ):
        metadata = {"name": "web", "namespace": "default", "uid": "u1"}
        manifest = {"metadata": metadata, "spec": {"containers": PROBES}}
        recorder.record("pod", op="set", source="file", pod=manifest)
        config = cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(name="web-node-1", namespace="default", uid="u1")
        )
        request = cri.RunPodSandboxRequest(config=config)
        call = recorder.call("RunPodSandbox", request)
        made = await endpoint.services.RunPodSandbox(request)
        app = await endpoint.services.CreateContainer(
            cri.CreateContainerRequest(
                pod_sandbox_id=made.pod_sandbox_id,
                sandbox_config=config,
                config=cri.ContainerConfig(
                    metadata=cri.ContainerMetadata(name="c1"),
                    image=cri.ImageSpec(image="img:1"),
                    command=["run"],
                ),
            )
        )
        await endpoint.services.StartContainer(cri.StartContainerRequest(container_id=app.container_id))
        recorder.reply(call, made)
        asked = cri.PodSandboxStatusRequest(pod_sandbox_id=made.pod_sandbox_id)
        status = await endpoint.services.PodSandboxStatus(asked)
        await LoopClock(0).sleep(0.1)
        yield status.status.network.ip, servers, recorder


def outcomes(recorder: Recorder) -> list[tuple[str, str]]:
    """The handler and the outcome of each request."""
    probes = [one.fields for one in recorder.records if isinstance(one, Item) and one.kind == "probe"]
    assert all(each["uid"] == "u1" for each in probes)
    return [(each["handler"], each["outcome"]) for each in probes]


@on_loop
async def test_each_kind_of_probe_is_answered(tmp_path: Path) -> None:
    """Over HTTP, over TCP and of the health service; what a scenario sets is the answer."""
    async with served(tmp_path) as (ip, servers, recorder):
        network = RealPodNetwork()
        servers.answer_http("/away", 301, location="http://elsewhere.example/", body="gone")
        servers.answer_http("/mute", 0)
        servers.report_health("down", "NOT_SERVING")
        servers.report_health("old", "UNIMPLEMENTED")
        fine = await network.http_get(f"http://{ip}:8080/", {}, seconds=5)
        away = await network.http_get(f"http://{ip}:8080/away", {}, seconds=5)
        with pytest.raises(FetchError):
            await network.http_get(f"http://{ip}:8080/mute", {}, seconds=5)
        health = [await network.grpc_check(ip, 9000, name, seconds=5) for name in ("", "down")]
        with pytest.raises(FetchError, match="does not implement"):
            await network.grpc_check(ip, 9000, "old", seconds=5)

    assert (fine.status, away.status, away.location, away.body) == (
        200,
        301,
        "http://elsewhere.example/",
        "gone",
    )
    assert health == ["SERVING", "NOT_SERVING"]
    # The client asks a server that hangs up once more.
    assert list(dict.fromkeys(outcomes(recorder))) == [
        ("httpGet", "200"),
        ("httpGet", "301"),
        ("httpGet", "refused"),
        ("grpc", "SERVING"),
        ("grpc", "NOT_SERVING"),
        ("grpc", "UNIMPLEMENTED"),
    ]


@on_loop
async def test_ports_that_open_together_open_once(tmp_path: Path) -> None:
    """While a port is being opened others may be asked to open, as when two sandboxes start at once."""
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
    async with served(tmp_path) as (ip, servers, _):
        for is_open in (False, True):
            for port in (7001, 8080):
                servers.open_port(port, is_open=is_open)
            await LoopClock(0).sleep(0.1)
        answer = await RealPodNetwork().http_get(f"http://{ip}:8080/", {}, seconds=5)

    assert (answer.status, problems) == (200, [])


@on_loop
async def test_server_without_tls_says_so(tmp_path: Path) -> None:
    """Who speaks TLS to it is answered in plain HTTP."""
    async with served(tmp_path) as (ip, _, recorder):
        with pytest.raises(PlainAnswerError):
            await RealPodNetwork().http_get(f"https://{ip}:8443/begun", {}, seconds=5)

    assert outcomes(recorder) == [("httpGet", "plain")]


@on_loop
async def test_client_that_leaves_is_not_answered(tmp_path: Path) -> None:
    """An answer that takes longer than its client waits is none."""
    async with served(tmp_path) as (ip, servers, recorder):
        servers.answer_http("/", 200, delay=30)
        with pytest.raises(FetchError, match="deadline"):
            await RealPodNetwork().http_get(f"http://{ip}:8080/", {}, seconds=0.2)
        await LoopClock(0).sleep(0.1)

    assert outcomes(recorder) == [("httpGet", "unanswered")]


@on_loop
async def test_port_is_closed_and_opened(tmp_path: Path) -> None:
    """A closed port refuses; an open one takes connections, which is recorded."""
    async with served(tmp_path) as (ip, servers, recorder):
        network, clock = RealPodNetwork(), LoopClock(0)
        servers.open_port(7001, is_open=False)
        await clock.sleep(0.1)
        with pytest.raises(FetchError, match="refused"):
            await network.tcp_connect(ip, 7001, seconds=5)
        servers.open_port(7001, is_open=True)
        await clock.sleep(0.1)
        await network.tcp_connect(ip, 7001, seconds=5)
        await clock.sleep(0.1)

    assert outcomes(recorder) == [("tcpSocket", "open")]
