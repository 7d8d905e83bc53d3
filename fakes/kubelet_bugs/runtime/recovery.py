"""Runtimes that come back from a restart, or a reboot, with another past than they had."""

from __future__ import annotations

from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import Bug
from kubelet_fakes.runtime.mishaps import Mishaps
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_reference.parts import Parts


class _ForgetsAddresses(Mishaps):
    """Comes back without the addresses of its sandboxes."""

    def restart(self, *, lose_state: bool = False) -> None:
        super().restart(lose_state=lose_state)
        for sandbox in self._store.sandboxes.values():
            sandbox.ips = ()
            sandbox.changed()


class _DeadRun(Mishaps):
    """Comes back with what had ended as running."""

    def restart(self, *, lose_state: bool = False) -> None:
        super().restart(lose_state=lose_state)
        for container in self._store.containers.values():
            if container.state == cri.CONTAINER_EXITED and container.sandbox.ready:
                container.state = cri.CONTAINER_RUNNING
                container.finished_at = 0
                self._store.resized(container)


class _AllAreReady(Mishaps):
    """Comes back with every sandbox as READY."""

    def restart(self, *, lose_state: bool = False) -> None:
        super().restart(lose_state=lose_state)
        for sandbox in self._store.sandboxes.values():
            sandbox.ready = True
        self._store.sandbox_lists = {}


class _UnknownEnds(Mishaps):
    """Comes back without knowing how anything ended."""

    def restart(self, *, lose_state: bool = False) -> None:
        super().restart(lose_state=lose_state)
        for container in self._store.containers.values():
            if container.state == cri.CONTAINER_EXITED:
                container.exit_code, container.reason = self.LOST_CODE, "Unknown"
                self._store.resized(container)


class _LostCodesAreZero(Mishaps):
    """After a reboot every process has ended well, since nothing says otherwise."""

    LOST_CODE = 0


BUGS = (
    Bug(
        id="CTRD-7843",
        title="After a restart of the runtime its sandboxes have no address any more.",
        parts=Parts,
        runtime=lambda: RuntimeParts(mishaps=_ForgetsAddresses),
        breaks=("CRI-21",),
        aliases=("R05", "RKE2-3723"),
    ),
    Bug(
        id="CRIO-7004",
        title="After a restart of the runtime containers that had ended run again.",
        parts=Parts,
        runtime=lambda: RuntimeParts(mishaps=_DeadRun),
        breaks=("CRI-19",),
        aliases=("R12",),
    ),
    Bug(
        id="MUT-CRI-20",
        title="After a restart of the runtime sandboxes that were stopped are READY again.",
        parts=Parts,
        runtime=lambda: RuntimeParts(mishaps=_AllAreReady),
        breaks=("CRI-20",),
    ),
    Bug(
        id="CTRD-255",
        title="After a restart of the runtime everything that had ended has ended with 255.",
        parts=Parts,
        runtime=lambda: RuntimeParts(mishaps=_UnknownEnds),
        breaks=("CRI-16",),
    ),
    Bug(
        id="CRIO-3041",
        title="After a reboot every process that was lost has ended with 0.",
        parts=Parts,
        runtime=lambda: RuntimeParts(mishaps=_LostCodesAreZero),
        breaks=("CRI-16",),
        aliases=("R13", "DOCK-41516"),
    ),
)
