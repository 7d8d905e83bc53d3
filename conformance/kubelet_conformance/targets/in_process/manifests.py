"""The manifest folder and URL of a node, everything that is written to them on the record."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import yaml

from kubelet_conformance.targets.controls import MANIFEST_FOLDER as FOLDER
from kubelet_conformance.targets.controls import MANIFEST_URL as URL
from kubelet_conformance.trace.format.manifests import Manifest
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.server.host.disk import OsDisk

Json = dict[str, Any]


class WrittenManifests:
    """Writes manifests where the kubelet reads them.

    A file or body that holds pods is recorded as desired pods, and as pods removed when it goes or no longer
    holds them; anything else is recorded as what it is, a change on disk or at the URL. `path` is what the
    kubelet reads: the folder, or one file, whose pod stays desired when it cannot be read (STATIC-07).
    """

    def __init__(self, disk: MemoryDisk, url: MemoryUrl, recorder: Recorder, path: str = FOLDER) -> None:
        self._disk = disk
        self._url = url
        self._recorder = recorder
        self._path = path
        self._folder = FOLDER if path.startswith(f"{FOLDER}/") else path
        self._wanted: dict[str, dict[str, Json]] = {}
        self._files: dict[str, None] = {}
        disk.make_folder(FOLDER)

    def look(self) -> None:
        """Put on the record whether the folder that the kubelet is to read is missing (STATIC-08)."""
        if not self._disk.is_folder(self._folder):
            self._recorder.record("disk", op="missing", path=self._folder)

    def make_folder(self) -> None:
        """Make the folder that the kubelet reads, where it is missing."""
        if not self._disk.is_folder(self._folder):
            self._disk.make_folder(self._folder)
            self._recorder.record("disk", op="made", path=self._folder)

    def write(self, file: str, text: str) -> None:
        """Write a file into the folder."""
        path = f"{self._folder}/{file}"
        self._files[file] = None
        self._disk.write(path, text.encode())
        self._recorder.record("disk", op="written", path=path)
        pods = [] if file.startswith(".") else _pods(text)
        if pods or self._path != path:
            self._tell(f"file {file}", "file", pods)

    def remove(self, file: str) -> None:
        """Remove a file from the folder."""
        self._disk.remove(f"{self._folder}/{file}")
        self._files.pop(file, None)
        self._recorder.record("disk", op="removed", path=f"{self._folder}/{file}")
        self._tell(f"file {file}", "file", [])

    def remove_all(self, chosen: Callable[[str], bool]) -> None:
        """Remove the files that are chosen by their names."""
        for file in [each for each in self._files if chosen(each)]:
            self.remove(file)

    def serve(self, status: int, body: str) -> None:
        """What the URL answers from now on; status 0 refuses the connection."""
        self._recorder.record("http", op="serves", status=status)
        if status == 0:
            self._url.refuse(URL)
            return
        self._url.serve(URL, body.encode(), status)
        pods = _pods(body)
        # What cannot be read leaves the pods as they were (CONFIG-13); an empty body wants none.
        if status == _OK and (pods or not body):
            self._tell("url", "http", pods)

    def _tell(self, place: str, source: str, pods: list[Json]) -> None:
        before = self._wanted.get(place, {})
        now = {_name(pod): pod for pod in pods}
        for name, pod in before.items():
            if name not in now:
                metadata = pod["metadata"]
                self._recorder.record(
                    "pod",
                    op="remove",
                    source=source,
                    namespace=metadata.get("namespace", "default"),
                    name=metadata["name"],
                    uid=metadata.get("uid"),
                )
        for name, pod in now.items():
            if before.get(name) != pod:
                self._recorder.record("pod", op="set", source=source, pod=pod)
        self._wanted[place] = now


_OK = 200


def _name(pod: Json) -> str:
    metadata = pod["metadata"]
    return f"{metadata.get('namespace', 'default')}/{metadata['name']}/{metadata.get('uid', '')}"


def _pods(text: str) -> list[Json]:
    """The pods of a manifest; none where it, or one pod of its list, is not one that a kubelet could read."""
    try:
        found = _parsed(text)
    except yaml.YAMLError:
        return []
    if not isinstance(found, dict):
        return []
    value = cast("Json", found)
    items: list[Any] = value.get("items", []) if value.get("kind") in {"PodList", "List"} else [value]
    return items if all(map(_is_pod, items)) else []


def _parsed(text: str) -> Any:  # noqa: ANN401 - what a file holds
    """JSON where it is JSON: PyYAML takes a hundred times as long."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # What YAML reads as a date, or as a key of another type, is a string for a kubelet.
        return msgspec.to_builtins(yaml.safe_load(text), str_keys=True)


def _is_pod(value: Any) -> bool:  # noqa: ANN401 - what a file holds
    if not isinstance(value, dict):
        return False
    try:
        pod = msgspec.convert(value, Manifest)
    except msgspec.ValidationError:
        return False  # A field of another type: no kubelet can take it for a pod either.
    return bool(pod.metadata.name) and isinstance(cast("Json", value).get("spec"), dict)


class RootedDisk:
    """The disk below `root`, so that a write to `/etc/kubernetes` goes into a private folder.

    The file `in_place`, if it is there, is written as it stands: a kubelet that watches this one file, and
    not its folder, takes another file in its place for the removal of the first.
    """

    def __init__(self, disk: OsDisk, root: Path, in_place: str = "") -> None:
        self._disk = disk
        self._root = str(root)
        self._in_place = in_place

    def make_folder(self, path: str) -> None:
        """Make the folder and those above it."""
        self._disk.make_folder(self._root + path)

    def is_folder(self, path: str) -> bool:
        """Whether it is a folder."""
        return self._disk.is_folder(self._root + path)

    def write(self, path: str, content: bytes) -> None:
        """Replace the content of a file."""
        file = Path(self._root + path)
        if path == self._in_place and file.is_file():
            file.write_bytes(content)
        else:
            self._disk.write(str(file), content)

    def remove(self, path: str) -> None:
        """Remove a file or folder."""
        self._disk.remove(self._root + path)
