"""What happens to pods' files and cgroups on an in-process node, put on the record."""

import re

from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.disk import MemoryDisk

_TEXT_BYTES_MAX = 4096
"""A larger file is recorded without its contents."""
_VOLUME = re.compile(r"volumes/[^/]+/[^/]+")
_DATA_FOLDERS = frozenset({"", "volumes", "plugins"})
"""What each pod has below its folder, and its folder itself."""
_ROOT = "/sys/fs/cgroup/kubepods/pod"


class RecordedFiles:
    """Observes every change on the disk, and records the few that judges can use.

    These are a pod's data folders, volumes that go, its hosts file, its containers' message files, and logs
    with their folders.
    """

    def __init__(self, disk: MemoryDisk, recorder: Recorder, root_dir: str, logs: str) -> None:
        self._disk = disk
        self._recorder = recorder
        self._pods = f"{root_dir}/pods/"
        self._logs = f"{logs}/"
        disk.on_change = self._heard

    def _heard(self, op: str, path: str) -> None:
        if path.startswith(self._pods):
            self._heard_of_pod(op, path)
        elif path.startswith(self._logs):
            self._heard_of_logs(op, path)

    def _heard_of_logs(self, op: str, path: str) -> None:
        if op == "write":
            self._tell_file(path)
        elif op == "remove":
            self._recorder.record("disk", op="removed", path=path)
        elif op == "make" and "/" not in path.removeprefix(self._logs):
            self._recorder.record("disk", op="folder", path=path)

    def _heard_of_pod(self, op: str, path: str) -> None:
        _, _, below = path.removeprefix(self._pods).partition("/")
        if op == "make" and below in _DATA_FOLDERS:
            self._recorder.record("disk", op="folder", path=path)
        elif op == "remove" and (not below or _VOLUME.fullmatch(below)):
            self._recorder.record("disk", op="removed", path=path)
        elif op == "write" and (below == "etc-hosts" or below.startswith("containers/")):
            self._tell_file(path)

    def _tell_file(self, path: str) -> None:
        size = self._disk.size(path) or 0
        text = self._disk.read(path).decode(errors="replace") if size <= _TEXT_BYTES_MAX else None
        self._recorder.record("disk", op="written", path=path, text=text)


class RecordedCgroups:
    """Names only: what runs in them is the runtime's matter. Each change is a `disk` record."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._uids: dict[str, None] = {}

    def uids(self) -> list[str]:
        """The pods that have one."""
        return list(self._uids)

    def exists(self, uid: str) -> bool:
        """Whether the pod has one."""
        return uid in self._uids

    def make(self, uid: str) -> None:
        """Make the pod's."""
        if uid not in self._uids:
            self._uids[uid] = None
            self._recorder.record("disk", op="folder", path=f"{_ROOT}{uid}")

    def remove(self, uid: str) -> None:
        """Remove the pod's."""
        if uid in self._uids:
            del self._uids[uid]
            self._recorder.record("disk", op="removed", path=f"{_ROOT}{uid}")

    def reduce(self, uid: str) -> None:
        """Leave it as little CPU as there is."""
        self._recorder.record("disk", op="reduced", path=f"{_ROOT}{uid}")
