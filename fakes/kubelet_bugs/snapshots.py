"""Bugs in what a kubelet makes of one snapshot of a source: whom it concerns, and what comes first."""

from __future__ import annotations

from collections.abc import Iterable

from lightkube.models.core_v1 import Pod
from lightkube.models.meta_v1 import ObjectMeta
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.config import FileSource, Mux, Source
from kubelet_reference.parts import Parts
from kubelet_reference.pod_handlers import PodHandlers


class _AllAnew(Mux):
    """Drops all pods of a source, and adds those of its new snapshot, whenever it speaks."""

    def change_pods(self, source: Source, changed: Iterable[Pod], gone: Iterable[str] = ()) -> None:
        wanted = {uid: known.given for uid, known in self._known[source].items() if uid not in {*gone}}
        self._merge(source, (), [*self._known[source]], is_first=False)
        self.set_pods(source, {**wanted, **{pods.uid(pod): pod for pod in changed}}.values())


class _NewOnesFirst(Mux):
    """Adds what comes before it removes what goes."""

    def _merge(self, source: Source, changed: Iterable[Pod], gone: Iterable[str], *, is_first: bool) -> None:
        super()._merge(source, changed, (), is_first=is_first)
        super()._merge(source, (), gone, is_first=False)


class _StartsBeforeItEnds(PodHandlers):
    """Does not see that a pod which it meets for the first time is to go."""

    async def add(self, added: Iterable[Pod]) -> None:
        await super().add(map(self._alive, added))

    def _alive(self, pod: Pod) -> Pod:
        metadata = pod.metadata or ObjectMeta()
        return replace(
            pod, metadata=replace(metadata, deletionTimestamp=None, deletionGracePeriodSeconds=None)
        )


class _BadStaysGood(FileSource):
    """Goes on with what a manifest held when it was last good."""

    def _list_folder(self) -> dict[str, Pod]:
        found = super()._list_folder()
        there = {self._disk_path(name) for name in self._disk.names(self._path)}
        return {**{path: pod for path, pod in self._pods.items() if path in there}, **found}

    def _disk_path(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-CONFIG-02",
        "When one pod changes all pods of its source are removed and added anew.",
        lambda: Parts(mux=_AllAnew),
        ("CONFIG-02",),
    ),
    Bug(
        "MUT-CONFIG-03",
        "Of one snapshot the new pods are dealt with before those that are gone.",
        lambda: Parts(mux=_NewOnesFirst),
        ("CONFIG-03",),
    ),
    Bug(
        "MUT-CONFIG-08",
        "A pod that is being deleted when it is first seen is started.",
        lambda: Parts(pod_handlers=_StartsBeforeItEnds),
        ("CONFIG-08",),
    ),
    Bug(
        "MUT-STATIC-07",
        "A manifest that turns bad keeps its pod for good.",
        lambda: Parts(file_source=_BadStaysGood),
        ("STATIC-07",),
    ),
)
