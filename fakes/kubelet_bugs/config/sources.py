"""Bugs of the sources of pods: what is read from them, what the mux makes of it, and what comes first."""

from collections.abc import Iterable

from lightkube.models.core_v1 import Pod
from lightkube.models.meta_v1 import ObjectMeta
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods
from kubelet_reference.config import ApiSource, FileSource, HttpSource, Mux, Op, Source, classify_change
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.pod_workers.pod_state_queries import PodActivity
from kubelet_reference.util.ports import ApiError, FetchError


@bug("MUT-CONFIG-01", breaks=("CONFIG-01", "STATIC-20"))
class OneOfEachName(Mux):
    """A pod is dropped if a pod of another source has its name."""

    def _accept(self, source: Source, given: Pod) -> Op | None:
        others = (
            known for other, held in self._known.items() if other is not source for known in held.values()
        )
        if pods.key(given) in {pods.key(known) for known in others}:
            return None
        return super()._accept(source, given)


@bug("MUT-CONFIG-05", breaks="CONFIG-05", part="classify_change")
def by_version(old: Pod | None, new: Pod) -> Op | None:
    """A pod whose status alone was written is synced as if it had changed."""
    op = classify_change(old, new)
    return Op.UPDATE if op is Op.RECONCILE else op


@bug("MUT-CONFIG-06", breaks="CONFIG-06")
class SeenAnew(Mux):
    """The time at which a pod was first seen moves with each word of its source."""

    def _own_copy(self, source: Source, given: Pod, old: Pod | None) -> Pod:
        return super()._own_copy(source, given, None)


@bug("MUT-CONFIG-09", breaks="CONFIG-09")
class FirstOfAName(FileSource):
    """Of two manifests with one name the one of the first file is run."""

    def _send(self) -> None:
        self.mux.set_pods(Source.FILE, [self._pods[path] for path in sorted(self._pods)])


@bug("MUT-CONFIG-11", breaks="CONFIG-11")
class AsksAtOnce(ApiSource):
    """The API server is asked for pods before it has answered for the node."""

    async def _node_is_answered_for(self) -> None:
        return


@bug("MUT-CONFIG-12", breaks="CONFIG-12")
class NoAnswerIsNoPods(ApiSource):
    """When the API server cannot be reached its pods are taken for gone."""

    async def _watch(self, version: str) -> None:
        try:
            async for event in self._api.watch_pods(self._node_name, version):
                self._take(event)
        except ApiError:
            self._mux.set_pods(Source.API, ())
            raise


@bug("MUT-CONFIG-13", breaks="CONFIG-13")
class ErrorPageIsNoPods(HttpSource):
    """An error page at the manifest URL ends the pods that it named."""

    async def fetch(self) -> None:
        try:
            _, self._body = await self.web.fetch(self._url)
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


@bug("MUT-CONFIG-02", breaks="CONFIG-02")
class AllAnew(Mux):
    """When one pod changes all pods of its source are removed and added anew."""

    def change_pods(self, source: Source, changed: Iterable[Pod], gone: Iterable[str] = ()) -> None:
        wanted = {uid: known for uid, known in self._known[source].items() if uid not in {*gone}}
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
        there = {self._disk_path(name) for name in self.disk.names(self._path)}
        return {**{path: pod for path, pod in self._pods.items() if path in there}, **found}

    def _disk_path(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"


@bug("K8S-104531", breaks=("CLEANUP-07", "WORK-14"), aliases=("K26", "K8S-104798"))
class AllAreNew(PodHandlers):
    """A pod that the API server shows as ended is started by a kubelet that comes back."""

    async def add(self, added: Iterable[Pod]) -> None:
        found = [structs.replace(pod, status=None) if self.forgets(pods.phase(pod)) else pod for pod in added]
        await super().add(found)

    def forgets(self, phase: str) -> bool:
        """Whether a pod of this phase is taken for a new one."""
        return pods.is_terminal_phase(phase)


@bug("K8S-7250", breaks=("WORK-14", "RESTARTKUBELET-05"))
class SucceededAreNew(AllAreNew):
    """A pod that succeeded is run again by a kubelet that comes back and finds no records of it."""

    def forgets(self, phase: str) -> bool:
        return phase == pods.SUCCEEDED


@bug("K8S-104577", breaks="ADMIT-04", aliases=("K8S-105523", "K8S-105527"))
class DoneTakeRoom(PodActivity):
    """Pods that are over still take up room on the node, and new ones are refused."""

    def is_active(self, pod: Pod) -> bool:
        return bool(pods.uid(pod))


@bug("K8S-68738", breaks=("WORK-05", "CONFIG-04"))
class SourceMayForget(Mux):
    """A pod that its source no longer names, without a word of its removal, goes on running."""

    def set_pods(self, source: Source, wanted: Iterable[Pod]) -> None:
        named = {pods.uid(pod): pod for pod in wanted}
        missing = (known for uid, known in self._known.get(source, {}).items() if uid not in named)
        super().set_pods(source, [*named.values(), *missing])
