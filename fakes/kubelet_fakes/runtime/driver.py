"""What drives the core: it sets the time, waits, injects faults, and lets spontaneous events happen."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import grpc
from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message

from kubelet_fakes.clock import Clock
from kubelet_fakes.faults import ActiveFault, Effect, Faults
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.faults import check, error_of, subject_of
from kubelet_fakes.runtime.spontaneous_events import SpontaneousEvents

_NS = 1_000_000_000

P = ParamSpec("P")
Request = TypeVar("Request", bound=Message)
Reply = TypeVar("Reply", bound=Message)
Handler = Callable[[Request], Reply | Coroutine[Any, Any, Reply]]
"""Answers a request at once, or with a coroutine that waits."""


class Shell:
    """Runs a core on a clock and on the event loop that runs.

    Args:
        core: The runtime.
        clock: The time it lives in.
        spontaneous_events: What lets things happen by themselves.
    """

    def __init__(
        self,
        core: RuntimeCore,
        clock: Clock,
        *,
        spontaneous_events: type[SpontaneousEvents] = SpontaneousEvents,
    ) -> None:
        self.core = core
        self.faults = Faults(check, clock.monotonic)
        self._clock = clock
        self._begun = False
        happens = self._spontaneous_events = spontaneous_events(core)
        self.exit, self.oom = self._at_once(happens.exit), self._at_once(happens.oom)
        self.lose_track = self._at_once(happens.lose_track)
        self.kill_sandbox = self._at_once(happens.kill_sandbox)
        self.remove_container = self._at_once(happens.remove_container)
        self.remove_sandbox = self._at_once(happens.remove_sandbox)
        self.jump_clock = self._at_once(happens.jump_clock)
        self.say = self._at_once(core.say)
        self._timer: asyncio.TimerHandle | None = None
        self._armed: int | None = None
        self._exits: dict[str, list[asyncio.Future[None]]] = {}
        self._working: dict[asyncio.Task[Any], None] = {}
        self._lost: asyncio.Future[None] | None = None
        self._streams: dict[asyncio.Queue[cri.ContainerEventResponse | None], None] = {}
        core.store.on_exit = self._on_exit
        core.store.events.later = _later

    # Time.

    def _advance(self) -> None:
        """Set the core's time."""
        now = round(self._clock.monotonic() * _NS)
        if not self._begun:
            self.core.store.epoch_ns = self._clock.wall_ns() - now
            self._begun = True
        self.core.advance(now)

    def _arm(self) -> None:
        """Come back when something is due."""
        due = self.core.due
        if due is None or (self._armed is not None and self._armed <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        delay = (due - self.core.now) / _NS
        self._armed = due
        self._timer = asyncio.get_running_loop().call_later(delay, self._on_time)

    def _on_time(self) -> None:
        self._timer = self._armed = None
        self._advance()
        self._arm()

    # Calls.

    async def make_call(
        self, rpc: str, handler: Handler[Request, Reply], request: Request, timeout: float | None
    ) -> Reply:
        """Make a call, with whatever faults there are."""
        self._advance()
        if self.faults:
            delay, active = self.faults.on_call(rpc, subject_of(self.core, request))
            if delay or active:
                acts = active is None or active.fault.effect not in {Effect.HANG, Effect.BEFORE}
                return await self._outlast(self._faulty(delay, active, handler, request), timeout, acts=acts)
        reply = handler(request)
        self._arm()
        if isinstance(reply, Message):
            return reply
        return await self._outlast(reply, timeout)

    async def _faulty(
        self, delay: float, active: ActiveFault | None, handler: Handler[Request, Reply], request: Request
    ) -> Reply:
        """A call with a fault."""
        effect = active.fault.effect if active else Effect.NONE
        if active is not None and effect is Effect.HANG:
            await active.until_healed()
        if delay:
            await self._clock.sleep(delay)
        if active is not None and effect is Effect.BEFORE:
            raise error_of(active.fault)
        if effect is Effect.PRETEND:
            pretended: Reply = _pretended(request)
            return pretended
        self._advance()
        reply = handler(request)
        self._arm()
        reply = reply if isinstance(reply, Message) else await reply
        if active is not None:
            await _spoil(active)
            if effect is Effect.BARE:
                return _without(reply, active.fault.message)
        return reply

    async def _outlast(
        self, work: Coroutine[Any, Any, Reply], timeout: float | None, *, acts: bool = True
    ) -> Reply:
        """Wait for work; if it `acts` at all it goes on when the caller leaves before it is done (CRI-32)."""
        loop = asyncio.get_running_loop()
        if self._lost is None or self._lost.done():
            self._lost = loop.create_future()
        lost = self._lost
        task = loop.create_task(work)
        self._working[task] = None
        task.add_done_callback(self._worked)
        try:
            waited: list[asyncio.Future[Any]] = [task, lost]
            await asyncio.wait(waited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not acts and not task.done():
                task.cancel()
        if lost.done():
            raise CallError(grpc.StatusCode.UNAVAILABLE, "the runtime went down", effect=acts)
        if not task.done():
            raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "context deadline exceeded", effect=acts)
        return task.result()

    def _worked(self, task: asyncio.Task[Any]) -> None:
        """Forget work that is done; its error goes to the caller, who may have left."""
        del self._working[task]
        if not task.cancelled():
            task.exception()

    def exit_of(self, container_id: str) -> asyncio.Future[None]:
        """Done when the container has ended."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exits.setdefault(container_id, []).append(ended)
        return ended

    def _on_exit(self, container_id: str) -> None:
        for ended in self._exits.pop(container_id, ()):
            if not ended.done():
                ended.set_result(None)

    # Spontaneous events.

    def _at_once(self, happen: Callable[P, None]) -> Callable[P, None]:
        """Let it happen in the core as it is now."""

        def now(*args: P.args, **options: P.kwargs) -> None:
            self._advance()
            happen(*args, **options)

        return now

    def restart(self, *, lose_state: bool = False) -> None:
        """The runtime goes down and comes up at once: calls under way and streams fail, containers go on."""
        self._advance()
        self._disconnect()
        self._spontaneous_events.restart(lose_state=lose_state)
        self._arm()

    def reboot(self) -> None:
        """The node goes down and up: nothing runs, all records remain."""
        self._advance()
        self._disconnect()
        self._spontaneous_events.reboot()

    def cut_events(self) -> None:
        """Every stream of events breaks; all else goes on."""
        for queue in self._streams:
            queue.put_nowait(None)

    def _disconnect(self) -> None:
        """End every call that waits, and what it waits for."""
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(None)
        for task in list(self._working):
            task.cancel()
        self.cut_events()


def _later(seconds: float, act: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(seconds, act)


def _without(reply: Reply, path: str) -> Reply:
    """A copy of a reply that lacks the field at this path, such as `status.image_ref`."""
    bare = type(reply)()
    bare.CopyFrom(reply)
    *above, field = path.split(".")
    inner: Message = bare
    for name in above:
        inner = getattr(inner, name)
    inner.ClearField(field)
    return bare


def _pretended(request: Message) -> Any:  # noqa: ANN401 - the reply that belongs to the request
    """The empty reply to a request."""
    return getattr(cri, request.DESCRIPTOR.name.replace("Request", "Response"))()


async def _spoil(active: ActiveFault) -> None:
    """Keep the reply of a call that took place from its caller."""
    if active.fault.effect is Effect.AFTER:
        raise error_of(active.fault)
    if active.fault.effect is Effect.LOST_REPLY:
        await active.until_healed()
        raise CallError(grpc.StatusCode.UNAVAILABLE, "the reply was lost")
