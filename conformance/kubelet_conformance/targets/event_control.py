"""What may be done to the stream of container events; what a target cannot do raises `NotPossibleError`."""

from __future__ import annotations

from typing import Protocol


class EventControl(Protocol):
    """The runtime's stream of container events in a scenario's hands. A count of 0 ends what was begun."""

    def lose_events(self, count: int) -> None:
        """Nobody is told of the next `count` events."""
        ...

    def delay_events(self, count: int, seconds: float) -> None:
        """Each of the next `count` events is told so much later; those that come after them overtake."""
        ...

    def reverse_events(self, count: int) -> None:
        """The next `count` events are held back, and then told in reverse order."""
        ...

    def cut_events(self) -> None:
        """The stream breaks; what happens before it is opened anew is told to nobody."""
        ...
