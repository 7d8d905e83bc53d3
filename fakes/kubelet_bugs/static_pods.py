"""Bugs in what a kubelet makes of a manifest, and of the pod that shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from lightkube.models.core_v1 import Node, Pod, PodStatus
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import names, pods
from kubelet_reference.config import FileSource
from kubelet_reference.config.problems import ManifestError
from kubelet_reference.config.static_pods import Source, static_pod
from kubelet_reference.housekeeping import Housekeeping
from kubelet_reference.mirror_client import MirrorClient, mirror_pod
from kubelet_reference.parts import Parts
from kubelet_reference.phase import pod_phase
from kubelet_reference.pod_handlers import PodHandlers
from kubelet_reference.pod_status import StatusDecisions
from kubelet_reference.status_manager import Kept, StatusManager
from kubelet_reference.updates import SyncFailed, UpdateKind
from kubelet_reference.versions import Behaviour
from kubelet_reference.worker_states import Action, Event, Row, State, WorkerTable, worker_table


def _changed(pod: Pod, **metadata: object) -> Pod:
    """The pod with other metadata."""
    return replace(pod, metadata=replace(pods.metadata(pod), **metadata))


class _NoSuffix(FileSource):
    """Leaves the node's name out of a static pod's."""

    def make(self, manifest: Pod, path: str) -> Pod:
        return _changed(super().make(manifest, path), name=pods.name(manifest))


class _NamedAfterTheName(FileSource):
    """Makes a UID of a manifest's name alone."""

    def make(self, manifest: Pod, path: str) -> Pod:
        nameless = Pod(metadata=replace(pods.metadata(manifest), annotations=None, labels=None))
        uid = pods.uid(static_pod(nameless, Source.FILE, path, self._node_name))
        return super().make(_changed(manifest, uid=pods.uid(manifest) or uid), path)


class _NoHash(FileSource):
    """Leaves the manifest's hash out."""

    def make(self, manifest: Pod, path: str) -> Pod:
        made = super().make(manifest, path)
        kept = {name: value for name, value in pods.annotations(made).items() if name != names.CONFIG_HASH}
        return _changed(made, annotations=kept)


class _NoTolerations(FileSource):
    """Adds no toleration."""

    def make(self, manifest: Pod, path: str) -> Pod:
        made = super().make(manifest, path)
        return replace(made, spec=replace(pods.spec(made), tolerations=pods.spec(manifest).tolerations))


class _NobodysMirror(MirrorClient):
    """Makes a mirror that the node does not own."""

    async def create(self, static: Pod) -> bool:
        if self._api is not None:
            await self._api.create_pod(_changed(mirror_pod(static, Node()), ownerReferences=[]))
        return True


class _MirrorFirst(MirrorClient):
    """Does not run a static pod before it can be shown."""

    async def create(self, static: Pod) -> bool:
        if not await super().create(static):
            raise SyncFailed("the mirror pod could not be created")
        return True


class _OwnUid(StatusManager):
    """Writes the status of a static pod under the pod's own UID."""

    def _patch(self, uid: str, stored: Pod, kept: Kept) -> dict[str, object] | None:
        return super()._patch(uid, _changed(stored, uid=pods.uid(kept.pod)), kept)


class _MirrorsOfTheLivingOnly(Housekeeping):
    """Deletes the mirrors of static pods that have ended."""

    async def delete_orphan_mirrors(self) -> None:
        await super().delete_orphan_mirrors()
        for mirror in self._tools.manager.mirrors():
            static = self._tools.manager.static_of(mirror)
            if static is not None and not self._tools.activity.is_active(static):
                await self._tools.mirrors.delete(mirror)


class _MirrorsAreRun(PodHandlers):
    """Takes a mirror pod that somebody changes for any other."""

    def update(self, changed: Iterable[Pod]) -> None:
        super().update(_unmasked(pod) if pods.is_mirror(pod) else pod for pod in changed)


def _unmasked(mirror: Pod) -> Pod:
    kept = {name: value for name, value in pods.annotations(mirror).items() if name != names.CONFIG_MIRROR}
    return _changed(mirror, annotations={**kept, names.CONFIG_SOURCE: Source.API})


class _MirrorsBringContainers(PodHandlers):
    """Runs the ephemeral containers that somebody adds to a mirror pod."""

    def _tell_static(self, mirror: Pod, kind: UpdateKind = UpdateKind.UPDATE) -> None:
        pod, added = self._tools.manager.static_of(mirror), pods.ephemeral_containers(mirror)
        if pod is None or not added:
            super()._tell_static(mirror, kind)
        else:
            spec = msgspec.structs.replace(pods.spec(pod), ephemeralContainers=list(added))
            self._tell(replace(pod, spec=spec), kind)


