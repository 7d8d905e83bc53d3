"""Bugs of mirror pods: how static pods are shown at the API server."""

from __future__ import annotations

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.housekeeping import Housekeeping
from kubelet_reference.mirror_client import MirrorClient, is_mirror_of


@bug("K8S-22625", breaks="STATIC-13", aliases="K8S-22626")
class HashWillDo(MirrorClient):
    """A mirror pod that somebody deletes is neither let go nor made again."""

    async def keep(self, static: Pod, mirror: Pod | None) -> None:
        if mirror is None or not is_mirror_of(mirror, static):
            await super().keep(static, mirror)


@bug("K8S-79147", breaks="STATIC-13", aliases="K49")
class DeletesByName(MirrorClient):
    """The deletion of a mirror pod may hit the one that was made after it."""

    async def delete(self, mirror: Pod) -> bool:
        if self._api is not None:
            await self._api.delete_pod(pods.namespace(mirror), pods.name(mirror), grace_seconds=0, uid=None)
        return True


@bug("K8S-97722", breaks="STATIC-15", aliases=("K8S-92442", "K8S-91453", "K8S-90999", "K8S-100268"))
class MirrorsFirst(Housekeeping):
    """The mirror of a static pod goes while its containers are still stopping."""

    async def delete_orphan_mirrors(self) -> None:
        for mirror in self._tools.manager.orphaned_mirrors():
            await self._tools.mirrors.delete(mirror)
