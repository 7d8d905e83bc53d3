"""Runtimes that come back from a restart, or a reboot, with another past than they had."""

from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.spontaneous_events import SpontaneousEvents


@bug("CTRD-7843", breaks="CRI-21", aliases=("R05", "RKE2-3723"))
class ForgetsAddresses(SpontaneousEvents):
    """After a restart of the runtime its sandboxes have no address any more."""

    def restart(self, *, lose_state: bool = False) -> None:
        super().restart(lose_state=lose_state)
        for sandbox in self._store.sandboxes.values():
            sandbox.ips = ()
            sandbox.changed()


@bug("CRIO-7004", breaks="CRI-19", aliases="R12")
class DeadRun(SpontaneousEvents):
    """After a restart of the runtime containers that had ended run again."""

    def restart(self, *, lose_state: bool = False) -> None:
        super().restart(lose_state=lose_state)
        for container in self._store.containers.values():
            if container.state == cri.CONTAINER_EXITED and container.sandbox.ready:
                container.state = cri.CONTAINER_RUNNING
                container.finished_at = 0
                self._store.resized(container)


@bug("MUT-CRI-20", breaks="CRI-20")
class AllAreReady(SpontaneousEvents):
    """After a restart of the runtime sandboxes that were stopped are READY again."""

    def restart(self, *, lose_state: bool = False) -> None:
        super().restart(lose_state=lose_state)
        for sandbox in self._store.sandboxes.values():
            sandbox.ready = True
        self._store.sandbox_lists = {}


@bug("CTRD-255", breaks="CRI-16")
class UnknownEnds(SpontaneousEvents):
    """After a restart of the runtime everything that had ended has ended with 255."""

    def restart(self, *, lose_state: bool = False) -> None:
        super().restart(lose_state=lose_state)
        for container in self._store.containers.values():
            if container.state == cri.CONTAINER_EXITED:
                container.exit_code, container.reason = self.LOST_CODE, "Unknown"
                self._store.resized(container)


@bug("CRIO-3041", breaks="CRI-16", aliases=("R13", "DOCK-41516"))
class LostCodesAreZero(SpontaneousEvents):
    """After a reboot every process that was lost has ended with 0."""

    LOST_CODE = 0