class _ClaimsAreNothing(FileSource):
    """Runs a pod that asks for resources it cannot get, without them."""

    def _pod(self, path: str) -> Pod:
        try:
            return super()._pod(path)
        except ManifestError as error:
            if error.subject is None or any("resourceClaims" not in each.field for each in error.problems):
                raise
            raw = msgspec.yaml.decode(self._disk.read(path))
            return self.make(msgspec.convert({**raw, "spec": _without_claims(raw["spec"])}, Pod), path)


def _without_claims(spec: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in spec.items() if name != "resourceClaims"}


def _running_from_the_first(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """Takes a static pod for a running one as soon as it is known."""
    phase = pod_phase(pod, status, behaviour, terminating=terminating)
    return pods.RUNNING if phase == pods.PENDING and pods.is_static(pod) else phase


def _ended_like_any_other(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """Gives a static pod that is stopped a last phase, as if it came from the API server."""
    kept = {name: value for name, value in pods.annotations(pod).items() if name != names.CONFIG_SOURCE}
    return pod_phase(_changed(pod, annotations=kept), status, behaviour, terminating=terminating)


def _no_version_is_skipped(behaviour: Behaviour) -> WorkerTable:
    """Lets every version of a static pod wait for its turn, those too that are gone by then."""
    table = worker_table(behaviour)
    for event in (Event.TERMINATE, Event.UNWANTED):
        table = table.with_row(Row(State.WAITING, event, State.WAITING, (Action.QUEUE_AGAIN,)))
    return table


def _begun_again_at_once(behaviour: Behaviour) -> WorkerTable:
    """Forgets a pod that comes again while it is being stopped, so that it gets another worker."""
    return worker_table(behaviour).with_row(
        Row(State.TERMINATING, Event.CREATE, State.NONE, (Action.FORGET,))
    )


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-STATIC-05",
        "The first status of a static pod says that it runs.",
        lambda: Parts(status=StatusDecisions(pod_phase=_running_from_the_first)),
        ("STATIC-05",),
    ),
    Bug(
        "MUT-STATIC-19",
        "Each version of a static pod is run in turn, though it was edited away meanwhile.",
        lambda: Parts(worker_table=_no_version_is_skipped),
        ("STATIC-19",),
    ),
    Bug(
        "MUT-STATIC-21",
        "A static pod whose manifest is removed is told to have ended.",
        lambda: Parts(status=StatusDecisions(pod_phase=_ended_like_any_other)),
        ("STATIC-21",),
    ),
    Bug(
        "MUT-CONFIG-18",
        "A pod that comes back while it is being stopped is started again in its old sandbox.",
        lambda: Parts(worker_table=_begun_again_at_once),
        ("CONFIG-18",),
    ),
    Bug(
        "MUT-STATIC-01",
        "A static pod has the name of its manifest, without the node's.",
        lambda: Parts(file_source=_NoSuffix),
        ("STATIC-01",),
    ),
    Bug(
        "MUT-STATIC-02",
        "The UID of a static pod stays the same when its manifest is edited.",
        lambda: Parts(file_source=_NamedAfterTheName),
        ("STATIC-02",),
    ),
    Bug(
        "MUT-STATIC-03",
        "A static pod's sandbox does not carry the hash of its manifest.",
        lambda: Parts(file_source=_NoHash),
        ("STATIC-03",),
    ),
    Bug(
        "MUT-STATIC-04",
        "A static pod from a file does not tolerate taints.",
        lambda: Parts(file_source=_NoTolerations),
        ("STATIC-04",),
    ),
    Bug(
        "MUT-STATIC-11",
        "A mirror pod is made for any node, and owned by none.",
        lambda: Parts(mirror_client=_NobodysMirror),
        ("STATIC-11", "STATIC-12"),
    ),
    Bug(
        "MUT-STATIC-10",
        "A static pod waits until its mirror could be created.",
        lambda: Parts(mirror_client=_MirrorFirst),
        ("STATIC-10", "LOOP-01"),
    ),
    Bug(
        "MUT-STATIC-16",
        "The status of a static pod is written to a UID that the API server does not know.",
        lambda: Parts(status_manager=_OwnUid),
        ("STATIC-16",),
    ),
    Bug(
        "MUT-STATIC-17",
        "The mirror of a static pod goes when the pod has finished.",
        lambda: Parts(housekeeping=_MirrorsOfTheLivingOnly),
        ("STATIC-17",),
    ),
    Bug(
        "MUT-CONFIG-15",
        "A mirror pod that somebody changes is run as a pod of its own.",
        lambda: Parts(pod_handlers=_MirrorsAreRun),
        ("CONFIG-15",),
    ),
    Bug(
        "MUT-STATIC-22",
        "A static pod that claims resources is run without them.",
        lambda: Parts(file_source=_ClaimsAreNothing),
        ("STATIC-22",),
    ),
    Bug(
        "MUT-STATIC-25",
        "An ephemeral container that is added to a mirror pod is run.",
        lambda: Parts(pod_handlers=_MirrorsBringContainers),
        ("STATIC-25",),
    ),
)
