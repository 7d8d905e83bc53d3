"""A real client and a real server of gRPC with the tap in between: all is passed, and all is observed."""

import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message
from pod_life import container, sandbox, stubs
from tapped import Tapped, serving

from kubelet_conformance.contract.checking import judge_file
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.tap.events import Answered, CallBegan, CallEnded, Observation
from kubelet_conformance.tap.messages import as_json, method
from kubelet_conformance.tap.relay import Relay
from kubelet_conformance.trace.format.header import Channels, Header
from kubelet_conformance.trace.format.writer import Writer
from kubelet_fakes.runtime.serving.methods import METHODS

OK = "OK"
V1 = "runtime.v1.RuntimeService"


async def outcome(call: Any) -> tuple[list[bytes], str]:
    """What a client receives: the messages of a unary answer, and the code."""
    try:
        return [(await call).SerializeToString()], OK
    except grpc.aio.AioRpcError as error:
        return [], error.code().name


def test_every_method_passes_and_is_observed(tmp_path: Path) -> None:
    """Whatever is answered to an empty request, the client and the tap receive the same bytes and codes."""
    seen: list[tuple[str, bytes, list[bytes], str]] = []

    async def ask(_: Tapped, runtime: Any, images: Any) -> None:
        for each in METHODS:
            stub = runtime if each.service.endswith("RuntimeService") else images
            call = getattr(stub, each.name)(each.request())
            if each.streams:
                await call.initial_metadata()
                call.cancel()
                seen.append((each.name, b"", [], "CANCELLED"))
            else:
                seen.append((each.name, b"", *await outcome(call)))

    world = Tapped.played(tmp_path, ask)

    assert len(seen) == 35
    assert sorted(world.calls()) == sorted(seen)
    services = {each.service for each in world.observed if isinstance(each, CallBegan)}
    assert services == {V1, "runtime.v1.ImageService"}


