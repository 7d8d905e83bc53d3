"""A runtime with everything that is said to it on the record."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from kubelet_conformance.trace.format.recorder import Failed, Recorder


class Tap:
    """Stands in for both services of a runtime: every call goes through and is recorded.

    A call whose caller goes away while it is under way keeps no reply, as on a real node.
    """

    def __init__(self, runtime: object, recorder: Recorder) -> None:
        self._runtime = runtime
        self._recorder = recorder

    def __getattr__(self, rpc: str) -> Any:  # noqa: ANN401 - a method of the services
        through = partial(self._through, rpc, getattr(self._runtime, rpc))
        setattr(self, rpc, through)
        return through

    async def _through(
        self,
        rpc: str,
        method: Any,  # noqa: ANN401 - see above
        request: Message,
        *,
        timeout: float | None = None,
    ) -> Message:
        call = self._recorder.call(rpc, request)
        try:
            response: Message = await method(request, timeout=timeout)
        except grpc.RpcError as error:
            self._recorder.reply(call, failed(error))
            raise
        self._recorder.reply(call, response)
        return response

    async def GetContainerEvents(
        self, request: Message, *, timeout: float | None = None
    ) -> AsyncGenerator[Message, None]:
        """The stream of events; one that its reader leaves keeps no reply either."""
        call = self._recorder.call("GetContainerEvents", request)
        runtime: Any = self._runtime
        try:
            async with aclosing(runtime.GetContainerEvents(request, timeout=timeout)) as events:
                async for event in events:
                    message = MessageToDict(event, preserving_proto_field_name=True)
                    self._recorder.record("message", rpc=call.rpc, id=call.id, message=message)
                    yield event
        except grpc.RpcError as error:
            self._recorder.reply(call, failed(error))
            raise


def failed(error: Any) -> Failed:  # noqa: ANN401 - the methods of grpc's errors are those of their kind
    """An error of a call, as the record has it."""
    return Failed(error.code().name, error.details() or "", effect=getattr(error, "effect", True))
