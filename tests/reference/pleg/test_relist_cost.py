"""What an idle node costs: calls and touched entries are counted, nothing is timed."""

import pytest
from observation import ScriptedRuntime, clock, listed

from kubelet_fakes.clock import run
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.records import ListedPod, PodRecords
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pleg.generic import Pleg

PODS = 1_000


class CountingCache(PodCache):
    """Counts how often an entry is read or written."""

    def __init__(self) -> None:
        super().__init__()
        self.touched = 0

    def get(self, uid: str) -> PodRecords:
        """Count, and do it."""
        self.touched += 1
        return super().get(uid)

    def set(
        self, uid: str, records: PodRecords | None, moment: float, error: Exception | None = None
    ) -> None:
        """Count, and do it."""
        self.touched += 1
        super().set(uid, records, moment, error)

    def delete(self, uid: str) -> None:
        """Count, and do it."""
        self.touched += 1
        super().delete(uid)


class CountingPleg(Pleg):
    """Counts the pods that are compared."""

    compared = 0

    def _to_compare(self, current: dict[str, ListedPod]) -> tuple[str, ...]:
        found = tuple(super()._to_compare(current))
        self.compared += len(found)
        return found


def _many() -> tuple[ListedPod, ...]:
    return tuple(listed(f"u{number}", c="RUNNING") for number in range(PODS))


@pytest.mark.parametrize(("again", "compared"), [(False, 0), (True, PODS)], ids=["same", "equal"])
def test_an_unchanged_relist_is_free(*, again: bool, compared: int) -> None:
    """Lists that are the same object cost one look at them, equal ones a comparison, neither an entry."""

    async def work() -> tuple[list[str], int, int, int]:
        runtime, cache = ScriptedRuntime(*_many()), CountingCache()
        pleg = CountingPleg(runtime, cache, clock(), Metrics(), capacity=PODS * 2)
        await pleg.relist()
        queued = pleg.events.qsize()
        runtime.calls.clear()
        cache.touched = pleg.compared = 0
        if again:
            runtime.pods = _many()
        await pleg.relist()
        return runtime.calls, cache.touched, pleg.compared, pleg.events.qsize() - queued

    assert run(work()) == (["list"], 0, compared, 0)


def test_one_change_touches_one_entry() -> None:
    """When one pod of many changes, one entry is read and one written."""

    async def work() -> tuple[list[str], int]:
        runtime, cache = ScriptedRuntime(*_many()), CountingCache()
        pleg = Pleg(runtime, cache, clock(), Metrics())
        await pleg.relist()
        runtime.calls.clear()
        cache.touched = 0
        runtime.pods = (*runtime.pods[1:], listed("u0", c="EXITED"))
        await pleg.relist()
        return runtime.calls, cache.touched

    assert run(work()) == (["list", "u0"], 2)
