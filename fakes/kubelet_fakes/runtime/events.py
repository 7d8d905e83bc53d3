"""The stream of container events (CRI-30): what happened, with what was true of the pod right then."""

from collections import deque
from collections.abc import Callable

from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.records import Sandbox


class Events:
    """Sends every subscriber every transition, in order, unless a test injects a fault.

    Without subscribers it costs next to nothing.
    """

    def __init__(self) -> None:
        self._subscribers: dict[int, Callable[[cri.ContainerEventResponse], None]] = {}
        self._subscriptions = 0
        self._to_lose = 0
        self._to_delay = 0
        self._delay_seconds = 0.0
        self._to_reverse = 0
        self._held: deque[cri.ContainerEventResponse] = deque()
        self.later: Callable[[float, Callable[[], None]], object] = _at_once
        """Does something after so many seconds; who drives the runtime sets it."""
        self.on_event_fault: Callable[[str, str, float], None] = _unobserved
        """Called when an event is not sent at once: how, the pod's UID, and how late (s) it is, if it is."""

    def subscribe(self, send: Callable[[cri.ContainerEventResponse], None]) -> Callable[[], None]:
        """Call `send` with each event from now on, until what is returned is called."""
        self._subscriptions += 1
        number = self._subscriptions
        self._subscribers[number] = send

        def unsubscribe() -> None:
            self._subscribers.pop(number, None)

        return unsubscribe

    def lose(self, count: int) -> None:
        """Drop the next `count` events; 0 ends it."""
        self._to_lose = count

    def delay(self, count: int, seconds: float) -> None:
        """Send each of the next `count` events so much later; those after them overtake. 0 ends it."""
        self._to_delay, self._delay_seconds = count, seconds

    def reverse(self, count: int) -> None:
        """Hold the next `count` events back and send them in reverse order; 0 sends what is held."""
        self._to_reverse = count
        if not count:
            self._let_go()

    def publish(
        self, kind: cri.ContainerEventType.ValueType, record_id: str, sandbox: Sandbox, created_at: int
    ) -> None:
        """Something happened to the container, or to the sandbox itself, with this id."""
        if not self._subscribers:
            return
        uid = sandbox.config.metadata.uid
        if self._to_lose:
            self._to_lose -= 1
            self.on_event_fault("lost", uid, 0)
            return
        event = cri.ContainerEventResponse(
            container_id=record_id,
            container_event_type=kind,
            created_at=created_at,
            pod_sandbox_status=sandbox.status(),
            containers_statuses=[container.reply().status for container in sandbox.containers.values()],
        )
        if self._to_delay:
            self._to_delay -= 1
            self.on_event_fault("late", uid, self._delay_seconds)
            self.later(self._delay_seconds, lambda: self._report(event))
        elif self._to_reverse:
            self._held.appendleft(event)
            self._to_reverse -= 1
            self.on_event_fault("held back", uid, 0)
            if not self._to_reverse:
                self._let_go()
        else:
            self._report(event)

    def _let_go(self) -> None:
        held, self._held = self._held, deque()
        for event in held:
            self._report(event)

    def _report(self, event: cri.ContainerEventResponse) -> None:
        for send in list(self._subscribers.values()):
            send(event)


def _unobserved(how: str, uid: str, seconds: float) -> None:
    """Ignore it."""


def _at_once(_: float, act: Callable[[], None]) -> None:
    """Where no time passes nothing is late."""
    act()
