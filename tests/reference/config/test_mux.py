"""The mux: what a snapshot changes, in which order, and that sources never touch each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from config_doubles import Events, a_pod, drain, drained
from hypothesis import given
from hypothesis import strategies as st
from lightkube.models.core_v1 import Pod

from kubelet_fakes.clock import LoopClock
from kubelet_reference.api import names, pods
from kubelet_reference.config import Mux, Op, Source, classify_change
from kubelet_reference.config.changes import CHANGES, Change

DELETED = "2030-01-01T00:00:00Z"
OTHER_SPEC = {"terminationGracePeriodSeconds": 1}
RUNNING = {"phase": "Running"}

#: The table of changes: what the source said last, what it says now, and what that means; None is no pod.
TABLE: dict[str, tuple[Pod | None, Pod | None, Op | None]] = {
    "new": (None, a_pod(), Op.ADD),
    "new and being deleted": (None, a_pod(deletionTimestamp=DELETED), Op.ADD),
    "same": (a_pod(), a_pod(), None),
    "same but for resourceVersion": (a_pod(resourceVersion="1"), a_pod(resourceVersion="2"), None),
    "spec": (a_pod(), a_pod(spec=OTHER_SPEC), Op.UPDATE),
    "labels": (a_pod(), a_pod(labels={"a": "b"}), Op.UPDATE),
    "annotations": (a_pod(), a_pod(annotations={"a": "b"}), Op.UPDATE),
    "own annotations": (a_pod(), a_pod(annotations={names.CONFIG_SEEN: "x", names.CONFIG_SOURCE: "y"}), None),
    "mirror annotation": (a_pod(), a_pod(annotations={names.CONFIG_MIRROR: "x"}), None),
    "spec and status": (a_pod(), a_pod(spec=OTHER_SPEC, status=RUNNING), Op.UPDATE),
    "status": (a_pod(), a_pod(status=RUNNING), Op.RECONCILE),
    "status of a deleted one": (
        a_pod(deletionTimestamp=DELETED),
        a_pod(deletionTimestamp=DELETED, status=RUNNING),
        Op.RECONCILE,
    ),
    "deletion": (a_pod(), a_pod(deletionTimestamp=DELETED), Op.DELETE),
    "deletion and labels": (a_pod(), a_pod(deletionTimestamp=DELETED, labels={"a": "b"}), Op.DELETE),
    "shorter deletion": (
        a_pod(deletionTimestamp=DELETED, deletionGracePeriodSeconds=30),
        a_pod(deletionTimestamp=DELETED, deletionGracePeriodSeconds=5),
        Op.DELETE,
    ),
    "unchanged deletion": (a_pod(deletionTimestamp=DELETED), a_pod(deletionTimestamp=DELETED), None),
}


@pytest.mark.parametrize(("old", "new", "op"), TABLE.values(), ids=TABLE)
def test_change_is_classified(old: Pod | None, new: Pod, op: Op | None) -> None:
    """Each row of the table of changes (CONFIG-05, CONFIG-07, CONFIG-08)."""
    assert classify_change(old, new) is op


#: Changes that each row decides, with all that the rows below it look at.
CASES = {
    "deleted": Change(differs=True, deleting=True, other_status=True),
    "changed": Change(differs=True, deleting=False, other_status=True),
    "other status": Change(differs=False, deleting=True, other_status=True),
    "the same": Change(differs=False, deleting=True, other_status=False),
}


def test_each_row_decides() -> None:
    """Each row is the first that fits the change it is for."""
    assert [CHANGES.row(CASES[row.name]) for row in CHANGES] == list(CHANGES)


class StoppedClock(LoopClock):
    """A clock that a test sets."""

    def __init__(self) -> None:
        super().__init__(0)
        self.now_ns = 0

    def wall_ns(self) -> int:
        """What the test set."""
        return self.now_ns


def a_mux(events: Events | None = None, clock: StoppedClock | None = None) -> Mux:
    """A mux of all three sources."""
    return Mux((events or Events()).recorder, clock or StoppedClock(), tuple(Source))


def test_what_goes_comes_first() -> None:
    """One snapshot is delivered as REMOVE, ADD, UPDATE, DELETE, RECONCILE (CONFIG-03)."""
    mux = a_mux()
    mux.set_pods(Source.API, [a_pod(name, uid=name) for name in ("a", "b", "c", "d", "e")])
    drain(mux)

    mux.set_pods(
        Source.API,
        [
            a_pod("b", uid="b", status=RUNNING),
            a_pod("c", uid="c", deletionTimestamp=DELETED),
            a_pod("d", uid="d", spec=OTHER_SPEC),
            a_pod("e", uid="e"),
            a_pod("f", uid="f"),
        ],
    )

    assert drained(mux) == [
        ("REMOVE", ["a"]),
        ("ADD", ["f"]),
        ("UPDATE", ["d"]),
        ("DELETE", ["c"]),
        ("RECONCILE", ["b"]),
    ]


def test_empty_source_counts() -> None:
    """The first snapshot of a source is delivered also without pods, a later empty one is not (LOOP-07)."""
    mux = a_mux()

    mux.set_pods(Source.FILE, ())
    mux.set_pods(Source.FILE, ())

    assert drained(mux) == [("ADD", [])]


def test_sources_are_seen_once_the_loop_dealt_with_them() -> None:
    """A source counts once an update of it was taken, not delivered; all must have been (LOOP-08)."""
    mux = Mux(Events().recorder, StoppedClock(), (Source.FILE, Source.API))

    mux.set_pods(Source.FILE, ())
    reported = mux.all_seen()
    mux.mark_seen(Source.FILE)
    one = mux.all_seen()
    mux.mark_seen(Source.API)

    assert (reported, one, mux.all_seen()) == (False, False, True)


def test_second_pod_of_a_name_is_refused() -> None:
    """Of two pods with one name in one source the first runs; the second has an event (CONFIG-09)."""
    events = Events()
    mux = a_mux(events)

    mux.set_pods(Source.FILE, [a_pod(uid="1"), a_pod(uid="2")])
    mux.set_pods(Source.HTTP, [a_pod(uid="3")])

    assert [(update.op, [pods.uid(pod) for pod in update.pods]) for update in drain(mux)] == [
        (Op.ADD, ["1"]),
        (Op.ADD, ["3"]),
    ]
    assert [event.pod.metadata and event.pod.metadata.uid for event in events.emitted] == ["2"]
    assert events.reported == [("Warning", "FailedValidation", "default/web")]


def test_own_annotations_stay() -> None:
    """The source and the time of first sight are kept, whatever the source says later (CONFIG-06)."""
    clock = StoppedClock()
    mux = a_mux(clock=clock)
    clock.now_ns = 1_500_000_000
    mux.set_pods(Source.FILE, [a_pod(uid="1", annotations={"a": "b"})])
    clock.now_ns = 9_000_000_000
    mux.set_pods(Source.FILE, [a_pod(uid="1", annotations={"a": "c", names.CONFIG_SEEN: "forged"})])

    first, second = drain(mux)

    own = {names.CONFIG_SOURCE: "file", names.CONFIG_SEEN: "1970-01-01T00:00:01.500000000Z"}
    assert pods.annotations(first.pods[0]) == {"a": "b", **own}
    assert pods.annotations(second.pods[0]) == {"a": "c", **own}


def test_nobody_shares_a_pod_with_the_source() -> None:
    """What a source does to its pod later changes nothing for others (CONFIG-10)."""
    mux = a_mux()
    given = a_pod(uid="1")
    mux.set_pods(Source.API, [given])
    pods.containers(given)[0].image = "other"

    (update,) = drain(mux)

    assert pods.containers(update.pods[0])[0].image == "img:1"


@dataclass(frozen=True)
class Word:
    """What a source says of one pod."""

    uid: str
    label: str
    is_deleted: bool
    phase: str

    def pod(self) -> Pod:
        """The pod as the source gives it."""
        deletion: dict[str, Any] = {"deletionTimestamp": DELETED} if self.is_deleted else {}
        return a_pod(
            self.uid, uid=self.uid, labels={"a": self.label}, status={"phase": self.phase}, **deletion
        )


WORDS = st.builds(
    Word,
    st.sampled_from("abcd"),
    st.sampled_from("xy"),
    st.booleans(),
    st.sampled_from(["Pending", "Running"]),
)
SNAPSHOTS = st.lists(WORDS, unique_by=lambda word: word.uid, max_size=4)
ORDER = [Op.REMOVE, Op.ADD, Op.UPDATE, Op.DELETE, Op.RECONCILE]


def facts(pod: Pod) -> tuple[Any, ...]:
    """What counts of a pod."""
    return (dict(pods.labels(pod)), pods.deletion_asked(pod), pods.phase(pod))


def applied(mux: Mux, wanted: dict[str, tuple[Any, ...]], source: Source) -> dict[str, tuple[Any, ...]]:
    """The pods that are wanted once the updates in the mux are taken; each update must make sense."""
    updates = drain(mux)
    ops = [update.op for update in updates]
    assert ops == sorted(set(ops), key=ORDER.index)
    result = dict(wanted)
    for update in updates:
        assert update.source is source
        for pod in update.pods:
            uid = pods.uid(pod)
            assert (uid in result) == (update.op is not Op.ADD)
            if update.op is Op.REMOVE:
                del result[uid]
            else:
                assert result.get(uid) != facts(pod)
                result[uid] = facts(pod)
    return result


@given(st.lists(st.tuples(st.sampled_from(list(Source)), SNAPSHOTS), max_size=6))
def test_updates_turn_each_snapshot_into_the_next(reported: Sequence[tuple[Source, list[Word]]]) -> None:
    """The updates of a snapshot turn what its source wanted before into what it wants now.

    They come in the order of CONFIG-03, each pod once, and no other source is touched (CONFIG-02, CONFIG-04).
    """
    mux = a_mux()
    wanted: dict[Source, dict[str, tuple[Any, ...]]] = {source: {} for source in Source}

    for source, snapshot in reported:
        mux.set_pods(source, [word.pod() for word in snapshot])
        wanted[source] = applied(mux, wanted[source], source)

        assert wanted[source] == {word.uid: facts(word.pod()) for word in snapshot}


@given(st.lists(SNAPSHOTS, min_size=2, max_size=4))
def test_change_means_what_the_whole_snapshot_means(snapshots: list[list[Word]]) -> None:
    """Telling only what changed brings the same updates as telling all there is."""
    whole, parts = a_mux(), a_mux()
    whole.set_pods(Source.API, [word.pod() for word in snapshots[0]])
    parts.set_pods(Source.API, [word.pod() for word in snapshots[0]])

    for old, new in pairwise(snapshots):
        whole.set_pods(Source.API, [word.pod() for word in new])
        uids = {word.uid for word in new}
        changed = [word.pod() for word in new if word not in old]
        parts.change_pods(Source.API, changed, [word.uid for word in old if word.uid not in uids])

    def reported(mux: Mux) -> list[tuple[Op, list[str]]]:
        return [(update.op, sorted(pods.uid(pod) for pod in update.pods)) for update in drain(mux)]

    assert reported(whole) == reported(parts)
