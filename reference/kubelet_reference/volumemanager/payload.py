"""The files of a volume that shows config maps, secrets or the pod itself: pure, from objects to files."""

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lightkube.models.core_v1 import DownwardAPIVolumeFile, KeyToPath, Pod

from kubelet_reference.api import pods
from kubelet_reference.api.expansion import SUBSCRIPT, ConfigError, resource_text
from kubelet_reference.api.go_text import quoted
from kubelet_reference.util.settings import Settings
from kubelet_reference.volumemanager.paths import SetUpError

_PATH_MAX, _NAME_MAX = 4096, 255


@dataclass(frozen=True, slots=True)
class ProjectedFile:
    """A file of a volume: what is in it, and its permissions."""

    content: bytes
    mode: int


Payload: TypeAlias = dict[str, ProjectedFile]
"""The files of a volume by their paths in it."""


def files_of_keys(
    data: Mapping[str, bytes],
    items: Iterable[KeyToPath] | None,
    mode: int,
    missing: str | None,
) -> Payload:
    """Each key as a file, or the keys of `items` where these say; a key that is not there is `SetUpError`.

    `missing` is what to say of it, without the key; None forgives it.
    """
    if not items:
        return {key: ProjectedFile(content, mode) for key, content in data.items()}
    files: Payload = {}
    for item in items:
        if item.key in data:
            files[item.path] = ProjectedFile(data[item.key], mode if item.mode is None else item.mode)
        elif missing is not None:
            raise SetUpError(f"{missing}: {item.key}")
    return files


def downward_files(
    pod: Pod, items: Iterable[DownwardAPIVolumeFile] | None, mode: int, settings: Settings
) -> Payload:
    """Each item as a file that describes the pod; raises `SetUpError` for what cannot be described.

    One that asks for nothing is an empty file.
    """
    files: Payload = {}
    for item in items or ():
        text = ""
        if item.fieldRef is not None:
            text = _field(pod, item.fieldRef.fieldPath)
        elif item.resourceFieldRef is not None:
            try:
                text = resource_text(pod, None, item.resourceFieldRef, settings)
            except ConfigError as error:
                raise SetUpError(str(error)) from error
        files[item.path] = ProjectedFile(text.encode(), mode if item.mode is None else item.mode)
    return files


def checked_path(path: str) -> str:
    """A file's path in its volume, in its plain form; `SetUpError` for one that could lead out of it."""
    if path.startswith("/"):
        raise SetUpError(f"invalid path: must be relative path: {path}")
    if len(path) > _PATH_MAX:
        raise SetUpError(f"invalid path: must be less than or equal to {_PATH_MAX} characters")
    parts = path.split("/")
    if ".." in parts:
        raise SetUpError(f"invalid path: must not contain '..': {path}")
    if any(len(part.encode()) > _NAME_MAX or "\0" in part for part in parts):
        raise SetUpError(f"invalid path: filenames must be less than or equal to {_NAME_MAX} characters")
    plain = posixpath.normpath(path)
    if plain.startswith("..") or plain == ".":
        raise SetUpError(f"invalid path: must not start with '..': {path}")
    return plain


def _field(pod: Pod, path: str) -> str:
    """A field of the pod as a file shows it: labels and annotations a line each, sorted, quoted."""
    subscript = SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        every = pods.labels(pod) if subscript[1] == "labels" else pods.annotations(pod)
        return every.get(subscript[2], "")
    match path:
        case "metadata.labels":
            return _lines(pods.labels(pod))
        case "metadata.annotations":
            return _lines(pods.annotations(pod))
        case "metadata.name":
            return pods.name(pod)
        case "metadata.namespace":
            return pods.namespace(pod)
        case "metadata.uid":
            return pods.uid(pod)
        case _:
            raise SetUpError(f"unsupported fieldPath: {path}")


def _lines(every: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={quoted(value)}" for key, value in sorted(every.items()))
