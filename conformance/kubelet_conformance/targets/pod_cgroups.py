"""The cgroups of pods on an in-process node: who makes and removes them is on the record."""

from __future__ import annotations

from kubelet_conformance.trace.recorder import Recorder

_ROOT = "/sys/fs/cgroup/kubepods/pod"


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
