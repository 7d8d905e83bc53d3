"""The file source: static pods from a folder of manifests, or from one manifest (STATIC-06 to STATIC-09)."""

import asyncio
import logging
import posixpath
from contextlib import suppress
from dataclasses import dataclass

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import ManifestError
from kubelet_reference.config.manifest import read_pod
from kubelet_reference.config.mux import Mux
from kubelet_reference.config.static_pods import Source, static_pod
from kubelet_reference.util.ports import Clock, Disk
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

_LOG = logging.getLogger("kubelet_reference.config")
_WATCH_RETRY_SECONDS = 1.0


@dataclass(eq=False)
class FileSource:
    """Sends the mux the pods of the manifests at `settings.static_pod_path`.

    Every `settings.file_check_frequency` seconds everything is read; what changes in between is noticed at
    once, but a file that turned bad stays in force until the next full reading (STATIC-07).
    """

    disk: Disk
    clock: Clock
    mux: Mux
    settings: Settings
    behaviour: Behaviour

    def __post_init__(self) -> None:
        self._path = self.settings.static_pod_path
        self._pods: dict[str, Pod] = {}
        """The pods in force, by the path of their manifest."""
        self._read: dict[str, tuple[bytes, Pod]] = {}
        """What each manifest held when it was last good: the same content is the same pod, unread."""

    async def run(self) -> None:
        """Read and watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._list_forever())
            tasks.create_task(self._watch_forever())

    async def _list_forever(self) -> None:
        while True:
            self.relist()
            await self.clock.sleep(self.settings.file_check_frequency)

    def relist(self) -> None:
        """Read all there is, and make it the new snapshot."""
        try:
            if self.disk.is_folder(self._path):
                self._pods = self._list_folder()
            else:
                self._pods = {self._path: self._pod(self._path)}
        except FileNotFoundError:
            # Nothing there is an answer too: no pods (STATIC-08).
            self._pods = {}
        except (OSError, ManifestError) as error:
            # A single manifest that turned bad leaves its pod in force, a folder we cannot list all of them.
            _LOG.error("%s: %s", self._path, error)
            return
        self._send()

    def _list_folder(self) -> dict[str, Pod]:
        """The pods of all manifests that are good; the others are as if they were absent (STATIC-07)."""
        found: dict[str, Pod] = {}
        for name in sorted(self.disk.names(self._path)):
            path = posixpath.join(self._path, name)
            try:
                if self._is_manifest(name):
                    found[path] = self._pod(path)
            except (OSError, ManifestError) as error:
                _LOG.error("%s: %s", path, error)
        return found

    def _is_manifest(self, name: str) -> bool:
        """Whether to read what has this name in the folder: all but dotfiles and folders (STATIC-06)."""
        return not name.startswith(".") and not self.disk.is_folder(posixpath.join(self._path, name))

    def _pod(self, path: str) -> Pod:
        """The pod of one manifest; raises `OSError` or `ManifestError`."""
        content = self.disk.read(path)
        known = self._read.get(path)
        if known and known[0] == content:
            return known[1]
        pod = self.make(read_pod(content, self.behaviour), path)
        self._read[path] = (content, pod)
        return pod

    def make(self, manifest: Pod, path: str) -> Pod:
        """The pod as it runs on this node."""
        return static_pod(manifest, Source.FILE, path, self.settings.node_name, self.behaviour.minor)

    def _send(self) -> None:
        """Of several manifests with one name and namespace the last is the pod (CONFIG-09)."""
        by_name = {pods.key(self._pods[path]): self._pods[path] for path in sorted(self._pods)}
        self.mux.set_pods(Source.FILE, list(by_name.values()))

    async def _watch_forever(self) -> None:
        while True:
            # It may not be there, or not to be watched.
            with suppress(OSError):
                await self._watch()
            await self.clock.sleep(_WATCH_RETRY_SECONDS)
            self.relist()

    async def _watch(self) -> None:
        """Watch the folder; where there is none, the folder above it, until the path becomes a folder."""
        if self.disk.is_folder(self._path):
            async for name in self.disk.changes(self._path):
                self.notice(name)
            return
        async for _ in self.disk.changes(posixpath.dirname(self._path)):
            self.relist()
            if self.disk.is_folder(self._path):
                return

    def notice(self, name: str) -> None:
        """Something happened to a file of the folder: take what it is now, unless that is bad (STATIC-09)."""
        path = posixpath.join(self._path, name)
        try:
            if not self._is_manifest(name):
                return
            self._pods[path] = self._pod(path)
        except FileNotFoundError:
            self._pods.pop(path, None)
        except (OSError, ManifestError) as error:
            _LOG.error("%s: %s", path, error)
            return
        self._send()
