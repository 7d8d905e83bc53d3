"""Desired pods in a folder of manifests, or in one manifest file, as a kubelet reads them."""

import stat
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from kubelet_conformance.recording.pod_sources import DesiredPod, Look, PodKey, PodsReadError, is_pod
from kubelet_conformance.trace.format.json_values import Json, is_list, is_object, object_of, text_of

FILE_BYTES_MAX = 10 * 1024 * 1024
"""A larger file is no manifest; a kubelet reads no more either (config/common.go)."""
_LISTS = frozenset({"List", "PodList"})


class _Version(NamedTuple):
    """By what a file is known to be the one that was read."""

    modified_ns: int
    size: int
    inode: int


class _Read(NamedTuple):
    version: _Version
    pods: tuple[Json, ...]
    problem: str


class ManifestFiles:
    """Reads YAML and JSON; files whose name begins with a dot, and folders in the folder, are left alone.

    A file that has just been written and cannot be read is looked at once more before its pods count as gone:
    it may be half written.

    Args:
        path: The folder, or one file. It need not be there yet.
        node: The node's name, which every static pod's full name ends with.
    """

    gives_status = False

    def __init__(self, path: Path, node: str) -> None:
        self._path = path
        self._suffix = f"-{node.lower()}"
        self._files: dict[str, _Read] = {}

    def look(self) -> Look:
        """Read what has changed."""
        try:
            files = sorted(self._path.iterdir()) if self._path.is_dir() else [self._path]
            self._path.stat()
        except OSError as error:
            raise PodsReadError(f"{self._path}: cannot be read: {error.strerror or error}") from None
        read: dict[str, _Read] = {}
        for file in files:
            if not file.name.startswith("."):
                found = self._read(file)
                if found is not None:
                    read[file.name] = found
        self._files = read
        pods = {pod.key: pod for one in read.values() for pod in map(self._desired, one.pods)}
        return Look(tuple(pods.values()), tuple(one.problem for one in read.values() if one.problem))

    def _read(self, file: Path) -> _Read | None:
        before = self._files.get(file.name)
        try:
            found = file.stat()
            if not stat.S_ISREG(found.st_mode):
                return None
            version = _Version(found.st_mtime_ns, found.st_size, found.st_ino)
            if before is not None and before.version == version and not before.problem:
                return before
            pods = _pods_of(file, found.st_size)
        except (OSError, _BadManifestError) as error:
            if isinstance(error, FileNotFoundError):
                return None
            why = error.strerror if isinstance(error, OSError) else str(error)
            was_good = before is not None and not before.problem
            kept = before.pods if before is not None and was_good else ()
            return _Read(_Version(0, 0, 0), kept, f"{file}: {why}")
        return _Read(version, pods, "")

    def _desired(self, pod: Json) -> DesiredPod:
        meta = object_of(pod, "metadata")
        name = f"{text_of(meta, 'name')}{self._suffix}"
        return DesiredPod(PodKey("file", text_of(meta, "namespace") or "default", name, ""), pod)


class _BadManifestError(Exception):
    """The file holds no pods."""


def _pods_of(file: Path, size: int) -> tuple[Json, ...]:
    if size > FILE_BYTES_MAX:
        raise _BadManifestError(f"is larger than {FILE_BYTES_MAX >> 20} MiB")
    return pods_in(file.read_bytes())


def pods_in(raw: bytes) -> tuple[Json, ...]:
    """The pods in a manifest: one, or a list of them; raises `_BadManifestError`."""
    try:
        value: Any = yaml.safe_load(raw)
        # What YAML reads as a date is a string for a kubelet.
        value = msgspec.to_builtins(value, str_keys=True)
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise _BadManifestError(f"is no manifest: {first}") from None
    if value is None:
        return ()
    items = value.get("items") if is_object(value) and value.get("kind") in _LISTS else [value]
    if not is_list(items) or not all(is_pod(one) for one in items):
        raise _BadManifestError(
            "holds no pod: it needs metadata.name and a spec with fields of the right types"
        )
    return tuple(items)
