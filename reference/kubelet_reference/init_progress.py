"""How far the init containers of a pod have come, told from what the runtime remembers of them.

The kubelet keeps no notes of its own on this. It looks at the last init container first, because records of
earlier ones may have been cleaned up long ago: whoever has come this far needs not run them again (INIT-04).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubelet_reference import pods
from kubelet_reference.records import ContainerState

if TYPE_CHECKING:
    from lightkube.models.core_v1 import Container, Pod

    from kubelet_reference.records import ContainerRecord, PodRecords

__all__ = ("InitProgress", "has_failed", "init_progress", "progress_by_records")

OOM_KILLED = "OOMKilled"


@dataclass(frozen=True, slots=True)
class InitProgress:
    """`done`, or else the container to run next (None: wait) and the record that decided it."""

    done: bool
    next: Container | None = None
    record: ContainerRecord | None = None

    @property
    def failed(self) -> bool:
        """Whether `next` is to run because it failed."""
        return self.record is not None and has_failed(self.record)


def has_failed(record: ContainerRecord) -> bool:
    """Whether an instance of an init container failed; killed for its memory is failed (INIT-07, INIT-09)."""
    if record.state is ContainerState.UNKNOWN or record.reason == OOM_KILLED:
        return True
    return record.has_exited and record.exit_code != 0


def init_progress(pod: Pod, records: PodRecords) -> InitProgress:
    """Table 27.4, for pods without sidecars: which init container is next, or that all are done.

    An app container that runs proves that initialization is over (INIT-05). An init container that was
    created and never started counts as neither running nor done (INIT-18).
    """
    if not pods.init_containers(pod) or _app_runs(pod, records):
        return InitProgress(done=True)
    return progress_by_records(pod, records)


def progress_by_records(pod: Pod, records: PodRecords) -> InitProgress:
    """How far the records of the init containers themselves show that they have come."""
    inits = pods.init_containers(pod)
    newest = [(one, records.newest(one.name)) for one in inits]
    for one, record in reversed(newest):
        if record is not None and has_failed(record):
            return InitProgress(done=False, next=one, record=record)
    for index, (_, record) in reversed(list(enumerate(newest))):
        if record is not None and record.is_running:
            return InitProgress(done=False, record=record)
        if record is not None and record.has_exited:
            last = index == len(inits) - 1
            return InitProgress(done=last, next=None if last else inits[index + 1], record=record)
    return InitProgress(done=False, next=inits[0])


def _app_runs(pod: Pod, records: PodRecords) -> bool:
    newest = (records.newest(one.name) for one in pods.containers(pod))
    return any(record is not None and record.is_running for record in newest)
