"""The fake runtime on a unix socket: what a kubelet, crictl or critest connects to."""

import asyncio
import contextlib
import os
import re
import socket
import stat
from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path
from typing import Any, Self, cast

import grpc
import grpc.aio
from google.protobuf.message import Message

from kubelet_fakes.runtime.serving.methods import METHODS, Method

_MESSAGE_BYTES_MAX = 16 << 20
"""What a kubelet allows for one message."""
_PATH_BYTES_MAX = 107
"""What fits into an address of a unix socket."""
_ADDRESS = re.compile(r"unix:(?:/|///+)([^/].*)", re.DOTALL)
_OWNER_ONLY_FOLDER = 0o700
_GOODBYE_SECONDS = 1.0
"""How long calls that were ended have to say so."""
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
    """Serves the calls of a runtime, or of something beside it, over gRPC for as long as its context is open.

    The socket is for its owner only (mode 0600, in a folder of mode 0700 where there was none). One that
    no process listens on any more is replaced; both are removed in the end.

    Args:
        runtime: Has every method of the services by its name: a coroutine from request to reply, and for a
            stream an asynchronous generator. A `grpc.RpcError` goes to the client as it is.
        path: Where to listen.
        methods: What is served; of a runtime all of both services.
    """

    def __init__(self, runtime: object, path: Path, methods: Sequence[Method] = METHODS) -> None:
        self.path = path
        self._runtime = runtime
        self._calls: dict[asyncio.Task[Any], None] = {}
        self._closing = False
        self._made_folder = False
        self._identity: tuple[int, int] | None = None
        self._server = grpc.aio.server(options=[("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX)])
        for service in dict.fromkeys(method.service for method in methods):
            handlers = {each.name: self._handler(each) for each in methods if each.service == service}
            generic = grpc.method_handlers_generic_handler(service, handlers)
            self._server.add_generic_rpc_handlers((generic,))

    @property
    def address(self) -> str:
        """What a client connects to."""
        return f"unix://{self.path}"

    async def __aenter__(self) -> Self:
        """Begin to listen; raises `AddressError` where that cannot be."""
        try:
            self._make_way()
            with _umask(_NOT_FOR_OTHERS):
                self._server.add_insecure_port(f"unix:{self.path}")
            self._identity = _identity(self.path)
        except BaseException:
            self._remove()
            raise
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End calls that still go on, with UNAVAILABLE, and take the socket away."""
        self._closing = True
        for task in self._calls:
            task.cancel()
        await self._server.stop(grace=_GOODBYE_SECONDS)
        self._remove()

    def _handler(self, method: Method) -> Any:  # noqa: ANN401 - gRPC's handlers have no public type
        call = getattr(self._runtime, method.name)
        coders: dict[str, Any] = {
            "request_deserializer": method.request.FromString,
            "response_serializer": method.response.SerializeToString,
        }
        if method.streams:

            async def stream(request: Message, context: _Context) -> AsyncGenerator[Message]:
                # The first headers say that the client misses nothing from now on.
                async with self._call(context), contextlib.aclosing(call(request)) as messages:
                    await context.send_initial_metadata(())
                    async for message in messages:
                        yield message

            return grpc.unary_stream_rpc_method_handler(stream, **coders)

        async def answer(request: Message, context: _Context) -> Message:
            # The client's deadline is gRPC's: it ends this coroutine when the time is over.
            async with self._call(context):
                reply: Message = await call(request)
            return reply

        return grpc.unary_unary_rpc_method_handler(answer, **coders)

    @contextlib.asynccontextmanager
    async def _call(self, context: _Context) -> AsyncGenerator[None]:
        """One call: a failure reaches the client as code and text."""
        # gRPC runs each call as a task.
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._calls[task] = None
        try:
            yield
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details())
        except asyncio.CancelledError:
            if not self._closing:
                raise
            task.uncancel()
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the runtime is shutting down")
        finally:
            del self._calls[task]

    def _make_way(self) -> None:
        """See to the folder, remove a socket that was left behind, and try whether one can be made."""
        try:
            self._make_folder()
            if os.path.lexists(self.path):
                self._remove_left_behind()
            # gRPC's own words for a failure are many, and go to standard error.
            with socket.socket(socket.AF_UNIX) as trial:
                trial.bind(str(self.path))
            self.path.unlink()
        except OSError as error:
            raise AddressError(f"{self.path}: cannot listen: {error.strerror}") from None

    def _make_folder(self) -> None:
        folder = self.path.parent
        if folder.is_dir():
            return
        if os.path.lexists(folder):
            raise AddressError(f"{self.path}: {folder} is no folder: name another path")
        if not folder.parent.is_dir():
            raise AddressError(f"{self.path}: {folder.parent} does not exist: make it first")
        folder.mkdir(mode=_OWNER_ONLY_FOLDER)
        self._made_folder = True

    def _remove_left_behind(self) -> None:
        if not stat.S_ISSOCK(self.path.lstat().st_mode):
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


def _is_answered(path: Path) -> bool:
    """Whether somebody listens on the socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError as error:
            raise AddressError(f"{path}: cannot find out whether it is in use: {error.strerror}") from None
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
