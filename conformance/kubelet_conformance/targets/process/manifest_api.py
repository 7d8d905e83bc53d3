"""Pods by manifest files: what of an API server a kubelet with a manifest folder can stand in for."""

import json
import os
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import count
from typing import Any, Protocol, cast

from kubelet_conformance.targets.controls import ApiControl, Manifests, NotPossibleError, no_api_server

Json = dict[str, Any]
_OK = 200
SOURCE = "kubernetes.io/config.source"
"""The annotation by which a kubelet says where a pod came from."""
_CLAIMS = "resourceClaims"
_OF_PODS = ("serviceAccountName", "imagePullSecrets", _CLAIMS)
_OF_VARIABLES = ("configMapKeyRef", "secretKeyRef")
_OF_ENVIRONMENTS = ("configMapRef", "secretRef")
_OF_VOLUMES = ("configMap", "secret", "csi", "glusterfs", "persistentVolumeClaim", "ephemeral", "azureFile")
_OF_PROJECTIONS = ("configMap", "secret", "serviceAccountToken", "clusterTrustBundle", "podCertificate")
"""The fields that refer to an object of the API server, which a static pod cannot."""


class Files(Protocol):
    """Files with manifests of pods."""

    def write(self, file: str, text: str) -> None:
        """Write a file."""
        ...

    def remove(self, file: str) -> None:
        """Remove a file."""
        ...


class FilesAtUrl:
    """Files that the kubelet gets as one list of pods, from the URL that it reads."""

    def __init__(self, manifests: Manifests) -> None:
        self._manifests = manifests
        self._pods: dict[str, Json] = {}
        self._serve()

    def write(self, file: str, text: str) -> None:
        """Serve its pod too from now on."""
        self._pods[file] = json.loads(text)
        self._serve()

    def remove(self, file: str) -> None:
        """Serve its pod no more."""
        del self._pods[file]
        self._serve()

    def _serve(self) -> None:
        pods = {"apiVersion": "v1", "kind": "PodList", "items": list(self._pods.values())}
        self._manifests.serve(_OK, json.dumps(pods) if self._pods else "")


class FolderApi(ApiControl):
    """Pods by files of the manifest folder: creating writes one, deleting removes it.

    A pod is given a UID, so that it stays itself when its file changes; it is shown as its kubelet shows it,
    named after the node. `shown` gives the latest state of a pod by namespace and name. `may_refer` says that
    the kubelet takes static pods that refer to objects of the API server; claims it never takes.
    """

    def __init__(
        self,
        files: Files,
        node: str,
        shown: Callable[[str, str], Json | None],
        *,
        may_refer: bool,
        source: str = "file",
    ) -> None:
        self._may_refer = may_refer
        self._files = files
        self._source = source
        self._suffix = f"-{node.lower()}"
        self._shown = shown
        self._wanted: dict[tuple[str, str], Json] = {}
        self._deleted: dict[tuple[str, str], None] = {}
        self._new_uid = unique_uids()

    def create(self, manifest: Json) -> Json:
        """Write the pod's manifest; what the kubelet is to make of it comes back."""
        _check_references(manifest, may_refer=self._may_refer)
        given: Json = manifest["metadata"]
        uid = given.get("uid") or self._new_uid()
        metadata: Json = {**given, "namespace": given.get("namespace", "default"), "uid": uid}
        pod: Json = {"apiVersion": "v1", "kind": "Pod", **manifest, "metadata": metadata}
        key = metadata["namespace"], metadata["name"] + self._suffix
        if key in self._wanted:
            raise no_api_server(f"pod {metadata['name']} is there already")
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
        _check_grace(self._wanted[key], grace_seconds)
        del self._wanted[key]
        self._deleted[key] = None
        self._files.remove(_file(key))

    def get(self, namespace: str, name: str) -> Json | None:
        """The pod as the kubelet last showed it, or its manifest; None for one that never was.

        A kubelet shows its desired pods: the end of a deleted one is not to be seen.
        """
        key = namespace, name
        _check_not_deleted(key, self._deleted)
        found = self._shown(namespace, name)
        if found is not None:
            return found
        return self._stored(self._wanted[key]) if key in self._wanted else None

    def pods(self) -> list[Json]:
        """The metadata of the desired pods."""
        return [self._stored(pod)["metadata"] for pod in self._wanted.values()]

    def _key(self, namespace: str, name: str) -> tuple[str, str]:
        """The key of a desired pod, by the name that it was given or by the one that the kubelet shows."""
        for key in ((namespace, name), (namespace, name + self._suffix)):
            if key in self._wanted:
                return key
        raise no_api_server(f"pod {namespace}/{name} was not created here")

    def _write(self, key: tuple[str, str], pod: Json) -> None:
        try:
            self._files.write(_file(key), json.dumps(pod))
        except FileNotFoundError:
            raise no_api_server("there is no manifest folder") from None
        self._wanted[key] = pod
        self._deleted.pop(key, None)

    def _stored(self, pod: Json) -> Json:
        metadata: Json = pod["metadata"]
        annotations = {**metadata.get("annotations", {}), SOURCE: self._source}
        name = metadata["name"] + self._suffix
        return {**pod, "metadata": {**metadata, "name": name, "annotations": annotations}}


