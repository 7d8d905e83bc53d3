"""Bugs of the sources of pods, and of what the mux makes of them."""

from __future__ import annotations

from collections.abc import Iterable

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.config import ApiSource, FileSource, HttpSource, Mux, Op, Source, classify_change
from kubelet_reference.parts import Parts
from kubelet_reference.pod_handlers import PodHandlers
from kubelet_reference.ports import ApiError, FetchError


class _OneOfEachName(Mux):
    """Keeps one map of names for all sources: who comes second is dropped."""

    def _accept(self, source: Source, given: Pod) -> Op | None:
        others = (
            known for other, held in self._known.items() if other is not source for known in held.values()
        )
        if pods.key(given) in {pods.key(known.pod) for known in others}:
            return None
        return super()._accept(source, given)


def _by_version(old: Pod | None, new: Pod | None) -> Op | None:
    """Takes whatever was written anew for a change."""
    op = classify_change(old, new)
    return Op.UPDATE if op is Op.RECONCILE else op


class _SeenAnew(Mux):
    """Notes the time at which a pod was seen last, not first."""

    def _own_copy(self, source: Source, given: Pod, old: Pod | None) -> Pod:
        return super()._own_copy(source, given, None)


class _BothOfAName(Mux):
    """Runs every manifest, whatever it is called."""

    def _first_of_each_name(self, source: Source, wanted: Iterable[Pod]) -> list[Pod]:
        return list(wanted)


class _AsksAtOnce(ApiSource):
    """Asks for the node's pods before the node is there."""

    async def _node_is_there(self) -> None:
        return


class _NoAnswerIsNoPods(ApiSource):
    """Takes a failed list for an empty one."""

    async def _list(self) -> str:
        try:
            return await super()._list()
        except ApiError:
            self._mux.set_pods(Source.API, ())
            raise


class _ErrorPageIsNoPods(HttpSource):
    """Takes any answer for a list of pods, and an error page for an empty one."""

    async def fetch(self) -> None:
        try:
            _, self._body = await self._web.fetch(self._url, timeout=10)
        except FetchError:
            self._body = b""
        self._take(self._body)


class _FirstItemOnly(Mux):
    """Takes the first pod of a list that the manifest URL gives."""

    def set_pods(self, source: Source, wanted: Iterable[Pod]) -> None:
        found = list(wanted)
        super().set_pods(source, found[:1] if source is Source.HTTP else found)


class _GatesAreNoNews(PodHandlers):
    """Does not look at readiness gates until the next sync."""

    def readiness_differs(self, pod: Pod) -> bool:
        return False


class _ListingsOnly(FileSource):
    """Reads the folder every 20 s, and sees nothing in between."""

    def notice(self, name: str) -> None:
        return


class _ReadsEverything(FileSource):
    """Reads hidden files too, such as those that editors leave."""

    def _is_manifest(self, name: str) -> bool:
        return super()._is_manifest(name.lstrip("."))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-CONFIG-01",
        "A pod is dropped if a pod of another source has its name.",
        lambda: Parts(mux=_OneOfEachName),
        ("CONFIG-01", "STATIC-20"),
    ),
    Bug(
        "MUT-CONFIG-05",
        "A pod whose status alone was written is synced as if it had changed.",
        lambda: Parts(classify_change=_by_version),
        ("CONFIG-05",),
    ),
    Bug(
        "MUT-CONFIG-06",
        "The time at which a pod was first seen moves with each word of its source.",
        lambda: Parts(mux=_SeenAnew),
        ("CONFIG-06",),
    ),
    Bug(
        "MUT-CONFIG-09",
        "Two manifests of one name are run both.",
        lambda: Parts(mux=_BothOfAName),
        ("CONFIG-09",),
    ),
    Bug(
        "MUT-CONFIG-11",
        "The API server is asked for the pods of a node that it does not know.",
        lambda: Parts(api_source=_AsksAtOnce),
        ("CONFIG-11",),
    ),
    Bug(
        "MUT-CONFIG-12",
        "When the API server cannot be reached its pods are taken for gone.",
        lambda: Parts(api_source=_NoAnswerIsNoPods),
        ("CONFIG-12",),
    ),
    Bug(
        "MUT-CONFIG-13",
        "An error page at the manifest URL ends the pods that it named.",
        lambda: Parts(http_source=_ErrorPageIsNoPods),
        ("CONFIG-13",),
    ),
    Bug(
        "MUT-CONFIG-14",
        "Of a list of pods at the manifest URL only the first is run.",
        lambda: Parts(mux=_FirstItemOnly),
        ("CONFIG-14",),
    ),
    Bug(
        "MUT-CONFIG-16",
        "A readiness gate that somebody opens shows only at the next sync.",
        lambda: Parts(pod_handlers=_GatesAreNoNews),
        ("CONFIG-16",),
    ),
    Bug(
        "MUT-STATIC-06",
        "Hidden files in the manifest folder are run too.",
        lambda: Parts(file_source=_ReadsEverything),
        ("STATIC-06",),
    ),
    Bug(
        "MUT-STATIC-09",
        "A manifest that appears waits for the next listing of the folder.",
        lambda: Parts(file_source=_ListingsOnly),
        ("STATIC-09",),
    ),
)
