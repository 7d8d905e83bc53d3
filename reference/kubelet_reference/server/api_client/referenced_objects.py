"""The config maps and secrets that this node's pods refer to, each kept up to date by a reflector of its own.

A reflector begins when the first pod that refers to its object comes, and ends with the last of them.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn, TypeAlias

from kubelet_reference.server.api_client.client import ApiClient
from kubelet_reference.server.api_client.json_fields import Json, part, parts, text
from kubelet_reference.server.api_client.reflector import Informer
from kubelet_reference.util.ports import NOT_FOUND, ApiError

CONFIG_MAPS, SECRETS = "configmaps", "secrets"
_SYNC_SECONDS = 1.0
"""So long a reader waits for the first list of an object."""

Reference: TypeAlias = tuple[str, str, str]
"""The resource, namespace and name of an object."""


def references(pod: Json) -> Iterator[Reference]:
    """The config maps and secrets that a pod names, optional ones included."""
    namespace, spec = text(pod, "metadata", "namespace"), part(pod, "spec")
    for resource, name in [*_of_containers(spec), *_of_volumes(spec), *_of_pulls(spec)]:
        if name:
            yield resource, namespace, name


def _of_containers(spec: Json) -> Iterator[tuple[str, str]]:
    kinds = ("initContainers", "containers", "ephemeralContainers")
    containers = [one for kind in kinds for one in parts(spec, kind)]
    for one in containers:
        whole = parts(one, "envFrom")
        single = [part(variable, "valueFrom") for variable in parts(one, "env")]
        for config, secret, sources in (
            ("configMapRef", "secretRef", whole),
            ("configMapKeyRef", "secretKeyRef", single),
        ):
            for source in sources:
                yield CONFIG_MAPS, text(source, config, "name")
                yield SECRETS, text(source, secret, "name")


def _of_volumes(spec: Json) -> Iterator[tuple[str, str]]:
    for volume in parts(spec, "volumes"):
        yield CONFIG_MAPS, text(volume, "configMap", "name")
        yield SECRETS, text(volume, "secret", "secretName")
        for source in parts(part(volume, "projected"), "sources"):
            yield CONFIG_MAPS, text(source, "configMap", "name")
            yield SECRETS, text(source, "secret", "name")


def _of_pulls(spec: Json) -> Iterator[tuple[str, str]]:
    for one in parts(spec, "imagePullSecrets"):
        yield SECRETS, text(one, "name")


class ReferencedObjects:
    """Copies of objects by their reference; `inform` makes an informer for the objects of a path and name."""

    def __init__(self, client: ApiClient, inform: Callable[[str, str], Informer]) -> None:
        self._client = client
        self._inform = inform
        self._wanted: dict[str, frozenset[Reference]] = {}
        """What each pod refers to, by its UID."""
        self._informers: dict[Reference, Informer] = {}
        self._tasks: dict[Reference, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> NoReturn:
        """Keep the copies up to date until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            self._follow()
            await asyncio.Event().wait()
        raise AssertionError("nothing but a cancellation ends it")

    def set_pods(self, found: Iterable[Json]) -> None:
        """These are all pods."""
        self._wanted = {_uid(pod): frozenset(references(pod)) for pod in found}
        self._follow()

    def keep(self, pod: Json) -> None:
        """The pod is there, or has changed."""
        self._wanted[_uid(pod)] = frozenset(references(pod))
        self._follow()

    def drop(self, pod: Json) -> None:
        """The pod is gone."""
        self._wanted.pop(_uid(pod), None)
        self._follow()

    async def get(self, resource: str, namespace: str, name: str) -> Json:
        """The object, asked for where no pod of the API server refers to it; raises `ApiError`."""
        informer = self._informers.get((resource, namespace, name))
        if informer is None:
            return await self._client.get(f"{_path(resource, namespace)}/{name}")
        if not await informer.synced(within=_SYNC_SECONDS):
            kind = resource.removesuffix("s")
            why = f"failed to sync {kind} cache: timed out waiting for the condition"
            raise ApiError(0, "Timeout", why)
        found = informer.get(name)
        if found is None:
            raise ApiError(NOT_FOUND, "NotFound", f'{resource} "{name}" not found')
        return found

    def _follow(self) -> None:
        """Have a reflector for each object that is referred to, and for no other."""
        if self._group is None:
            return
        wanted = frozenset[Reference]().union(*self._wanted.values())
        for gone in [one for one in self._tasks if one not in wanted]:
            self._tasks.pop(gone).cancel()
            del self._informers[gone]
        for new in wanted - self._tasks.keys():
            resource, namespace, name = new
            informer = self._informers[new] = self._inform(_path(resource, namespace), name)
            self._tasks[new] = self._group.create_task(informer.run(), name=f"reflector of {name}")


def _path(resource: str, namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/{resource}"


def _uid(pod: Json) -> str:
    return text(pod, "metadata", "uid")
