"""How far the init containers of a pod have come, read from the runtime's records of them.

The kubelet keeps no notes of its own on this. It looks at the last init container first, because records of
earlier ones may have been cleaned up long ago: a pod that has come this far needs not run them again
(INIT-04).
`INIT_ROWS` is the table for pods without sidecars: the first row that fits decides.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec
from lightkube.models.core_v1 import Container, Pod

from kubelet_reference.api import pods
from kubelet_reference.api.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.util.decision_table import Row, Table

OOM_KILLED = "OOMKilled"


class InitStep(StrEnum):
    """The next step of a pod's initialization."""

    DONE = "it is over"
    WAIT = "it is waited for"
    AGAIN = "the one that failed is run again"
    NEXT = "the one after it is run"
    FIRST = "the first is run"


class InitFacts(msgspec.Struct, frozen=True):
    """What is seen of the init containers of a pod, and whether an app container runs.

    `some_failed` is said of the newest instance of any of them. `runs` and `succeeded` are said of the last
    one that runs or has ended; one that was created and never started does not count (INIT-18). `is_last`
    says that no other comes after that one in the spec.
    """

    has_inits: bool
    app_runs: bool
    some_failed: bool
    runs: bool
    succeeded: bool
    is_last: bool


INIT_ROWS = Table[InitFacts, Row[InitFacts, InitStep]](
    Row("I1", lambda f: not f.has_inits, InitStep.DONE),
    Row("I2", lambda f: f.app_runs, InitStep.DONE),
    Row("I3", lambda f: f.some_failed, InitStep.AGAIN),
    Row("I4", lambda f: f.runs, InitStep.WAIT),
    Row("I5", lambda f: f.succeeded and f.is_last, InitStep.DONE),
    Row("I6", lambda f: f.succeeded, InitStep.NEXT),
    Row("I7", lambda _: True, InitStep.FIRST),
)


class InitProgress(msgspec.Struct, frozen=True):
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
    """Which init container of a pod without sidecars is next, or that all are done.

    An app container that runs proves that initialization is over (INIT-05).
    """
    return progress(pod, records, app_runs=_app_runs(pod, records))


def progress(pod: Pod, records: PodRecords, *, app_runs: bool) -> InitProgress:
    """How far they have come by their records, where an app container does not show that they are done."""
    inits = pods.init_containers(pod)
    newest = [] if app_runs else [records.newest(one.name) for one in inits]
    failed, decisive = _last(newest, has_failed), _last(newest, _has_run)
    index = decisive if failed is None else failed
    record = None if index is None else newest[index]
    facts = InitFacts(
        has_inits=bool(inits),
        app_runs=app_runs,
        some_failed=failed is not None,
        runs=record is not None and record.is_running,
        succeeded=record is not None and record.has_exited,
        is_last=index == len(inits) - 1,
    )
    return _follow(INIT_ROWS.row(facts).then, inits, index or 0, record)


def _follow(
    step: InitStep, inits: Sequence[Container], index: int, record: ContainerRecord | None
) -> InitProgress:
    """What the step means where `record`, of the init container at `index`, has decided it."""
    match step:
        case InitStep.DONE:
            return InitProgress(done=True, record=record)
        case InitStep.WAIT:
            return InitProgress(done=False, record=record)
        case InitStep.AGAIN:
            return InitProgress(done=False, next=inits[index], record=record)
        case InitStep.NEXT:
            return InitProgress(done=False, next=inits[index + 1], record=record)
        case InitStep.FIRST:
            return InitProgress(done=False, next=inits[0])


def _has_run(record: ContainerRecord) -> bool:
    return record.is_running or record.has_exited


def _last(newest: Sequence[ContainerRecord | None], fits: Callable[[ContainerRecord], bool]) -> int | None:
    """The place of the last init container whose newest record fits."""
    places = reversed(range(len(newest)))
    return next((i for i in places if (record := newest[i]) is not None and fits(record)), None)


def _app_runs(pod: Pod, records: PodRecords) -> bool:
    newest = (records.newest(one.name) for one in pods.containers(pod))
    return any(record is not None and record.is_running for record in newest)
