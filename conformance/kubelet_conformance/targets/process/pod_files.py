"""What becomes of pods' files where a kubelet is a process of its own, put onto the record.

Nobody says what such a kubelet does on its disk. It is looked at before each call and each status that is
about the pod, so that what was so by then is on the record before, and once a second besides.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from kubelet_conformance.trace.format.recorder import Failed, RecordedReply, Recorder, Seen
from kubelet_reference.server.host.clock import LoopClock

_TEXT_BYTES_MAX = 4096
"""A larger file is recorded without its contents."""
_POLL_SECONDS = 1.0
_DATA_FOLDERS = ("", "/volumes", "/plugins")
"""What each pod has below its folder, and its folder itself."""
_HOSTS = "/etc-hosts"


class _Sight(NamedTuple):
    """A path as it was found: folders and files are recorded, files with their text; others once gone."""

    path: str
    is_told: bool
    is_file: bool = False


class PodFiles:
    """Looks after the folders of pods below `pods`, and after those of their logs, while its context is open.

    They are paths as the kubelet has them; `root` is where they are found by this process.
    """

    def __init__(self, recorder: Recorder, pods: Path, root: Path) -> None:
        self._recorder = recorder
        self._pods = pods
        self._root = str(root).rstrip("/")
        self._known: dict[str, dict[str, tuple[int, int]]] = {}
        """What was there, by the pod's UID, each with the time of its latest change and its size."""
        self._logs: dict[str, str] = {}
        """The folder of each pod's logs."""
        self._owners: dict[str, str] = {}
        """The UID by the id of a sandbox or container."""

    async def __aenter__(self) -> None:
        """Begin."""
        self._recorder.ahead.append(self._look_ahead)
        self._recorder.listeners.append(self._learn)
        self._polling = asyncio.create_task(self._poll(), name="looking at the files of pods")

    async def __aexit__(self, *_: object) -> None:
        """End, with a last look: a call may be on its way to the record."""
        for uid in tuple(self._known):
            self._look(uid)
        self._recorder.ahead.remove(self._look_ahead)
        self._recorder.listeners.remove(self._learn)
        self._polling.cancel()
        await asyncio.gather(self._polling, return_exceptions=True)

    async def _poll(self) -> None:
        clock = LoopClock(0)
        while True:
            await clock.sleep(_POLL_SECONDS)
            for uid in tuple(self._known):
                self._look(uid)

    def _look_ahead(self, kind: str, about: Any) -> None:  # noqa: ANN401 - a request, or the fields of a record
        """Look at the files of the pod that the next record is about."""
        if kind == "status":
            uid = about["uid"]
        elif isinstance(about, dict):
            return
        elif kind == "RunPodSandbox":
            uid = about.config.metadata.uid
            self._logs[uid] = about.config.log_directory
            self._known.setdefault(uid, {})
        else:
            named = getattr(about, "container_id", ""), getattr(about, "pod_sandbox_id", "")
            uid = next((self._owners[each] for each in named if each in self._owners), "")
        if uid in self._known:
            self._look(uid)

    def _learn(self, seen: Seen) -> None:
        """Know whose the sandboxes and containers are that are made."""
        if not isinstance(seen, RecordedReply) or isinstance(seen.outcome, Failed):
            return
        request: Any = seen.call.request
        response: Any = seen.outcome
        if seen.call.rpc == "RunPodSandbox":
            self._owners[response.pod_sandbox_id] = request.config.metadata.uid
        elif seen.call.rpc == "CreateContainer":
            self._owners[response.container_id] = request.sandbox_config.metadata.uid

    def _look(self, uid: str) -> None:
        """Record what has changed among the files of a pod."""
        # Paths are texts here: this is done thousands of times, beside kubelets that need the processor.
        known, found = self._known[uid], set[str]()
        for sight in self._found(uid):
            with suppress(OSError):
                stat = os.stat(sight.path)  # noqa: PTH116 - see above
                mark = (stat.st_mtime_ns, stat.st_size) if sight.is_file else (0, 0)
                found.add(sight.path)
                if known.get(sight.path) != mark:
                    known[sight.path] = mark
                    self._tell(sight)
        gone = known.keys() - found
        for path in gone:
            del known[path]
        for path in sorted(gone):
            if gone.isdisjoint(map(str, Path(path).parents)):
                self._recorder.record("disk", op="removed", path=self._name(path))
        if gone and not known:
            del self._known[uid]  # The pod is gone; its next sandbox would make it known again.

    def _found(self, uid: str) -> Iterator[_Sight]:
        """What there may be of a pod's files."""
        folder = f"{self._root}{self._pods}/{uid}"
        for name in _DATA_FOLDERS:
            yield _Sight(f"{folder}{name}", is_told=True)
        for path in _two_below(f"{folder}/volumes"):
            yield _Sight(path, is_told=False)
        for path in (f"{folder}{_HOSTS}", *_two_below(f"{folder}/containers")):
            yield _Sight(path, is_told=True, is_file=True)
        if logs := self._logs.get(uid):
            logs = f"{self._root}{logs.rstrip('/')}"
            yield _Sight(logs, is_told=True)
            for path in _two_below(logs):
                yield _Sight(path, is_told=True, is_file=True)

    def _tell(self, sight: _Sight) -> None:
        if not sight.is_told:
            return
        path = self._name(sight.path)
        if not sight.is_file:
            self._recorder.record("disk", op="folder", path=path)
            return
        file = Path(sight.path)
        is_short = file.stat().st_size <= _TEXT_BYTES_MAX
        text = file.read_text(encoding="utf-8", errors="replace") if is_short else None
        self._recorder.record("disk", op="written", path=path, text=text)

    def _name(self, path: str) -> str:
        """The path as the kubelet has it."""
        return path.removeprefix(self._root)


def _two_below(folder: str) -> list[str]:
    """What is in the folders of a folder."""
    return [entry for below in _entries(folder) for entry in _entries(below)]


def _entries(folder: str) -> list[str]:
    """What is in a folder, nothing in one that has just gone: the kubelet does not wait."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries)
    except OSError:
        return []
