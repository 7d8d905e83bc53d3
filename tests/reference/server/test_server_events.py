"""The stream of container events over a socket, as a kubelet in a process of its own hears it."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import grpc
from cri_api.v1 import api_pb2 as cri
from grpc_stub import grpc_server

from kubelet_reference.cri.errors import BadReply
from kubelet_reference.server.host.channel import Channel, Service


def received(path: Path, *reported: bytes) -> list[str]:
    """The containers of the events that such a runtime tells before it goes away; what ends them is last."""

    async def tell(request: bytes, context: Any) -> AsyncGenerator[bytes]:
        del request
        for one in reported:
            yield one
        await context.abort(grpc.StatusCode.UNAVAILABLE, "going down")

    async def main() -> list[str]:
        found = list[str]()
        methods = {"GetContainerEvents": tell}
        async with grpc_server(path, "runtime.v1.RuntimeService", methods, streams=True):
            try:
                async with Channel(str(path)) as channel:
                    service = cast("Any", Service(channel, "RuntimeService"))
                    async for event in service.GetContainerEvents(cri.GetEventsRequest()):
                        found.append(event.container_id)
            except BadReply as error:
                found.append(str(error.details()))
            except grpc.RpcError as error:
                found.append(cast("Any", error).code().name)
        return found

    return asyncio.run(main())


def test_events_come_until_the_runtime_goes(tmp_path: Path) -> None:
    """Each event is a message of its own, and the end of the stream is the runtime's error."""
    events = [cri.ContainerEventResponse(container_id=one).SerializeToString() for one in ("c1", "c2")]

    assert received(tmp_path / "s", *events) == ["c1", "c2", "UNAVAILABLE"]


def test_event_that_cannot_be_read_is_a_bad_reply(tmp_path: Path) -> None:
    """What is no message of its kind ends the stream like an error of the runtime."""
    (said,) = received(tmp_path / "s", b"\xff\xff")

    assert said.startswith("the reply cannot be read")
