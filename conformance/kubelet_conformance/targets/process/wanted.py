"""Pods wanted by manifest files: what of an API server a kubelet with a manifest folder can stand in for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, NoReturn, cast

from kubelet_conformance.targets.protocols import Fault, Manifests, NotPossibleError, ObjectKind

Json = dict[str, Any]
SOURCE = "kubernetes.io/config.source"
"""The annotation by which a kubelet says where a pod came from."""


class FolderApi:
    """Pods by files of the manifest folder: creating writes one, deleting removes it.

    A pod is given a UID, so that it stays itself when its file changes; it is shown as its kubelet shows it,
    named after the node. `shown` gives the latest state of a pod by namespace and name.
    """

    def __init__(self, manifests: Manifests, node: str, shown: Callable[[str, str], Json | None]) -> None:
        self._manifests = manifests
        self._suffix = f"-{node.lower()}"
        self._shown = shown
        self._wanted: dict[tuple[str, str], Json] = {}
        self._deleted: dict[tuple[str, str], None] = {}
        self._life, self._numbers = os.urandom(4).hex(), count(1)

    def create(self, manifest: Json) -> Json:
        """Write the pod's manifest; what the kubelet is to make of it comes back."""
        given: Json = manifest["metadata"]
        uid = given.get("uid") or f"{self._life}-0000-4000-8000-{next(self._numbers):012x}"
        metadata: Json = {**given, "namespace": given.get("namespace", "default"), "uid": uid}
        pod: Json = {"apiVersion": "v1", "kind": "Pod", **manifest, "metadata": metadata}
        key = metadata["namespace"], metadata["name"] + self._suffix
        if key in self._wanted:
            raise NotPossibleError(f"an API server: pod {metadata['name']} is there already")
        self._write(key, pod)
        return self._stored(pod)

    def update(self, namespace: str, name: str, changes: Mapping[str, Any]) -> Json:
        """Merge changes into the manifest: objects by field, containers by name."""
        key = self._key(namespace, name)
        pod = _merged(self._wanted[key], dict(changes))
        self._write(key, pod)
        return self._stored(pod)

    def delete(self, namespace: str, name: str, grace_seconds: int | None = None) -> None:
        """Remove the manifest; the pod's own grace period holds."""
        key = self._key(namespace, name)
        grace = self._wanted[key]["spec"].get("terminationGracePeriodSeconds", 30)
        if grace_seconds not in {None, grace}:
            raise NotPossibleError("an API server: a file cannot be removed with a grace period")
        del self._wanted[key]
        self._deleted[key] = None
        self._manifests.remove(_file(key))

    def get(self, namespace: str, name: str) -> Json | None:
        """The pod as the kubelet last showed it, or as it is wanted; None for one that never was.

        A kubelet shows the pods that are wanted: the end of a deleted one is not to be seen.
        """
        key = namespace, name
        if key in self._deleted:
            raise NotPossibleError("an API server: the status of a deleted pod")
        found = self._shown(namespace, name)
        if found is not None:
            return found
        return self._stored(self._wanted[key]) if key in self._wanted else None

    def pods(self) -> list[Json]:
        """The metadata of the pods that are wanted."""
        return [self._stored(pod)["metadata"] for pod in self._wanted.values()]

    def _key(self, namespace: str, name: str) -> tuple[str, str]:
        """The key of a wanted pod, by the name that it was given or by the one that the kubelet shows."""
        for key in ((namespace, name), (namespace, name + self._suffix)):
            if key in self._wanted:
                return key
        raise NotPossibleError(f"an API server: pod {namespace}/{name} was not created here")

    def _write(self, key: tuple[str, str], pod: Json) -> None:
        try:
            self._manifests.write(_file(key), json.dumps(pod))
        except FileNotFoundError:
            raise NotPossibleError("an API server: there is no manifest folder") from None
        self._wanted[key] = pod
        self._deleted.pop(key, None)

    def _stored(self, pod: Json) -> Json:
        metadata: Json = pod["metadata"]
        annotations = {**metadata.get("annotations", {}), SOURCE: "file"}
        name = metadata["name"] + self._suffix
        return {**pod, "metadata": {**metadata, "name": name, "annotations": annotations}}

    # What needs an API server.

    def update_status(self, namespace: str, name: str, changes: Mapping[str, Any]) -> Json:
        """Nobody else writes statuses here."""
        del namespace, name, changes
        _refuse("other writers of statuses")

    def resize(self, namespace: str, name: str, sizes: Mapping[str, Json]) -> Json:
        """Static pods are what they are."""
        del namespace, name, sizes
        _refuse("other resources of pods that run")

    def create_unbound(self, manifest: Json) -> Json:
        """Manifests are the node's from the first."""
        del manifest
        _refuse("pods that no node has yet")

    def bind(self, namespace: str, name: str) -> None:
        """Manifests are the node's from the first."""
        del namespace, name
        _refuse("pods that no node has yet")

    def add_ephemeral(self, namespace: str, name: str, container: Json) -> Json:
        """Static pods have none."""
        del namespace, name, container
        _refuse("ephemeral containers")

    def put(self, kind: ObjectKind, manifest: Json) -> None:
        """There are only pods."""
        del manifest
        _refuse(f"objects of kind {kind}")

    def remove(self, kind: ObjectKind, namespace: str, name: str) -> Json:
        """There are only pods."""
        del namespace, name
        _refuse(f"objects of kind {kind}")

    def outage(self) -> Fault:
        """There is nothing to be cut off from."""
        _refuse("an outage of it")

    def late_watch(self, seconds: float) -> Fault:
        """There is nothing to be watched."""
        del seconds
        _refuse("a watch of it that is late")

    def forget_history(self) -> None:
        """There is nothing to be forgotten."""
        _refuse("a history that it forgets")

    def tolerate(self) -> Fault:
        """The kubelet itself decides what is valid."""
        _refuse("objects that are not valid")

    def refuse(self, verb: str, code: int, times: int | None = None) -> Fault:
        """There is nothing that answers."""
        del verb, code, times
        _refuse("requests to it that fail")


def _refuse(what: str) -> NoReturn:
    raise NotPossibleError(f"an API server: {what}")


def _file(key: tuple[str, str]) -> str:
    return f"{key[0]}.{key[1]}.json"


def _merged(old: object, new: object) -> Any:  # noqa: ANN401 - JSON of any shape
    """The old value with the new one over it; None removes a field."""
    if _is_named(old) and _is_named(new):
        by_name: dict[str, Json] = {each["name"]: each for each in cast("list[Json]", old)}
        for each in cast("list[Json]", new):
            by_name[each["name"]] = _merged(by_name.get(each["name"], {}), each)
        return list(by_name.values())
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast("Json", old), cast("Json", new)
        merged = {**before, **{name: _merged(before.get(name), value) for name, value in after.items()}}
        return {name: value for name, value in merged.items() if value is not None}
    return new


def _is_named(value: object) -> bool:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return bool(items) and all(isinstance(each, dict) and "name" in each for each in items)
