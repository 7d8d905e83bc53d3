"""Bugs of mirror pods: how static pods are shown at the API server."""

from __future__ import annotations

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.housekeeping import Housekeeping
from kubelet_reference.mirror_client import MirrorClient, is_mirror_of
from kubelet_reference.parts import Parts


class _HashWillDo(MirrorClient):
    """Leaves a mirror alone that is being deleted, as long as it shows the right version."""

    async def keep(self, static: Pod, mirror: Pod | None) -> None:
        if mirror is None or not is_mirror_of(mirror, static):
            await super().keep(static, mirror)


class _DeletesByName(MirrorClient):
    """Deletes whatever has the mirror's name by now."""

    async def delete(self, mirror: Pod) -> bool:
        if self._api is not None:
            await self._api.delete_pod(pods.namespace(mirror), pods.name(mirror), grace_seconds=0, uid=None)
        return True


class _MirrorsFirst(Housekeeping):
    """Deletes the mirror of a static pod that is gone, whether or not that pod still stops."""

    async def delete_orphan_mirrors(self) -> None:
        for mirror in self._tools.manager.orphaned_mirrors():
            await self._tools.mirrors.delete(mirror)


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-22625",
        "A mirror pod that somebody deletes is neither let go nor made again.",
        lambda: Parts(mirror_client=_HashWillDo),
        ("STATIC-13",),
        ("K8S-22626",),
    ),
    Bug(
        "K8S-79147",
        "The deletion of a mirror pod may hit the one that was made after it.",
        lambda: Parts(mirror_client=_DeletesByName),
        ("STATIC-13",),
        ("K49",),
    ),
    Bug(
        "K8S-97722",
        "The mirror of a static pod goes while its containers are still stopping.",
        lambda: Parts(housekeeping=_MirrorsFirst),
        ("STATIC-15",),
        ("K8S-92442", "K8S-91453", "K8S-90999", "K8S-100268"),
    ),
)
