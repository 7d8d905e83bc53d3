"""What other packages learn about a pod's worker, state by state."""

import pytest

from kubelet_reference.pod_workers.pod_state_queries import PodStateQueries
from kubelet_reference.pod_workers.worker import Worker
from kubelet_reference.pod_workers.worker_table import State

QUESTIONS = (
    "could_have_running_containers",
    "is_pod_known_terminated",
    "should_content_be_removed",
)


class Views(PodStateQueries):
    """The questions over one worker that is made up."""

    def __init__(self, worker: Worker | None, *, is_synced: bool) -> None:
        super().__init__()
        self._workers = {} if worker is None else {"u1": worker}
        self._is_synced = is_synced


def answers(worker: Worker | None, *, is_synced: bool = True) -> list[bool]:
    """The answers, in the order of the questions."""
    views = Views(worker, is_synced=is_synced)
    return [getattr(views, question)("u1") for question in QUESTIONS]


@pytest.mark.parametrize(
    ("worker", "expected"),
    [
        (Worker("u1", "", State.SYNC), [True, False, False]),
        (Worker("u1", "", State.TERMINATING, is_deleted=True), [True, False, False]),
        (Worker("u1", "", State.TERMINATING, is_evicted=True), [True, False, False]),
        (Worker("u1", "", State.TERMINATED), [False, True, False]),
        (Worker("u1", "", State.TERMINATED, is_deleted=True), [False, True, True]),
        (Worker("u1", "", State.TERMINATED, is_evicted=True), [False, True, True]),
    ],
    ids=["sync", "asked", "being evicted", "stopped", "deleted", "evicted"],
)
def test_pod_with_a_worker(worker: Worker, expected: list[bool]) -> None:
    """Each permission is given when the state is reached that makes it safe, and not before."""
    assert answers(worker) == expected


def test_pod_without_a_worker() -> None:
    """Before the first housekeeping an unknown pod may run and must be kept; after it, it is gone."""
    assert answers(None, is_synced=False) == [True, False, False]
    assert answers(None, is_synced=True) == [False, False, True]
