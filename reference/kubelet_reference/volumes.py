"""Volumes, as far as a pod waits for them: the API objects they show must exist (SYNC-10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubelet_reference import pods
from kubelet_reference.ports import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lightkube.models.core_v1 import KeyToPath, Pod, Volume

    from kubelet_reference.ports import ApiServer

__all__ = ("Volumes", "VolumesNotReady")

_NOT_FOUND = 404


class VolumesNotReady(Exception):  # noqa: N818 - it is no fault of ours, the pod waits
    """A volume of the pod cannot be mounted yet; the text says which and why."""


@dataclass(frozen=True, slots=True)
class _Needed:
    """A config map or secret that a volume shows."""

    volume: str
    kind: str
    name: str
    keys: tuple[str, ...]


class Volumes:
    """Which pods have their volumes; without an API server (`api` is None) no API object is ever there."""

    def __init__(self, api: ApiServer | None) -> None:
        self._api = api
        self._mounted: dict[str, None] = {}

    async def wait(self, pod: Pod) -> None:
        """Mount what the pod needs; raises `VolumesNotReady` if something is missing that is not optional."""
        if pods.uid(pod) in self._mounted:
            return
        for needed in needed_objects(pod):
            await self._check(pods.namespace(pod), needed)
        self._mounted[pods.uid(pod)] = None

    async def unmount(self, pod: Pod) -> None:
        """The pod needs its volumes no more; one without volumes is fine."""
        self._mounted.pop(pods.uid(pod), None)

    def is_mounted(self, uid: str) -> bool:
        """Whether the pod has its volumes."""
        return uid in self._mounted

    async def _check(self, namespace: str, needed: _Needed) -> None:
        try:
            there = await self._keys(namespace, needed)
        except ApiError as error:
            reason = f'{needed.kind} "{needed.name}" not found' if error.code == _NOT_FOUND else str(error)
            raise _not_ready(needed, reason) from error
        for key in needed.keys:
            if key not in there:
                raise _not_ready(needed, f"references non-existent {needed.kind} key: {key}")

    async def _keys(self, namespace: str, needed: _Needed) -> frozenset[str]:
        """The keys of the object; raises `ApiError`."""
        if self._api is None:
            raise ApiError(0, "", "there is no API server")
        if needed.kind == "configmap":
            config = await self._api.get_config_map(namespace, needed.name)
            return frozenset({**(config.data or {}), **(config.binaryData or {})})  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
        secret = await self._api.get_secret(namespace, needed.name)
        return frozenset(secret.data or {})  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


def needed_objects(pod: Pod) -> Iterator[_Needed]:
    """The config maps and secrets without which the pod's volumes cannot be mounted."""
    for volume in pods.spec(pod).volumes or ():
        yield from _direct(volume)
        for source in (volume.projected and volume.projected.sources) or ():
            for kind, part in (("configmap", source.configMap), ("secret", source.secret)):
                if part is not None and not part.optional:
                    yield _Needed(volume.name, kind, part.name or "", _keys(part.items))


def _direct(volume: Volume) -> Iterator[_Needed]:
    config, secret = volume.configMap, volume.secret
    if config is not None and not config.optional:
        yield _Needed(volume.name, "configmap", config.name or "", _keys(config.items))
    if secret is not None and not secret.optional:
        yield _Needed(volume.name, "secret", secret.secretName or "", _keys(secret.items))


def _keys(items: list[KeyToPath] | None) -> tuple[str, ...]:
    return tuple(item.key for item in items or ())


def _not_ready(needed: _Needed, reason: str) -> VolumesNotReady:
    return VolumesNotReady(f'MountVolume.SetUp failed for volume "{needed.volume}" : {reason}')
