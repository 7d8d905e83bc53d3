"""The fake runtime on a unix socket: what a kubelet, crictl or critest connects to."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import grpc
import grpc.aio

from kubelet_fakes.runtime.methods import METHODS, Method

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from google.protobuf.message import Message

__all__ = ("AddressError", "RuntimeServer", "socket_path")

_MESSAGE_BYTES_MAX = 16 << 20
"""What a kubelet allows for one message."""
_PATH_BYTES_MAX = 107
"""What fits into an address of a unix socket."""
_ADDRESS = re.compile(r"unix:(?:/|///+)([^/].*)", re.DOTALL)
_OWNER_ONLY_FOLDER = 0o700
_NOT_FOR_OTHERS = 0o177
"""The umask that leaves a socket readable and writable for its owner."""

_Context = Any
"""grpc.aio's context of one call; its type has two parameters that nothing here depends on."""


class AddressError(Exception):
    """The server cannot listen there; the text says why and what to do."""


def socket_path(address: str) -> Path:
    """The path of an address such as `unix:///run/fake.sock`.

    Raises:
        AddressError: It is no address of a unix socket, or its path is not absolute or too long.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise AddressError(
            f"{address}: no unix socket with an absolute path; write it like unix:///run/fake.sock"
        )
    path = f"/{found[1]}"
    length = len(os.fsencode(path))
    if length > _PATH_BYTES_MAX:
        raise AddressError(f"{address}: the path has {length} bytes, at most {_PATH_BYTES_MAX}: shorten it")
    return Path(path)


class RuntimeServer:
    """Serves a runtime's calls over gRPC for as long as its context is open.

    The socket is for its owner only (mode 0600, in a folder of mode 0700 where there was none). One that
    nobody listens on any more is replaced; both are removed in the end.

    Args:
        runtime: Has every method of both services by its name: a coroutine from request to reply, and for a
            stream an asynchronous generator. A `grpc.RpcError` goes to the client as it is.
        path: Where to listen.
    """

    def __init__(self, runtime: object, path: Path) -> None:
        self.path = path
        self._runtime = runtime
        self._made_folder = False
        self._identity: tuple[int, int] | None = None
        self._server = grpc.aio.server(options=[("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX)])
        for service in dict.fromkeys(method.service for method in METHODS):
            handlers = {each.name: self._handler(each) for each in METHODS if each.service == service}
            generic = grpc.method_handlers_generic_handler(service, handlers)
            self._server.add_generic_rpc_handlers((generic,))

    @property
    def address(self) -> str:
        """What a client connects to."""
        return f"unix://{self.path}"

    async def __aenter__(self) -> Self:
        """Begin to listen; raises `AddressError` where that cannot be."""
        self._make_way()
        try:
            with _umask(_NOT_FOR_OTHERS):
                self._server.add_insecure_port(f"unix:{self.path}")
            self._identity = _identity(self.path)
        except (OSError, RuntimeError) as error:
            self._remove()
            raise AddressError(f"{self.path}: cannot listen: {error}") from None
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End calls that still go on, and take the socket away."""
        await self._server.stop(grace=None)
        self._remove()

    def _handler(self, method: Method) -> Any:  # noqa: ANN401 - gRPC's handlers have no public type
        call = getattr(self._runtime, method.name)
        coders: dict[str, Any] = {
            "request_deserializer": method.request.FromString,
            "response_serializer": method.response.SerializeToString,
        }
        if method.streams:

            async def stream(request: Message, context: _Context) -> AsyncGenerator[Message]:
                # The first headers tell the client that nothing from now on escapes it.
                async with _errors_sent(context), contextlib.aclosing(call(request)) as messages:
                    await context.send_initial_metadata(())
                    async for message in messages:
                        yield message

            return grpc.unary_stream_rpc_method_handler(stream, **coders)

        async def answer(request: Message, context: _Context) -> Message:
            # The client's deadline is gRPC's: it ends this coroutine when the time is over.
            async with _errors_sent(context):
                reply: Message = await call(request)
            return reply

        return grpc.unary_unary_rpc_method_handler(answer, **coders)

    def _make_way(self) -> None:
        """See to the folder, and remove a socket that was left behind."""
        try:
            if not self.path.parent.is_dir():
                self.path.parent.mkdir(mode=_OWNER_ONLY_FOLDER)
                self._made_folder = True
            mode = self.path.lstat().st_mode
        except FileNotFoundError as error:
            if error.filename != str(self.path):
                raise AddressError(f"{self.path}: {error.filename}: its folder does not exist") from None
            return
        except OSError as error:
            raise AddressError(f"{self.path}: {error.strerror}") from None
        if not stat.S_ISSOCK(mode):
            raise AddressError(f"{self.path}: is there already and is no socket: name another path")
        if _is_answered(self.path):
            raise AddressError(f"{self.path}: in use by another program: name another path, or end that")
        self.path.unlink()

    def _remove(self) -> None:
        """Take away the socket, if it is still this server's, and the folder that was made for it."""
        with contextlib.suppress(OSError):
            if self._identity is not None and _identity(self.path) == self._identity:
                self.path.unlink()
        if self._made_folder:
            with contextlib.suppress(OSError):
                self.path.parent.rmdir()


@contextlib.asynccontextmanager
async def _errors_sent(context: _Context) -> AsyncGenerator[None]:
    """Tell the client of a failed call by its code and its text."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        await context.abort(error.code(), error.details())


def _is_answered(path: Path) -> bool:
    """Whether somebody listens on the socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError as error:
            raise AddressError(f"{path}: cannot tell whether it is in use: {error.strerror}") from None
    return True


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _umask(mask: int) -> Generator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
