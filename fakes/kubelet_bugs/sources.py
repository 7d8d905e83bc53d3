"""Bugs of the sources of pods, and of what the mux makes of them."""

from __future__ import annotations

from collections.abc import Iterable

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.config import ApiSource, FileSource, HttpSource, Mux, Op, Source, classify_change
from kubelet_reference.pod_handlers import PodHandlers
from kubelet_reference.ports import ApiError, FetchError


@bug("MUT-CONFIG-01", breaks=("CONFIG-01", "STATIC-20"))
class OneOfEachName(Mux):
    """A pod is dropped if a pod of another source has its name."""

    def _accept(self, source: Source, given: Pod) -> Op | None:
        others = (
            known for other, held in self._known.items() if other is not source for known in held.values()
        )
        if pods.key(given) in {pods.key(known.pod) for known in others}:
            return None
        return super()._accept(source, given)


@bug("MUT-CONFIG-05", breaks="CONFIG-05", part="classify_change")
def by_version(old: Pod | None, new: Pod | None) -> Op | None:
    """A pod whose status alone was written is synced as if it had changed."""
    op = classify_change(old, new)
    return Op.UPDATE if op is Op.RECONCILE else op


@bug("MUT-CONFIG-06", breaks="CONFIG-06")
class SeenAnew(Mux):
    """The time at which a pod was first seen moves with each word of its source."""

    def _own_copy(self, source: Source, given: Pod, old: Pod | None) -> Pod:
        return super()._own_copy(source, given, None)


@bug("MUT-CONFIG-09", breaks="CONFIG-09")
class BothOfAName(Mux):
    """Two manifests of one name are run both."""

    def _first_of_each_name(self, source: Source, wanted: Iterable[Pod]) -> list[Pod]:
        return list(wanted)


@bug("MUT-CONFIG-11", breaks="CONFIG-11")
class AsksAtOnce(ApiSource):
    """The API server is asked for the pods of a node that it does not know."""

    async def _node_is_there(self) -> None:
        return


@bug("MUT-CONFIG-12", breaks="CONFIG-12")
class NoAnswerIsNoPods(ApiSource):
    """When the API server cannot be reached its pods are taken for gone."""

    async def _list(self) -> str:
        try:
            return await super()._list()
        except ApiError:
            self._mux.set_pods(Source.API, ())
            raise


@bug("MUT-CONFIG-13", breaks="CONFIG-13")
class ErrorPageIsNoPods(HttpSource):
    """An error page at the manifest URL ends the pods that it named."""

    async def fetch(self) -> None:
        try:
            _, self._body = await self._web.fetch(self._url, timeout=10)
        except FetchError:
            self._body = b""
        self._take(self._body)


@bug("MUT-CONFIG-14", breaks="CONFIG-14")
class FirstItemOnly(Mux):
    """Of a list of pods at the manifest URL only the first is run."""

    def set_pods(self, source: Source, wanted: Iterable[Pod]) -> None:
        found = list(wanted)
        super().set_pods(source, found[:1] if source is Source.HTTP else found)


@bug("MUT-CONFIG-16", breaks="CONFIG-16")
class GatesAreNoNews(PodHandlers):
    """A readiness gate that somebody opens shows only at the next sync."""

    def readiness_differs(self, pod: Pod) -> bool:
        return False


@bug("MUT-STATIC-09", breaks="STATIC-09")
class ListingsOnly(FileSource):
    """A manifest that appears waits for the next listing of the folder."""

    def notice(self, name: str) -> None:
        return


@bug("MUT-STATIC-06", breaks="STATIC-06")
class ReadsEverything(FileSource):
    """Hidden files in the manifest folder are run too."""

    def _is_manifest(self, name: str) -> bool:
        return super()._is_manifest(name.lstrip("."))
