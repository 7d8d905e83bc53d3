"""The queue of pods that are due for another look."""

from kubelet_reference.util.work_queue import WorkQueue


class HandClock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """The time that was set."""
        return self.now

    def wall_ns(self) -> int:
        """The same, as nanoseconds."""
        return int(self.now * 1e9)

    async def sleep(self, seconds: float) -> None:
        """Never used here."""
        raise NotImplementedError(seconds)


def test_due_in_order_of_time() -> None:
    """What is due comes out once, the longest waiting first; equal moments in the order of asking."""
    clock = HandClock()
    queue = WorkQueue(clock)
    for uid, delay in (("late", 5), ("b", 2), ("a", 2), ("first", 1)):
        queue.enqueue(uid, delay)
    clock.now = 2

    assert queue.due() == ["first", "b", "a"]
    assert queue.due() == []
    clock.now = 5
    assert queue.due() == ["late"]


def test_newest_moment_counts() -> None:
    """A new moment replaces the one before it, be it sooner or later."""
    clock = HandClock()
    queue = WorkQueue(clock)
    queue.enqueue("sooner", 60)
    queue.enqueue("sooner", 1)
    queue.enqueue("later", 1)
    queue.enqueue("later", 60)
    clock.now = 1

    assert queue.due() == ["sooner"]
    clock.now = 60
    assert queue.due() == ["later"]
