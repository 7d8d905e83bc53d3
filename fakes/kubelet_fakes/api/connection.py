"""One client's way to the API server, which can break: a kubelet's requests go through here."""

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from kubelet_fakes.api.core import ApiCore
from kubelet_fakes.api.errors import ApiStatusError, unavailable
from kubelet_fakes.api.objects import FrozenDict
from kubelet_fakes.api.requests import Client, Request
from kubelet_fakes.api.watching import Watch

_OK, _CREATED = 200, 201


class Answer(msgspec.Struct, frozen=True):
    """A request and how it ended: `code` is HTTP's, 0 for no answer; `object` is None after a failure."""

    request: Request
    code: int
    object: FrozenDict | None = None
    error: ApiStatusError | None = None


@dataclass(slots=True)
class Fault:
    """Requests that fail; an empty word fits every one. `left` counts down, None is every time."""

    error: ApiStatusError
    verb: str = ""
    resource: str = ""
    subresource: str | None = None
    name: str = ""
    left: int | None = None
    after_effect: bool = False
    """Whether the request takes effect and only its answer is lost."""
    hits: int = 0

    def applies_to(self, request: Request) -> bool:
        """Whether this request fails; it counts as a hit then."""
        fits = (
            self.left != 0
            and self.verb in {"", request.verb}
            and self.resource in {"", request.resource}
            and self.subresource in {None, request.subresource}
            and self.name in {"", request.name}
        )
        if fits:
            self.hits += 1
            self.left = None if self.left is None else self.left - 1
        return fits


class Connection(Client):
    """A client's requests, with outages and faults in between.

    Args:
        core: Who answers.
        name: Who asks; changes are marked with it.
    """

    def __init__(self, core: ApiCore, name: str = "kubelet") -> None:
        self.on_answer: list[Callable[[Answer], None]] = []
        """Each is called with every request but watches, once it has ended."""
        self._core = core
        self._name = name
        self._down: int | None = None
        self._faults: list[Fault] = []
        self._watches: list[Watch] = []
        self._late = 0.0

    @property
    def is_down(self) -> bool:
        """Whether an outage is going on."""
        return self._down is not None

    def go_down(self, code: int = 0) -> None:
        """Begin an outage: from now on every request fails with this code, and every watch breaks.

        Args:
            code: HTTP's, such as 503; 0 is a refused connection.
        """
        self._down = code
        self.break_watches(unavailable(code))

    def come_up(self) -> None:
        """End the outage."""
        self._down = None

    @contextlib.contextmanager
    def outage(self, code: int = 0) -> Generator[None]:
        """An outage that lasts as long as the context is open."""
        self.go_down(code)
        try:
            yield
        finally:
            self.come_up()

    @contextlib.contextmanager
    def failing(self, fault: Fault) -> Generator[Fault]:
        """A fault that lasts as long as the context is open; the first that fits applies."""
        self._faults.append(fault)
        try:
            yield fault
        finally:
            self._faults.remove(fault)

    @contextlib.contextmanager
    def late(self, seconds: float) -> Generator[None]:
        """Watches whose every change comes so much later, for as long as the context is open."""
        before = self._late
        self._be_late(seconds)
        try:
            yield
        finally:
            self._be_late(before)

    def _be_late(self, seconds: float) -> None:
        self._late = seconds
        for watch in self._watches:
            watch.be_late(seconds)

    def break_watches(self, error: ApiStatusError | None = None) -> None:
        """End every watch: cleanly, as a server does now and then, or with an error (410: list anew)."""
        for watch in self._watches:
            watch.stop(error)
        self._watches = []

    def handle(self, request: Request) -> FrozenDict:
        """Ask the server, if the request gets there and the answer back."""
        request = replace(request, by=self._name)
        fault = self._trouble(request)
        try:
            if fault is not None and not fault.after_effect:
                raise fault.error
            found = self._core.handle(request)
            if fault is not None:
                raise fault.error
        except ApiStatusError as error:
            self._report(Answer(request, error.code, error=error))
            raise
        self._report(Answer(request, _CREATED if request.verb == "create" else _OK, found))
        return found

    def open_watch(self, request: Request) -> Watch:
        """Begin a watch, if the request gets there."""
        fault = self._trouble(request)
        if fault is not None:
            raise fault.error
        watch = self._core.open_watch(request)
        watch.be_late(self._late)
        self._watches = [*(each for each in self._watches if not each.ended), watch]
        return watch

    def now_ns(self) -> int:
        """The server's time."""
        return self._core.now_ns()

    def _trouble(self, request: Request) -> Fault | None:
        if self._down is not None:
            return Fault(unavailable(self._down))
        return next((fault for fault in self._faults if fault.applies_to(request)), None)

    def _report(self, answer: Answer) -> None:
        for listener in self.on_answer:
            listener(answer)
