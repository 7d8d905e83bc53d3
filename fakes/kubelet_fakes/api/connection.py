"""One client's way to the API server, which can break: a kubelet's requests go through here."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from kubelet_fakes.api.core import ApiCore
from kubelet_fakes.api.errors import ApiStatusError, injected, unavailable
from kubelet_fakes.api.objects import FrozenDict
from kubelet_fakes.api.requests import Client, Request
from kubelet_fakes.api.watching import Watch
from kubelet_fakes.clock import LoopClock
from kubelet_fakes.faults import API_VERBS, ActiveFault, Effect, Fault, Faults

_OK, _CREATED, _UNAVAILABLE = 200, 201, 503
_ABOUT = frozenset({"name", "namespace"})


class Answer(msgspec.Struct, frozen=True):
    """A request and how it ended: `code` is HTTP's, 0 for no answer; `object` is None after a failure."""

    request: Request
    code: int
    object: FrozenDict | None = None
    error: ApiStatusError | None = None


def check(fault: Fault) -> None:
    """Raises `ValueError` where a fault of a request names what there is not."""
    verb = fault.call.partition(" ")[0]
    if "*" not in verb and verb not in API_VERBS:
        raise ValueError(f"no request is {fault.call!r}: expected one like `patch pods/status`, or *")
    if fault.code and not fault.code.isdecimal():
        raise ValueError(f"HTTP has no status {fault.code!r}: expected a number, or 0 for no answer")
    if fault.effect is Effect.PRETEND or (fault.effect is Effect.STALE and verb != "list"):
        raise ValueError(f"no request can be so: {fault}: only lists may be stale")
    unknown = fault.where.keys() - _ABOUT
    if unknown:
        raise ValueError(f"a request is not about {', '.join(sorted(unknown))}: name, namespace")


class Connection(Client):
    """A client's requests, with outages and faults in between.

    Args:
        core: Who answers.
        name: Who asks; changes are marked with it.
    """

    def __init__(self, core: ApiCore, name: str = "kubelet") -> None:
        self.on_answer: list[Callable[[Answer], None]] = []
        """Each is called with every request but watches, once it has ended."""
        self.watched: set[str] = set()
        """The resources of which a watch was opened."""
        self.faults = Faults(check, lambda: core.now_ns() / 1e9)
        self.faults.on_change = self._change_watches
        self._clock = LoopClock()
        self._core = core
        self._name = name
        self._watches: dict[Watch, Request] = {}
        self._lists: dict[tuple[object, ...], FrozenDict] = {}
        """What was last answered to each list."""

    def outage(self, code: int = 0) -> ActiveFault:
        """From now on every request fails with this code, and every watch breaks, until healed.

        Args:
            code: HTTP's, such as 503; 0 is a refused connection.
        """
        return self.faults.add(Fault("*", code=str(code)))

    def break_watches(self, error: ApiStatusError | None = None) -> None:
        """End every watch: cleanly, as a server does now and then, or with an error (410: list anew)."""
        for watch in self._watches:
            watch.stop(error)
        self._watches = {}

    def _change_watches(self, changed: ActiveFault) -> None:
        """Let the watches that are open be as late as faults say, and end those that a new one breaks."""
        fault = changed.fault
        ends = fault.effect is Effect.AFTER or (fault.call == "*" and fault.effect is Effect.BEFORE)
        ends = ends and fault.times is None and not changed.is_healed
        for watch, request in list(self._watches.items()):
            watch.be_late(self.faults.delay_of(*_named(request)))
            if ends and fault.hits(*_named(request)):
                del self._watches[watch]
                watch.stop(injected(fault.code, fault.message))

    def handle(self, request: Request) -> FrozenDict:
        """Ask the server, if the request gets there and the answer back; nothing is waited for."""
        _, active = self.faults.on_call(*_named(request))
        return self._answer(request, active)

    async def ask(self, request: Request) -> FrozenDict:
        """`handle`, as late as faults say; what hangs, or has lost its answer, waits until that is healed."""
        delay, active = self.faults.on_call(*_named(request))
        if delay:
            await self._clock.sleep(delay)
        if active is not None and active.fault.effect is Effect.HANG:
            await active.until_healed()
            active = None
        try:
            return self._answer(request, active)
        except ApiStatusError:
            if active is not None and active.fault.effect is Effect.LOST_REPLY:
                await active.until_healed()
            raise

    def open_watch(self, request: Request) -> Watch:
        """Begin a watch, if the request gets there."""
        _, active = self.faults.on_call(*_named(request))
        if active is not None and active.fault.effect is not Effect.AFTER:
            raise _error_of(active.fault)
        watch = self._core.open_watch(request)
        self.watched.add(request.resource)
        if active is not None:
            watch.stop(injected(active.fault.code, active.fault.message))
        watch.be_late(self.faults.delay_of(*_named(request)))
        self._watches = {each: asked for each, asked in self._watches.items() if not each.ended}
        self._watches[watch] = request
        return watch

    def now_ns(self) -> int:
        """The server's time."""
        return self._core.now_ns()

    def _answer(self, request: Request, active: ActiveFault | None) -> FrozenDict:
        request = replace(request, by=self._name)
        fault = None if active is None else active.fault
        try:
            if fault is not None and fault.effect in {Effect.BEFORE, Effect.HANG}:
                raise _error_of(fault)
            found = self._found(request, is_stale=fault is not None and fault.effect is Effect.STALE)
            if fault is not None and fault.effect in {Effect.AFTER, Effect.LOST_REPLY}:
                raise _error_of(fault)
        except ApiStatusError as error:
            self._report(Answer(request, error.code, error=error))
            raise
        self._report(Answer(request, _CREATED if request.verb == "create" else _OK, found))
        return found

    def _found(self, request: Request, *, is_stale: bool) -> FrozenDict:
        """What the server has, or of a list what it had the last time."""
        if request.verb != "list":
            return self._core.handle(request)
        key = request.resource, request.namespace, tuple(sorted(request.fields.items()))
        if not is_stale or key not in self._lists:
            self._lists[key] = self._core.handle(request)
        return self._lists[key]

    def _report(self, answer: Answer) -> None:
        for listener in self.on_answer:
            listener(answer)


def _named(request: Request) -> tuple[str, dict[str, str]]:
    """A request as faults name it, and what it is about."""
    below = f"/{request.subresource}" if request.subresource else ""
    about = {"name": request.name, "namespace": request.namespace}
    return f"{request.verb} {request.resource}{below}", about


def _error_of(fault: Fault) -> ApiStatusError:
    """What a request that it applies to raises."""
    if fault.effect in {Effect.HANG, Effect.LOST_REPLY}:
        return unavailable(0)
    return injected(fault.code, fault.message) or unavailable(_UNAVAILABLE)