async def life(runtime: Any, images: Any, *, seen: list[tuple[str, bytes, list[bytes], str]]) -> None:
    """A pod's life; what the client receives for each call is added to `seen`."""

    async def ask(stub: Any, rpc: str, request: Any) -> Any:
        reply = await getattr(stub, rpc)(request, timeout=60)
        seen.append((rpc, request.SerializeToString(), [reply.SerializeToString()], OK))
        return reply

    await ask(runtime, "Version", cri.VersionRequest(version="0.1.0"))
    await ask(runtime, "Status", cri.StatusRequest(verbose=True))
    await ask(images, "PullImage", cri.PullImageRequest(image=cri.ImageSpec(image="img:1")))
    pod = (await ask(runtime, "RunPodSandbox", sandbox())).pod_sandbox_id
    app = (await ask(runtime, "CreateContainer", container(pod, "run", "stopcode=3"))).container_id
    await ask(runtime, "StartContainer", cri.StartContainerRequest(container_id=app))
    await ask(runtime, "ListContainers", cri.ListContainersRequest())
    await ask(runtime, "PodSandboxStatus", cri.PodSandboxStatusRequest(pod_sandbox_id=pod))
    await ask(runtime, "ExecSync", cri.ExecSyncRequest(container_id=app, cmd=["x", "7", "0"]))
    await ask(runtime, "StopContainer", cri.StopContainerRequest(container_id=app, timeout=30))
    await ask(runtime, "ContainerStatus", cri.ContainerStatusRequest(container_id=app))
    await ask(runtime, "RemoveContainer", cri.RemoveContainerRequest(container_id=app))
    await ask(runtime, "StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=pod))
    await ask(runtime, "RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=pod))
    await ask(runtime, "ListPodSandbox", cri.ListPodSandboxRequest())


def test_life_of_a_pod_is_observed_byte_for_byte(tmp_path: Path) -> None:
    """Requests and answers in the order of the calls; the deadlines that the client named; the events."""
    seen: list[tuple[str, bytes, list[bytes], str]] = []
    events: list[bytes] = []

    async def scenario(world: Tapped, runtime: Any, images: Any) -> None:
        stream = runtime.GetContainerEvents(cri.GetEventsRequest())
        await stream.initial_metadata()
        await life(runtime, images, seen=seen)
        events.extend([(await stream.read()).SerializeToString() for _ in range(8)])
        stream.cancel()
        await world.until(lambda observed: isinstance(observed[-1], CallEnded))

    world = Tapped.played(tmp_path, scenario)
    began = [each for each in world.observed if isinstance(each, CallBegan)]

    assert world.calls() == [*seen, ("GetContainerEvents", b"", events, "CANCELLED")]
    assert [each.id for each in began] == [f"c{number}" for number in range(1, len(began) + 1)]
    assert began[0].timeout_ns is None
    assert all(0 < each.timeout_ns <= 61 * 10**9 for each in began[1:] if each.timeout_ns is not None)
    times = [each.at_ns for each in world.observed]
    assert times == sorted(times)


def written(path: Path, observed: list[Observation]) -> None:
    """What was observed as a trace; streams left out."""
    answers: dict[str, type[Message]] = {}
    began = observed[0].at_ns
    header = Header(trace=1, channels=Channels(cri="full"), kubernetes="1.32")
    with path.open("wb") as file, Writer(file, header) as writer:
        for each in observed:
            t = (each.at_ns - began) / 1e9
            if isinstance(each, CallBegan):
                known = method(each.service, each.rpc)
                assert known is not None
                answers[each.id] = known.response
                writer.call(t, each.rpc, each.id, as_json(known.request, each.request))
            elif isinstance(each, Answered):
                writer.reply(t, each.id, as_json(answers[each.id], each.response))
        writer.end((observed[-1].at_ns - began) / 1e9)


def test_contracts_hold_through_the_tap(tmp_path: Path) -> None:
    """What the tap observed of a right runtime is a trace that keeps every contract it exercises."""
    path = tmp_path / "trace.jsonl"

    async def scenario(_: Tapped, runtime: Any, images: Any) -> None:
        await life(runtime, images, seen=[])

    written(path, Tapped.played(tmp_path, scenario).observed)
    contracts = [each for each in every_contract().values() if each.id.startswith("CRI-")]
    verdicts = Counter(each.verdict for each in judge_file(str(path), contracts).outcomes.values())

    assert verdicts[Verdict.BROKEN] == 0
    assert verdicts[Verdict.KEPT] >= 8


def test_methods_and_services_that_nobody_knows_pass(tmp_path: Path) -> None:
    """Bytes of any method go through and are reported by name, an answered one and one the server refuses."""

    class Anything(grpc.GenericRpcHandler):
        def service(self, handler_call_details: Any) -> Any:
            if "Dream" not in handler_call_details.method:
                return None

            async def answer(request: bytes, _: Any) -> bytes:
                return request[::-1]

            answers: Any = grpc.unary_unary_rpc_method_handler
            return answers(answer)

    async def main() -> Tapped:
        world = Tapped(tmp_path)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((Anything(),))
        server.add_insecure_port(f"unix:{world.upstream}")
        await server.start()
        async with Relay(world.listen, world.upstream, world.sink), world.channel() as channel:
            ask: Any = channel.unary_unary
            answers = [await ask(f"/{name}/Dream")(b"abc") for name in (V1, "of.the.Future")]
            refused = ask("/of.the.Future/Sleep")(b"abc")
            assert (answers, await refused.code()) == ([b"cba"] * 2, grpc.StatusCode.UNIMPLEMENTED)
        await server.stop(None)
        return world

    world = asyncio.run(main())

    assert world.calls() == [
        ("Dream", b"abc", [b"cba"], OK),
        ("Dream", b"abc", [b"cba"], OK),
        ("Sleep", b"abc", [], "UNIMPLEMENTED"),
    ]
    assert [each.service for each in world.observed if isinstance(each, CallBegan)][1] == "of.the.Future"


@pytest.mark.slow
def test_runtime_is_killed_and_comes_back(tmp_path: Path) -> None:
    """Killed in mid-call: the client sees UNAVAILABLE, as the tap does, and reaches the next runtime."""

    async def start(world: Tapped) -> asyncio.subprocess.Process:
        command = [sys.executable, "-m", "kubelet_conformance", "serve-fake", "--listen"]
        runtime = await asyncio.create_subprocess_exec(
            *command, f"unix://{world.upstream}", stdout=asyncio.subprocess.PIPE
        )
        assert runtime.stdout is not None
        assert b"end it with Ctrl-C" in await runtime.stdout.readline()
        return runtime

    async def main() -> Tapped:
        world = Tapped(tmp_path)
        async with Relay(world.listen, world.upstream, world.sink), world.channel() as channel:
            runtime, _ = stubs(channel)
            first = await start(world)
            events = runtime.GetContainerEvents(cri.GetEventsRequest())
            await events.initial_metadata()
            first.send_signal(signal.SIGKILL)
            await first.wait()
            assert await events.code() is grpc.StatusCode.UNAVAILABLE
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await runtime.Version(cri.VersionRequest())
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            second = await start(world)
            await runtime.Version(cri.VersionRequest(), wait_for_ready=True)
            second.terminate()
            await second.wait()
        return world

    world = asyncio.run(main())

    assert [(rpc, code) for rpc, _, _, code in world.calls()] == [
        ("GetContainerEvents", "UNAVAILABLE"),
        ("Version", OK),
    ]
    changes = [each for each in world.peers() if each.startswith("runtime")]
    assert changes[:2] == ["runtime away", "runtime back"]


def test_client_that_gives_up_and_client_that_is_gone(tmp_path: Path) -> None:
    """A deadline, a cancelled call, and a client that leaves in mid-call are three different ends."""

    async def scenario(world: Tapped, runtime: Any, _: Any) -> None:
        pod = (await runtime.RunPodSandbox(sandbox())).pod_sandbox_id
        app = (await runtime.CreateContainer(container(pod, "run", "stopdelay=60"))).container_id
        await runtime.StartContainer(cri.StartContainerRequest(container_id=app))
        stop = cri.StopContainerRequest(container_id=app, timeout=90)

        def begun(number: int) -> Any:
            return world.until(
                lambda observed: sum(isinstance(each, CallBegan) for each in observed) == number
            )

        assert (await outcome(runtime.StopContainer(stop, timeout=0.05)))[1] == "DEADLINE_EXCEEDED"
        call = runtime.StopContainer(stop)
        await begun(5)
        call.cancel()
        await world.until(lambda observed: sum(isinstance(each, CallEnded) for each in observed) == 2)
        async with world.channel(compression=grpc.Compression.Gzip) as other:
            call = stubs(other)[0].StopContainer(stop)
            await begun(6)
        await world.until(lambda observed: sum(isinstance(each, CallEnded) for each in observed) == 3)

    world = Tapped.played(tmp_path, scenario)

    assert [code for rpc, _, _, code in world.calls() if rpc == "StopContainer"] == [
        "DEADLINE_EXCEEDED",
        "CANCELLED",
        "CANCELLED",
    ]


def test_compressed_and_large_messages(tmp_path: Path) -> None:
    """Both ways by gzip, and messages of several megabytes, which take many frames."""
    image = cri.ImageSpec(image="img:1", annotations={"a": "x" * 3_000_000})
    seen: list[tuple[list[bytes], str]] = []

    async def scenario(world: Tapped, _: Any, images: Any) -> None:
        request = cri.PullImageRequest(image=image)
        async with world.channel(compression=grpc.Compression.Gzip) as other:
            seen.extend([await outcome(stub.PullImage(request)) for stub in (images, stubs(other)[1])])

    world = Tapped.played(tmp_path, scenario)
    request = cri.PullImageRequest(image=image).SerializeToString()

    assert world.calls() == [("PullImage", request, *each) for each in seen]
    assert seen[0][1] == OK


@pytest.mark.slow
def test_thousand_calls_at_once_are_all_recovered(tmp_path: Path) -> None:
    """Over several connections, some failing: each call once, with its own request and answer."""
    seen: list[tuple[str, bytes, list[bytes], str]] = []

    async def scenario(world: Tapped, _: Any, __: Any) -> None:
        async def ask(stub: Any, number: int) -> None:
            rpc = ("ListContainers", "ListPodSandbox", "ContainerStatus", "Version")[number % 4]
            request = {
                "ListContainers": cri.ListContainersRequest(filter=cri.ContainerFilter(id=f"a{number}")),
                "ListPodSandbox": cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(id=f"b{number}")),
                "ContainerStatus": cri.ContainerStatusRequest(container_id=f"c{number}"),
                "Version": cri.VersionRequest(version=f"{number}"),
            }[rpc]
            call = getattr(stub, rpc)(request, timeout=60)
            seen.append((rpc, request.SerializeToString(), *await outcome(call)))

        async with world.channel() as one, world.channel(compression=grpc.Compression.Gzip) as two:
            clients = [stubs(one)[0], stubs(two)[0]]
            await asyncio.gather(*(ask(clients[number % 3 == 0], number) for number in range(1000)))

    world = Tapped.played(tmp_path, scenario)

    assert sorted(world.calls()) == sorted(seen)
    assert Counter(code for *_, code in seen) == {OK: 750, "NOT_FOUND": 250}


def test_clients_of_a_server_that_ends_in_order(tmp_path: Path) -> None:
    """GOAWAY, then the end: calls under way end as the server says, and the tap goes on for the next one."""

    async def main() -> Tapped:
        world = Tapped(tmp_path)
        async with Relay(world.listen, world.upstream, world.sink), world.channel() as channel:
            runtime, _ = stubs(channel)
            async with serving(world.upstream):
                events = runtime.GetContainerEvents(cri.GetEventsRequest())
                await events.initial_metadata()
            assert await events.code() is grpc.StatusCode.UNAVAILABLE
            async with serving(world.upstream):
                await runtime.Version(cri.VersionRequest(), wait_for_ready=True)
        return world

    world = asyncio.run(main())

    assert [(rpc, code) for rpc, _, _, code in world.calls()] == [
        ("GetContainerEvents", "UNAVAILABLE"),
        ("Version", OK),
    ]
