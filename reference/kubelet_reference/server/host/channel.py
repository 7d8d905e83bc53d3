"""The runtime over its socket: the CRI's services as the kubelet's ports want them."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any, Self

import grpc
import grpc.aio
from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import DecodeError, Message

from kubelet_reference.cri.errors import BadReply, error_text
from kubelet_reference.server.log import LOG

OPTIONS = (
    ("grpc.max_receive_message_length", 16 << 20),
    # A runtime that went away is looked for after 100 ms, then ever later, every 3 s at most; one that
    # takes the connection and says nothing is given up after 5 s. These are the kubelet's own numbers.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 3000),
    ("grpc.min_reconnect_backoff_ms", 5000),
    # A proxy of the environment has no part in this.
    ("grpc.enable_http_proxy", 0),
    # Two channels of one process, such as in tests, do not share a connection and its fate.
    ("grpc.use_local_subchannel_pool", 1),
)
"""How a kubelet's channel to a runtime behaves."""


class Channel:
    """A connection to a socket, made when it is needed and again when it was lost; close it in the end.

    It says once that the runtime is away, and once that it is back.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        # Any: the type of a call depends on coders that are given as plain functions.
        self.channel: Any = grpc.aio.insecure_channel(f"unix:{path}", options=OPTIONS)
        self._away = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give up what is under way, and the connection."""
        await self.channel.close()

    def answered(self) -> None:
        """The runtime has answered something."""
        if self._away:
            self._away = False
            LOG.info("container runtime at unix://%s is back", self.path)

    def lost(self, error: grpc.RpcError) -> None:
        """The runtime could not be reached."""
        if not self._away:
            self._away = True
            text = "container runtime at unix://%s is away, it is looked for until it answers: %s"
            LOG.warning(text, self.path, error_text(error))


class Service:
    """One service of the CRI: each of its methods by name, as the ports `RuntimeService` and `ImageService`.

    A reply that is no message of its kind raises `BadReply`.
    """

    def __init__(self, channel: Channel, name: str) -> None:
        self._channel = channel
        methods: Any = cri.DESCRIPTOR.services_by_name[name].methods
        for method in methods:
            request, reply = (getattr(cri, kind.name) for kind in (method.input_type, method.output_type))
            path = f"/{method.containing_service.full_name}/{method.name}"
            # The reply stays bytes until it is read here: gRPC would make nothing of one that is malformed.
            made, wrapped = (
                (channel.channel.unary_stream, _stream)
                if method.server_streaming
                else (channel.channel.unary_unary, _method)
            )
            call = made(path, request_serializer=request.SerializeToString)
            setattr(self, method.name, wrapped(channel, call, reply.FromString))

    def __getattr__(self, rpc: str) -> Any:  # noqa: ANN401 - the methods are made from the protocol
        raise AttributeError(f"the CRI has no method {rpc}")


def _method(
    channel: Channel,
    call: Callable[..., Awaitable[bytes]],
    read: Callable[[bytes], Message],
) -> Callable[..., Awaitable[Message]]:
    async def method(request: Message, *, timeout: float | None = None) -> Message:  # noqa: ASYNC109 - the ports'
        try:
            content = await call(request, timeout=timeout)
        except grpc.RpcError as error:
            _note_failure(channel, error)
            raise
        return _read(channel, content, read)

    return method


def _stream(
    channel: Channel,
    call: Callable[..., AsyncIterable[bytes]],
    read: Callable[[bytes], Message],
) -> Callable[..., AsyncIterator[Message]]:
    """A method that answers with one message after another."""

    async def method(request: Message, *, timeout: float | None = None) -> AsyncIterator[Message]:  # noqa: ASYNC109 - the ports'
        try:
            async for content in call(request, timeout=timeout):
                yield _read(channel, content, read)
        except grpc.RpcError as error:
            _note_failure(channel, error)
            raise

    return method


def _note_failure(channel: Channel, error: grpc.RpcError) -> None:
    """An error is an answer as well, unless the server could not be reached."""
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        channel.lost(error)
    else:
        channel.answered()


def _read(channel: Channel, content: bytes, read: Callable[[bytes], Message]) -> Message:
    channel.answered()
    try:
        return read(content)
    except DecodeError as error:
        raise BadReply(f"the reply cannot be read: {error}") from error
