"""Bugs in what a kubelet makes of one snapshot of a source: whom it concerns, and what comes first."""

from __future__ import annotations

from collections.abc import Iterable

from lightkube.models.core_v1 import Pod
from lightkube.models.meta_v1 import ObjectMeta
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.config import FileSource, Mux, Source
from kubelet_reference.pod_handlers import PodHandlers


@bug("MUT-CONFIG-02", breaks="CONFIG-02")
class AllAnew(Mux):
    """When one pod changes all pods of its source are removed and added anew."""

    def change_pods(self, source: Source, changed: Iterable[Pod], gone: Iterable[str] = ()) -> None:
        wanted = {uid: known.given for uid, known in self._known[source].items() if uid not in {*gone}}
        self._merge(source, (), [*self._known[source]], is_first=False)
        self.set_pods(source, {**wanted, **{pods.uid(pod): pod for pod in changed}}.values())


@bug("MUT-CONFIG-03", breaks="CONFIG-03")
class NewOnesFirst(Mux):
    """Of one snapshot the new pods are dealt with before those that are gone."""

    def _merge(self, source: Source, changed: Iterable[Pod], gone: Iterable[str], *, is_first: bool) -> None:
        super()._merge(source, changed, (), is_first=is_first)
        super()._merge(source, (), gone, is_first=False)


@bug("MUT-CONFIG-08", breaks="CONFIG-08")
class StartsBeforeItEnds(PodHandlers):
    """A pod that is being deleted when it is first seen is started."""

    async def add(self, added: Iterable[Pod]) -> None:
        await super().add(map(self._alive, added))

    def _alive(self, pod: Pod) -> Pod:
        metadata = pod.metadata or ObjectMeta()
        return structs.replace(
            pod, metadata=structs.replace(metadata, deletionTimestamp=None, deletionGracePeriodSeconds=None)
        )


@bug("MUT-STATIC-07", breaks="STATIC-07")
class BadStaysGood(FileSource):
    """A manifest that turns bad keeps its pod for good."""

    def _list_folder(self) -> dict[str, Pod]:
        found = super()._list_folder()
        there = {self._disk_path(name) for name in self._disk.names(self._path)}
        return {**{path: pod for path, pod in self._pods.items() if path in there}, **found}

    def _disk_path(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"
