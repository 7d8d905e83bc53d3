"""The tap of a run on a real runtime: what it cannot follow ends the run, with its reason."""

import asyncio
from pathlib import Path

import grpc.aio
import pytest
from cri_api.v1 import api_pb2 as cri
from pod_life import container, sandbox, stubs
from tapped import serving

from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.live.recorded_tap import tapped
from kubelet_conformance.trace.format.recorder import Item, RecordedCall, RecordedReply, Recorder


def test_connection_that_cannot_be_followed_ends_the_run(tmp_path: Path) -> None:
    """Who does not speak HTTP/2 makes the record incomplete: nothing may be judged by it."""
    runtime, listen = tmp_path / "runtime.sock", tmp_path / "tap" / "cri.sock"

    async def main() -> None:
        async with serving(runtime), tapped(listen, runtime, Recorder(lambda: 0.0)):
            reader, writer = await asyncio.open_unix_connection(listen)
            writer.write(b"GET / HTTP/1.0\r\n\r\n" * 10)
            await reader.read()
            writer.close()
            await writer.wait_closed()

    with pytest.raises(TargetError, match=r"a connection to it cannot be decoded: .*run again") as refused:
        asyncio.run(main())
    assert str(refused.value).startswith(f"{runtime}: ")


def test_stream_of_container_events_is_recorded(tmp_path: Path) -> None:
    """The call and each item of the stream are on the record; one that its reader leaves has no reply."""
    runtime, listen = tmp_path / "runtime.sock", tmp_path / "tap" / "cri.sock"
    recorder = Recorder(lambda: 0.0)
    received: list[str] = []

    async def main() -> None:
        async with (
            serving(runtime),
            tapped(listen, runtime, recorder),
            grpc.aio.insecure_channel(f"unix:{listen}") as channel,
        ):
            service, _ = stubs(channel)
            stream = service.GetContainerEvents(cri.GetEventsRequest())
            await stream.initial_metadata()
            made = await service.RunPodSandbox(sandbox())
            app = await service.CreateContainer(container(made.pod_sandbox_id, "run"))
            await service.StartContainer(cri.StartContainerRequest(container_id=app.container_id))
            received.extend([(await stream.read()).container_id for _ in range(3)])
            stream.cancel()

    asyncio.run(main())
    calls = {each.rpc: each.id for each in recorder.records if isinstance(each, RecordedCall)}
    replies = {each.call.rpc for each in recorder.records if isinstance(each, RecordedReply)}
    items = [each.fields for each in recorder.records if isinstance(each, Item) and each.kind == "message"]

    assert [each["message"]["container_id"] for each in items][: len(received)] == received
    assert {(each["rpc"], each["id"]) for each in items} == {
        ("GetContainerEvents", calls["GetContainerEvents"])
    }
    assert set(calls) - replies == {"GetContainerEvents"}
