"""Bugs of static pods and of their mirrors."""

from collections.abc import Iterable
from typing import Any

import msgspec
from lightkube.models.core_v1 import Node, Pod, PodSpec, PodStatus
from lightkube.models.meta_v1 import ObjectMeta
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_bugs.pod_workers.wrong_rows import with_row
from kubelet_reference.api import names, pods
from kubelet_reference.config import FileSource
from kubelet_reference.config.defaults import with_defaults
from kubelet_reference.config.field_errors import ManifestError
from kubelet_reference.config.mirror_client import MirrorClient, is_mirror_of, mirror_pod
from kubelet_reference.config.static_pods import Source, static_pod
from kubelet_reference.kubelet.housekeeping import Housekeeping
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.pod_workers.worker import SyncFailed, UpdateKind
from kubelet_reference.pod_workers.worker_table import Action, Event, Row, State, WorkerTable, worker_table
from kubelet_reference.status.phase import pod_phase
from kubelet_reference.status.status_manager import Kept, StatusManager
from kubelet_reference.util.ports import ApiError
from kubelet_reference.util.versions import Behaviour

_NO_NODE = Node(metadata=ObjectMeta(name="", uid=""))


def _changed(pod: Pod, **metadata: object) -> Pod:
    """The pod with other metadata."""
    return structs.replace(pod, metadata=structs.replace(pods.metadata(pod), **metadata))


@bug("MUT-STATIC-01", breaks="STATIC-01")
class NoSuffix(FileSource):
    """A static pod has the name of its manifest, without the node's."""

    def make(self, manifest: Pod, path: str) -> Pod:
        return _changed(super().make(manifest, path), name=pods.name(manifest))


@bug("MUT-STATIC-02", breaks="STATIC-02")
class NamedAfterTheName(FileSource):
    """The UID of a static pod stays the same when its manifest is edited."""

    def make(self, manifest: Pod, path: str) -> Pod:
        nameless = Pod(
            metadata=structs.replace(pods.metadata(manifest), annotations=None, labels=None),
            spec=PodSpec(containers=[]),
        )
        node, minor = self.settings.node_name, self.behaviour.minor
        uid = pods.uid(static_pod(nameless, Source.FILE, path, node, minor))
        return super().make(_changed(manifest, uid=pods.uid(manifest) or uid), path)


@bug("MUT-STATIC-03", breaks="STATIC-03")
class NoHash(FileSource):
    """A static pod's sandbox does not carry the hash of its manifest."""

    def make(self, manifest: Pod, path: str) -> Pod:
        made = super().make(manifest, path)
        return _changed(made, annotations={**pods.annotations(made), names.CONFIG_HASH: ""})


@bug("MUT-STATIC-04", breaks="STATIC-04")
class NoTolerations(FileSource):
    """A static pod from a file does not tolerate taints."""

    def make(self, manifest: Pod, path: str) -> Pod:
        made = super().make(manifest, path)
        return structs.replace(
            made, spec=structs.replace(pods.spec(made), tolerations=pods.spec(manifest).tolerations)
        )


@bug("MUT-STATIC-11", breaks=("STATIC-11", "STATIC-12"))
class NobodysMirror(MirrorClient):
    """A mirror pod is made for any node, and owned by none."""

    async def create(self, static: Pod) -> None:
        if self._api is not None:
            await self._api.create_pod(_changed(mirror_pod(static, _NO_NODE), ownerReferences=[]))


@bug("MUT-STATIC-10", breaks=("STATIC-10", "LOOP-01"))
class MirrorFirst(MirrorClient):
    """A static pod waits until its mirror could be created."""

    def _not_created(self, static: Pod, error: ApiError) -> None:
        raise SyncFailed(str(error))


@bug("MUT-STATIC-16", breaks="STATIC-16")
class OwnUid(StatusManager):
    """The status of a static pod is written to a UID that the API server does not know."""

    def _patch(self, uid: str, stored: Pod, kept: Kept) -> dict[str, object] | None:
        return super()._patch(uid, _changed(stored, uid=pods.uid(kept.pod)), kept)


@bug("MUT-STATIC-17", breaks="STATIC-17")
class MirrorsOfTheLivingOnly(Housekeeping):
    """The mirror of a static pod goes when the pod has finished."""

    async def delete_orphan_mirrors(self) -> None:
        await super().delete_orphan_mirrors()
        for mirror in self.manager.mirrors():
            static = self.manager.static_of(mirror)
            if static is not None and not self.activity.is_active(static):
                await self.mirrors.delete(mirror)


@bug("MUT-CONFIG-15", breaks="CONFIG-15")
class MirrorsAreRun(PodHandlers):
    """A mirror pod that somebody changes is run as a pod of its own."""

    def update(self, changed: Iterable[Pod]) -> None:
        super().update(_unmasked(pod) if pods.is_mirror(pod) else pod for pod in changed)


