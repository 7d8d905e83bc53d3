"""The fake runtime for unit tests that have no event loop: each call is made and answered at once.

>>> import grpc_testing
>>> from cri_api.v1 import api_pb2 as cri
>>> from kubelet_fakes.runtime.serving.sync_servicer import SyncServicer
>>> version = cri.DESCRIPTOR.services_by_name["RuntimeService"].methods_by_name["Version"]
>>> with SyncServicer() as servicer:
...     time = grpc_testing.strict_fake_time(0)
...     server = grpc_testing.server_from_dictionary(servicer.by_descriptor(), time)
...     call = server.invoke_unary_unary(version, (), cri.VersionRequest(), None)
...     call.termination()[0].runtime_name
'fake'

Time is virtual: a call that waits, such as StopContainer, moves it on by what it waits for, and `wait` lets
it pass between calls.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, Self, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from kubelet_fakes.clock import DeadlockError, LoopClock, VirtualLoop
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.serving.methods import METHODS, SERVICES, Method

T = TypeVar("T")

_Context = Any
"""grpc's or grpc_testing's context of one call."""


class SyncServicer:
    """Both CRI services as one servicer of synchronous methods, by the protocol's names; close it in the end.

    Args:
        core: The runtime's state; a fresh one by default.
    """

    def __init__(self, core: RuntimeCore | None = None) -> None:
        self._loop = VirtualLoop()
        self._clock = LoopClock()
        self.runtime = FakeRuntime(core or RuntimeCore(), self._clock)
        # grpc and grpc_testing call from threads of their own.
        self._lock = threading.Lock()
        for method in METHODS:
            call = getattr(self.runtime, method.name)
            setattr(self, method.name, self._stream(call) if method.streams else self._unary(method, call))

    def by_descriptor(self) -> dict[Any, SyncServicer]:
        """What `grpc_testing.server_from_dictionary` takes."""
        return dict.fromkeys(SERVICES, self)

    def wait(self, seconds: float) -> None:
        """Let virtual time pass, with all that happens in it."""
        self._finished(self._clock.sleep(seconds))

    def close(self) -> None:
        """Leave what still goes on, such as a running container's timer, and give the loop back."""
        for task in self._loop.pending_tasks():
            task.cancel()
            self._loop.run_until_complete(asyncio.wait([task]))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _unary(
        self, method: Method, call: Callable[..., Coroutine[Any, Any, Message]]
    ) -> Callable[..., Message]:
        def answer(request: Message, context: _Context) -> Message:
            try:
                return self._finished(call(request, timeout=context.time_remaining()))
            except grpc.aio.AioRpcError as error:
                _fail(context, error.code(), error.details())
            except DeadlockError as error:
                _fail(context, grpc.StatusCode.DEADLINE_EXCEEDED, f"no answer will ever come: {error}")
            return method.response()

        return answer

    def _stream(self, call: Callable[..., AsyncGenerator[Message]]) -> Callable[..., Iterator[Message]]:
        def stream(request: Message, context: _Context) -> Iterator[Message]:
            """Every message until nothing more can happen by itself."""
            messages = call(request)
            try:
                while context.is_active():
                    yield self._finished(anext(messages))
            except (StopAsyncIteration, DeadlockError):
                return
            except grpc.aio.AioRpcError as error:
                _fail(context, error.code(), error.details())
            finally:
                self._finished(messages.aclose())

        return stream

    def _finished(self, work: Awaitable[T]) -> T:
        """What the work comes to; what can never end is cancelled and raises `DeadlockError`."""
        with self._lock:
            task = self._loop.create_task(_awaited(work))
            try:
                return self._loop.run_until_complete(task)
            finally:
                if task.cancel():
                    self._loop.run_until_complete(asyncio.wait([task]))


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def _fail(context: _Context, code: grpc.StatusCode, details: str | None) -> None:
    """Let the call end with this error; what is returned after it counts for nothing."""
    context.set_code(code)
    context.set_details(details or "")
