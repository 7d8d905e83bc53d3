"""The stream of container events (CRI-30): what happened, with what was true of the pod right then."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from cri_api.v1 import api_pb2 as cri

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubelet_fakes.runtime.records import Sandbox

__all__ = ("Events",)


class Events:
    """Tells every subscriber of every transition, in order, unless a test asks for worse.

    Without subscribers it costs next to nothing.
    """

    def __init__(self) -> None:
        self._subscribers: dict[int, Callable[[cri.ContainerEventResponse], None]] = {}
        self._subscriptions = 0
        self._to_lose = 0
        self._to_reverse = 0
        self._held: deque[cri.ContainerEventResponse] = deque()

    def subscribe(self, tell: Callable[[cri.ContainerEventResponse], None]) -> Callable[[], None]:
        """Tell `tell` of each event from now on, until what is returned is called."""
        self._subscriptions += 1
        number = self._subscriptions
        self._subscribers[number] = tell

        def unsubscribe() -> None:
            self._subscribers.pop(number, None)

        return unsubscribe

    def lose(self, count: int) -> None:
        """Tell nobody of the next `count` events."""
        self._to_lose = count

    def reverse(self, count: int) -> None:
        """Hold the next `count` events back and tell of them in reverse order."""
        self._to_reverse = count

    def publish(
        self, kind: cri.ContainerEventType.ValueType, record_id: str, sandbox: Sandbox, created_at: int
    ) -> None:
        """Something happened to the container, or to the sandbox itself, with this id."""
        if not self._subscribers:
            return
        if self._to_lose:
            self._to_lose -= 1
            return
        event = cri.ContainerEventResponse(
            container_id=record_id,
            container_event_type=kind,
            created_at=created_at,
            pod_sandbox_status=sandbox.told(),
            containers_statuses=[container.reply().status for container in sandbox.containers.values()],
        )
        if self._to_reverse:
            self._held.appendleft(event)
            self._to_reverse -= 1
            if self._to_reverse:
                return
            event_list, self._held = list(self._held), deque()
        else:
            event_list = [event]
        for tell in list(self._subscribers.values()):
            for each in event_list:
                tell(each)