class FolderRehearsal:
    """Another API server, which does everything and notes the first thing that `FolderApi` refuses.

    Attributes:
        refused: what that needs, to follow "needs"; "" if there is nothing so far.
    """

    def __init__(self, api: ApiControl) -> None:
        self._api = api
        self._deleted: set[tuple[str, str]] = set()
        self.refused = ""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the server has
        done = getattr(self._api, name)
        check = getattr(self, f"_check_{name}", None)
        if name not in vars(FolderApi):
            # What is not overridden refuses.
            check = partial(getattr(ApiControl, name), self)

        def noted(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - those of the method
            try:
                if check is not None:
                    check(*given, **named)
            except NotPossibleError as error:
                self.refused = self.refused or str(error)
            return done(*given, **named)

        return noted

    def _check_create(self, manifest: Json) -> None:
        metadata: Json = manifest["metadata"]
        self._deleted.discard((metadata.get("namespace", "default"), metadata["name"]))
        # Whether other references are taken depends on the kubelet's feature gates.
        _check_references(manifest, may_refer=True)

    def _check_delete(self, namespace: str, name: str, grace_seconds: int | None = None) -> None:
        self._deleted.add((namespace, name))
        _check_grace(self._api.get(namespace, name) or {"spec": {}}, grace_seconds)

    def _check_get(self, namespace: str, name: str) -> None:
        _check_not_deleted((namespace, name), self._deleted)


def unique_uids() -> Callable[[], str]:
    """UIDs that no other life of a node had."""
    life, numbers = os.urandom(4).hex(), count(1)
    return lambda: f"{life}-0000-4000-8000-{next(numbers):012x}"


def _check_references(manifest: Json, *, may_refer: bool) -> None:
    named = references_of(manifest["spec"])
    if named and not (may_refer and _CLAIMS not in named):
        raise no_api_server(f"a pod that refers to its objects ({', '.join(named)})")


def _check_grace(pod: Json, grace_seconds: int | None) -> None:
    if grace_seconds not in {None, pod["spec"].get("terminationGracePeriodSeconds", 30)}:
        raise no_api_server("a file cannot be removed with a grace period")


def _check_not_deleted(key: tuple[str, str], deleted: Collection[tuple[str, str]]) -> None:
    if key in deleted:
        raise no_api_server("the status of a deleted pod")


def references_of(spec: Json) -> list[str]:
    """The fields of a pod's spec that refer to objects of the API server."""
    containers = _parts([spec], "initContainers") + _parts([spec], "containers")
    volumes = _parts([spec], "volumes")
    places: tuple[tuple[tuple[str, ...], list[Json]], ...] = (
        (_OF_PODS, [spec]),
        (_OF_VARIABLES, _parts(_parts(containers, "env"), "valueFrom")),
        (_OF_ENVIRONMENTS, _parts(containers, "envFrom")),
        (_OF_VOLUMES, volumes),
        (_OF_PROJECTIONS, _parts(_parts(volumes, "projected"), "sources")),
    )
    return sorted({name for names, found in places for name in names for one in found if one.get(name)})


def _parts(objects: list[Json], field: str) -> list[Json]:
    """What this field of all the objects holds: an object, or a list of them."""
    found = list[Json]()
    for one in objects:
        value: Json | list[Json] = one.get(field) or []
        found += value if isinstance(value, list) else [value]
    return found


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
