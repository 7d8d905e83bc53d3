"""The mux: merges the sources of pods into one queue of changes (CONFIG-01 to CONFIG-09).

A source sends the mux the pods that it wants, as a full snapshot or as a change of the last one. The mux
compares it with what the same source wanted before, and puts the differences on the queue: first what goes,
then what comes, so that a pod that is dropped has made room for one that is added.
"""

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec
from lightkube.models.core_v1 import Pod, PodSpec, PodStatus
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_reference.api import names, pods
from kubelet_reference.api.events import Reason, Recorder
from kubelet_reference.api.records import NANOSECONDS
from kubelet_reference.config.changes import LOCAL, Classify, Op, classify_change
from kubelet_reference.config.static_pods import Source
from kubelet_reference.util.ports import Clock

Part = TypeVar("Part", ObjectMeta, PodSpec, PodStatus)

_LOG = logging.getLogger("kubelet_reference.config")


class PodUpdate(msgspec.Struct, frozen=True):
    """One change for the sync loop: the same thing happened to these pods of one source."""

    op: Op
    source: Source
    pods: tuple[Pod, ...]


_ORDER = (Op.REMOVE, Op.ADD, Op.UPDATE, Op.DELETE)
"""The order of what one snapshot brings (CONFIG-03); RECONCILE comes last, after the empty ADD."""


class Mux:
    """Merges the snapshots of `sources` into `updates`.

    `sources` are all sources of this kubelet: one that has no pods must say so before the kubelet may
    conclude that a pod is not desired (LOOP-08). `classify` decides what kind of change it is.
    """

    def __init__(
        self, events: Recorder, clock: Clock, sources: Iterable[Source], classify: Classify = classify_change
    ) -> None:
        self.updates: asyncio.Queue[PodUpdate] = asyncio.Queue()
        self._events = events
        self._clock = clock
        self._classify = classify
        self._known: dict[Source, dict[str, Pod]] = {}
        """What each source wants that has said so, by UID."""
        self._seen: dict[Source, bool] = dict.fromkeys(sources, False)

    def set_pods(self, source: Source, wanted: Iterable[Pod]) -> None:
        """These are all the pods that the source wants now (CONFIG-02)."""
        kept = self._first_of_each_name(source, wanted)
        uids = {pods.uid(pod) for pod in kept}
        is_first = source not in self._known
        gone = [uid for uid in self._known.setdefault(source, {}) if uid not in uids]
        self._merge(source, kept, gone, is_first=is_first)

    def change_pods(self, source: Source, changed: Iterable[Pod], gone: Iterable[str] = ()) -> None:
        """The source wants what it wanted before, save that these pods changed and the UIDs in `gone` went.

        It means the same as `set_pods` with the whole new snapshot, and costs as much as the change.
        """
        self._merge(source, changed, [uid for uid in gone if uid in self._known[source]], is_first=False)

    def mark_seen(self, source: Source) -> None:
        """The sync loop has dealt with a first update of this source (LOOP-07)."""
        self._seen[source] = True

    def all_seen(self) -> bool:
        """Whether every source was seen: only then is a pod that none named not desired (LOOP-08)."""
        return all(self._seen.values())

    def _merge(self, source: Source, changed: Iterable[Pod], gone: Iterable[str], *, is_first: bool) -> None:
        found: dict[Op, list[Pod]] = {}
        for uid in gone:
            found.setdefault(Op.REMOVE, []).append(self._known[source].pop(uid))
        for pod in changed:
            op = self._accept(source, pod)
            if op is not None:
                found.setdefault(op, []).append(self._known[source][pods.uid(pod)])
        for op in _ORDER:
            self._emit(op, source, found.get(op, []))
        if is_first and not any(op in found for op in (Op.ADD, Op.UPDATE, Op.DELETE)):
            # A source without pods must be seen too (LOOP-07).
            self.updates.put_nowait(PodUpdate(Op.ADD, source, ()))
        self._emit(Op.RECONCILE, source, found.get(Op.RECONCILE, []))

    def _accept(self, source: Source, given: Pod) -> Op | None:
        """Keep what the source now says of a pod, and return what kind of change that is."""
        known = self._known[source].get(pods.uid(given))
        pod = self._own_copy(source, given, known)
        op = self._classify(known, pod)
        if op is not None:
            self._known[source][pods.uid(given)] = pod
        return op

    def _own_copy(self, source: Source, given: Pod, old: Pod | None) -> Pod:
        """A private copy (CONFIG-10), with our annotations as they were (CONFIG-06)."""
        if old is None:
            local = {names.CONFIG_SOURCE: str(source), names.CONFIG_SEEN: _rfc3339(self._clock.wall_ns())}
        else:
            local = {name: value for name, value in pods.annotations(old).items() if name in LOCAL}
        metadata = _copied(given.metadata) or ObjectMeta()
        metadata.annotations = {**pods.annotations(given), **local}
        return Pod(given.apiVersion, given.kind, metadata, _copied(given.spec), _copied(given.status))

    def _first_of_each_name(self, source: Source, wanted: Iterable[Pod]) -> list[Pod]:
        """The pods without those whose name an earlier one has (CONFIG-09)."""
        first: dict[str, Pod] = {}
        for pod in wanted:
            if first.setdefault(pods.key(pod), pod) is not pod:
                message = (
                    f"The pod {pods.key(pod)} from {source} is refused: its name is taken by another one"
                )
                _LOG.error("%s (uid %s)", message, pods.uid(pod))
                self._events.warning(pod, Reason.FAILED_VALIDATION, message)
        return list(first.values())

    def _emit(self, op: Op, source: Source, found: list[Pod]) -> None:
        if found:
            self.updates.put_nowait(PodUpdate(op, source, tuple(found)))


def _copied(part: Part | None) -> Part | None:
    """A part of a pod with everything in it made anew."""
    return None if part is None else msgspec.convert(msgspec.to_builtins(part), type(part))


def _rfc3339(wall_ns: int) -> str:
    seconds, nanoseconds = divmod(wall_ns, NANOSECONDS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09d}Z"
