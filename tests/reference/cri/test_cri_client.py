"""Calls of the runtime: their deadlines, and the replies that are refused."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from cri_api.v1 import api_pb2 as cri
from runtime_world import RuntimeWorld, a_pod

from kubelet_fakes.clock import run
from kubelet_reference.cri.client import CriClient
from kubelet_reference.cri.errors import BadReply, NoStatus, error_text, is_not_found, wrapped_text
from kubelet_reference.util.settings import Settings


class Answering:
    """A runtime that answers every call with the same message."""

    def __init__(self, reply: object) -> None:
        self._reply = reply

    def __getattr__(self, rpc: str) -> Callable[..., Awaitable[object]]:
        async def answer(*_: object, **__: object) -> object:
            return self._reply

        return answer


def _client(reply: object) -> CriClient:
    runtime: Any = Answering(reply)
    return CriClient(runtime, runtime, Settings())


def test_deadlines() -> None:
    """Two minutes, four for a sandbox, the wait on top, none for an endless exec and a pull (CRI-32)."""

    async def play() -> dict[str, float | None]:
        world = RuntimeWorld()
        pod = a_pod()
        await world.sync(pod)
        container = (await world.newest(pod, "c1")).id
        await world.client.exec_sync(container, ["x", "0", "0"])
        await world.client.pull_image(cri.ImageSpec(image="img:1"), None, cri.PodSandboxConfig())
        await world.kill(pod, 45)
        return {call.rpc: call.timeout for call in world.runtime.calls}

    deadlines = run(play())

    assert deadlines["RunPodSandbox"] == 240
    assert deadlines["StopContainer"] == 165
    assert deadlines["ExecSync"] is None
    assert deadlines["PullImage"] is None
    assert {deadlines[rpc] for rpc in ("CreateContainer", "ListContainers", "ImageStatus")} == {120}


def _sandbox(**fields: Any) -> cri.PodSandboxStatusResponse:
    known: dict[str, Any] = {
        "id": "s1",
        "metadata": cri.PodSandboxMetadata(name="web", namespace="default", uid="u1"),
        "created_at": 1,
    }
    return cri.PodSandboxStatusResponse(status=cri.PodSandboxStatus(**(known | fields)))


def _container(**fields: Any) -> cri.ContainerStatusResponse:
    known: dict[str, Any] = {
        "id": "c1",
        "metadata": cri.ContainerMetadata(name="c1"),
        "created_at": 1,
        "image": cri.ImageSpec(image="img:1"),
        "image_ref": "sha256:1",
    }
    return cri.ContainerStatusResponse(status=cri.ContainerStatus(**(known | fields)))


def _ready(*kinds: str) -> cri.StatusResponse:
    conditions = [cri.RuntimeCondition(type=kind, status=True) for kind in kinds]
    return cri.StatusResponse(status=cri.RuntimeStatus(conditions=conditions))


REFUSED: list[tuple[Callable[[CriClient], Awaitable[object]], object]] = [
    (lambda c: c.sandbox_status("s1"), cri.PodSandboxStatusResponse()),
    (lambda c: c.sandbox_status("s1"), _sandbox(id="")),
    (lambda c: c.sandbox_status("s1"), _sandbox(created_at=0)),
    (lambda c: c.sandbox_status("s1"), _sandbox(metadata=cri.PodSandboxMetadata(name="web"))),
    (lambda c: c.container_status("c1"), cri.ContainerStatusResponse()),
    (lambda c: c.container_status("c1"), _container(image_ref="")),
    (lambda c: c.container_status("c1"), _container(created_at=0)),
    (lambda c: c.run_sandbox(cri.PodSandboxConfig()), cri.RunPodSandboxResponse()),
    (
        lambda c: c.create_container("s1", cri.ContainerConfig(), cri.PodSandboxConfig()),
        cri.CreateContainerResponse(),
    ),
    (lambda c: c.image_status(cri.ImageSpec(image="i")), cri.ImageStatusResponse(image=cri.Image(id="1"))),
    (lambda c: c.status(), _ready("RuntimeReady")),
    (lambda c: c.status(), cri.StatusResponse()),
    (lambda c: c.version(), cri.VersionResponse(version="0.2.0")),
]


@pytest.mark.parametrize(("call", "reply"), REFUSED, ids=range(len(REFUSED)))
def test_bad_replies(call: Callable[[CriClient], Awaitable[object]], reply: object) -> None:
    """A reply without what the kubelet needs is an error, not an empty answer (CRI-34)."""

    async def play() -> None:
        await call(_client(reply))

    with pytest.raises(BadReply):
        run(play())


def test_good_replies() -> None:
    """What is whole is believed; an absent image is None (CRI-23)."""

    async def play() -> tuple[str, str, cri.Image | None, int]:
        return (
            (await _client(_sandbox()).sandbox_status("s1")).id,
            (await _client(_container()).container_status("c1")).id,
            await _client(cri.ImageStatusResponse()).image_status(cri.ImageSpec(image="i")),
            len((await _client(_ready("RuntimeReady", "NetworkReady")).status()).conditions),
        )

    assert run(play()) == ("s1", "c1", None, 2)


def test_error_texts() -> None:
    """Errors are reported with and without gRPC's wrapper; a bad reply has none (START-03)."""
    empty = grpc.aio.Metadata()
    late = grpc.aio.AioRpcError(grpc.StatusCode.DEADLINE_EXCEEDED, empty, empty, details="too late")

    assert error_text(late) == "too late"
    assert wrapped_text(late) == "rpc error: code = DeadlineExceeded desc = too late"
    assert wrapped_text(NoStatus("nothing")) == "nothing"
    assert not is_not_found(late)


def test_operations_are_counted() -> None:
    """Calls and failures are counted by the kubelet's own names for them."""

    async def play() -> RuntimeWorld:
        world = RuntimeWorld()
        world.runtime.faults.add("StartContainer", times=1)
        await world.sync(a_pod())
        return world

    count = run(play()).metrics.registry.get_sample_value

    assert count("kubelet_runtime_operations_total", {"operation_type": "run_podsandbox"}) == 1
    assert count("kubelet_runtime_operations_errors_total", {"operation_type": "start_container"}) == 1
