"""The API server and the manifests as one scenario of several on a node has them: in its own namespaces."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import yaml

from kubelet_conformance.targets.controls import OF_THE_CLUSTER, ApiControl, Manifests, ObjectKind
from kubelet_conformance.targets.live.namespaces import Scope
from kubelet_conformance.targets.live.scoped_recorder import Router, View

Json = dict[str, Any]


class ScopedApi:
    """The API server; whatever namespace is named, the one that stands for it is meant.

    What is recorded while it is asked is the scenario's.
    """

    def __init__(self, api: ApiControl, scope: Scope, router: Router, view: View) -> None:
        self._api = api
        self._recording = partial(router.recorded_by, view)
        self._scope = scope
        self._namespace = scope.namespace

    def create(self, manifest: Json) -> Json:
        """Create a pod bound to the node."""
        with self._recording():
            return self._api.create(self._placed(manifest))

    def update(self, namespace: str, name: str, changes: Mapping[str, Any]) -> Json:
        """Merge changes into a pod."""
        merged = _with_files(dict(changes), self._scope)
        with self._recording():
            return self._api.update(self._namespace(namespace), name, merged)

    def update_status(self, namespace: str, name: str, changes: Mapping[str, Any]) -> Json:
        """Merge changes into a pod's status."""
        return self._api.update_status(self._namespace(namespace), name, changes)

    def resize(self, namespace: str, name: str, sizes: Mapping[str, Json]) -> Json:
        """Change the resources of containers."""
        with self._recording():
            return self._api.resize(self._namespace(namespace), name, sizes)

    def needs_ordinary_pods(self) -> None:
        """Refuse a target all of whose pods are static."""
        self._api.needs_ordinary_pods()

    def create_unbound(self, manifest: Json) -> Json:
        """Create a pod that no node has yet."""
        return self._api.create_unbound(self._placed(manifest))

    def bind(self, namespace: str, name: str) -> None:
        """Give a pod to the node."""
        self._api.bind(self._namespace(namespace), name)

    def add_ephemeral(self, namespace: str, name: str, container: Json) -> Json:
        """Add an ephemeral container."""
        return self._api.add_ephemeral(self._namespace(namespace), name, _with_files(container, self._scope))

    def delete(self, namespace: str, name: str, grace_seconds: int | None = None) -> None:
        """Ask for deletion."""
        with self._recording():
            self._api.delete(self._namespace(namespace), name, grace_seconds)

    def get(self, namespace: str, name: str) -> Json | None:
        """The stored pod."""
        return self._api.get(self._namespace(namespace), name)

    def put(self, kind: ObjectKind, manifest: Json) -> None:
        """Create or replace an object."""
        self._api.put(kind, manifest if kind in OF_THE_CLUSTER else self._placed(manifest))

    def remove(self, kind: ObjectKind, namespace: str, name: str) -> Json:
        """Remove an object."""
        of_cluster = kind in OF_THE_CLUSTER
        return self._api.remove(kind, namespace if of_cluster else self._namespace(namespace), name)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what is done to the server is done to all of it
        return getattr(self._api, name)

    def _placed(self, manifest: Json) -> Json:
        placed: Json = _placed(manifest, self._scope)
        return placed


class ScopedManifests:
    """The manifest folder and URL; a scenario's files have names of their own, and its pods its namespace.

    A text that holds no pods is written as it is. Files are `renamed` where several scenarios share a folder.
    """

    def __init__(
        self, manifests: Manifests, scope: Scope, router: Router, view: View, *, renamed: bool
    ) -> None:
        self._manifests = manifests
        self._scope = scope
        self._router = router
        self._view = view
        self._renamed = renamed

    def make_folder(self) -> None:
        """Make the folder, where it is missing."""
        self._manifests.make_folder()

    def write(self, file: str, text: str) -> None:
        """Write a file into the folder."""
        with self._router.recorded_by(self._view):
            self._manifests.write(self._file(file), self._text(text))

    def remove(self, file: str) -> None:
        """Remove a file from the folder."""
        with self._router.recorded_by(self._view):
            self._manifests.remove(self._file(file))

    def serve(self, status: int, body: str) -> None:
        """What the URL answers from now on."""
        self._manifests.serve(status, self._text(body))

    def _file(self, file: str) -> str:
        """A hidden file stays hidden."""
        if not self._renamed:
            return file
        hidden = "." if file.startswith(".") else ""
        return f"{hidden}{self._scope.id}-{file.removeprefix('.')}"

    def _text(self, text: str) -> str:
        try:
            found: object = yaml.safe_load(text)
        except yaml.YAMLError:
            return text
        if not isinstance(found, dict):
            return text
        value = cast("Json", found)
        if isinstance(value.get("items"), list):
            return json.dumps({**value, "items": [_placed(each, self._scope) for each in value["items"]]})
        placed = _placed(value, self._scope)
        return text if placed is value else json.dumps(placed)


def _placed(manifest: Any, scope: Scope) -> Any:  # noqa: ANN401 - what a file holds
    """The manifest in the namespace that stands for its own, its scripts' files likewise; else as it is."""
    found = cast("Json", manifest) if isinstance(manifest, dict) else Json()
    if not isinstance(found.get("metadata"), dict):
        return cast("Any", manifest)
    metadata: Json = found["metadata"]
    given = metadata.get("namespace", "default")
    here = scope.namespace(given) if isinstance(given, str) else given
    return _with_files({**found, "metadata": {**metadata, "namespace": here}}, scope)


def _with_files(value: Any, scope: Scope) -> Any:  # noqa: ANN401 - a JSON value
    """The value with the scenario's own file in each command `xf FILE`."""
    match value:
        case dict():
            return {name: _with_files(each, scope) for name, each in cast("Json", value).items()}
        case ["xf", str(file)]:
            return ["xf", scope.file(file)]
        case list():
            return [_with_files(each, scope) for each in cast("Sequence[Any]", value)]
        case _:
            return value