def _unmasked(mirror: Pod) -> Pod:
    kept = {name: value for name, value in pods.annotations(mirror).items() if name != names.CONFIG_MIRROR}
    return _changed(mirror, annotations={**kept, names.CONFIG_SOURCE: Source.API})


@bug("MUT-STATIC-25", breaks="STATIC-25")
class MirrorsBringContainers(PodHandlers):
    """An ephemeral container that is added to a mirror pod is run."""

    def _dispatch_static(self, mirror: Pod, kind: UpdateKind = UpdateKind.UPDATE) -> None:
        pod, added = self.manager.static_of(mirror), pods.ephemeral_containers(mirror)
        if pod is None or not added:
            super()._dispatch_static(mirror, kind)
        else:
            spec = structs.replace(pods.spec(pod), ephemeralContainers=list(added))
            self._dispatch(structs.replace(pod, spec=spec), kind)


@bug("MUT-STATIC-22", breaks="STATIC-22")
class ClaimsAreNothing(FileSource):
    """A static pod that claims resources is run without them."""

    def _pod(self, path: str) -> Pod:
        try:
            return super()._pod(path)
        except ManifestError as error:
            if any("resourceClaims" not in each.field for each in error.errors):
                raise
            raw = msgspec.yaml.decode(self.disk.read(path))
            return self.make(msgspec.convert({**raw, "spec": _without_claims(raw["spec"])}, Pod), path)


@bug("MUT-STATIC-26", breaks="STATIC-26")
class PortsHaveNoLimits(FileSource):
    """A manifest may have any number as a port of the node."""

    def _pod(self, path: str) -> Pod:
        try:
            return super()._pod(path)
        except ManifestError as error:
            if not all(each.field.endswith(".hostPort") for each in error.errors):
                raise
            raw = with_defaults(msgspec.yaml.decode(self.disk.read(path)))
            return self.make(msgspec.convert(raw, Pod), path)


def _without_claims(spec: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name != "resourceClaims"}


@bug("MUT-STATIC-05", breaks="STATIC-05", part="pod_phase")
def running_from_the_first(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """The first status of a static pod says that it runs."""
    phase = pod_phase(pod, status, behaviour, terminating=terminating)
    return pods.RUNNING if phase == pods.PENDING and pods.is_static(pod) else phase


@bug("MUT-STATIC-21", breaks="STATIC-21", part="pod_phase")
def ended_like_any_other(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """A static pod whose manifest is removed is reported as ended."""
    kept = {name: value for name, value in pods.annotations(pod).items() if name != names.CONFIG_SOURCE}
    return pod_phase(_changed(pod, annotations=kept), status, behaviour, terminating=terminating)


@bug("MUT-STATIC-19", breaks="STATIC-19", part="worker_table")
def no_version_is_skipped(behaviour: Behaviour) -> WorkerTable:
    """Each version of a static pod is run in turn, though it was edited away meanwhile."""
    table = worker_table(behaviour)
    for event in (Event.TERMINATE, Event.UNWANTED):
        table = with_row(table, Row(State.WAITING, event, State.WAITING, (Action.QUEUE_AGAIN,)))
    return table


@bug("MUT-CONFIG-18", breaks="CONFIG-18", part="worker_table")
def begun_again_at_once(behaviour: Behaviour) -> WorkerTable:
    """A pod that comes back while it is being stopped is started again in its old sandbox."""
    forgotten = (Action.RELEASE_NAME, Action.FORGET)
    return with_row(worker_table(behaviour), Row(State.TERMINATING, Event.CREATE, State.NONE, forgotten))


@bug("K8S-22625", breaks="STATIC-13", aliases="K8S-22626")
class HashWillDo(MirrorClient):
    """A mirror pod that somebody deletes is neither let go nor made again."""

    async def keep(self, static: Pod, mirror: Pod | None) -> None:
        if mirror is None or not is_mirror_of(mirror, static):
            await super().keep(static, mirror)


@bug("K8S-79147", breaks="STATIC-13", aliases="K49")
class DeletesByName(MirrorClient):
    """The deletion of a mirror pod may hit the one that was made after it."""

    async def delete(self, mirror: Pod) -> None:
        if self._api is not None:
            await self._api.delete_pod(pods.namespace(mirror), pods.name(mirror), grace_seconds=0, uid=None)


@bug("K8S-97722", breaks="STATIC-15", aliases=("K8S-92442", "K8S-91453", "K8S-90999", "K8S-100268"))
class MirrorsFirst(Housekeeping):
    """The mirror of a static pod goes while its containers are still stopping."""

    async def delete_orphan_mirrors(self) -> None:
        for mirror in self.manager.orphaned_mirrors():
            await self.mirrors.delete(mirror)
