"""What a runtime does without being called: processes end, sandboxes die, records go, the node reboots."""

from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.store import KILLED

_NS = 1_000_000_000


class SpontaneousEvents:
    """Makes things happen in a runtime without a CRI call; each is reported to the store's `on_runtime`.

    An id that the runtime does not have is `CallError` NOT_FOUND, and what cannot happen is `ValueError`.
    """

    LOST_CODE = 255
    """The exit code reported for a process that went with the node, about which nothing is known."""

    def __init__(self, core: RuntimeCore) -> None:
        self._core = core
        self._store = core.store

    def exit(self, container_id: str, code: int) -> None:
        """The container's process ends by itself."""
        self._finish(container_id, code)

    def oom(self, container_id: str, code: int = KILLED) -> None:
        """A process of the container is killed for lack of memory, and it ends with `code` (CRI-16)."""
        self._finish(container_id, code, reason="OOMKilled", op="oom")

    def _finish(self, container_id: str, code: int, *, reason: str = "", op: str = "exited") -> None:
        container = self._core.container(container_id)
        if not container.is_running:
            raise ValueError(f"container {container_id} is {container.state_name}: nothing runs in it")
        self._store.finish(container, code, reason=reason, op=op)

    def lose_track(self, container_id: str) -> None:
        """The runtime no longer knows what the container does: it is UNKNOWN until it is stopped."""
        container = self._core.container(container_id)
        if not container.is_running:
            raise ValueError(f"container {container_id} is {container.state_name}, not RUNNING")
        self._store.forget_state(container)
        self._store.on_runtime("unknown", container_id, container.sandbox.id, container.name, None)

    def kill_sandbox(self, sandbox_id: str) -> None:
        """The sandbox is NOTREADY from now on; its containers go on."""
        sandbox = self._core.sandbox(sandbox_id)
        if sandbox.ready:
            self._store.unready(sandbox)
            self._store.on_runtime("sandbox-died", "", sandbox_id, "", None)

    def remove_container(self, container_id: str) -> None:
        """The container's record goes, and its process with it."""
        container = self._core.container(container_id)
        if container.is_running:
            self._store.finish(container, KILLED)
        self._store.drop_container(container)
        self._store.on_runtime("removed", container_id, container.sandbox.id, container.name, None)

    def remove_sandbox(self, sandbox_id: str) -> None:
        """The sandbox's record goes, and those of its containers."""
        sandbox = self._core.sandbox(sandbox_id)
        for container_id in list(sandbox.containers):
            self.remove_container(container_id)
        self._store.drop_sandbox(sandbox)
        self._store.on_runtime("removed", "", sandbox_id, "", None)

    def restart(self, *, lose_state: bool = False) -> None:
        """The runtime went down and up; containers go on, but those that were being stopped are not killed.

        With `lose_state` it comes up without any record.
        """
        if lose_state:
            for sandbox_id in list(self._store.sandboxes):
                self.remove_sandbox(sandbox_id)
        for container in self._store.containers.values():
            if container.kill_at is not None:
                container.kill_at = None
                self._store.foresee(container)
        self._store.on_runtime("restarted", "", "", "", None)

    def reboot(self) -> None:
        """The node went down and up: all records are there and nothing runs."""
        for container in list(self._store.containers.values()):
            if container.is_running or container.state == cri.CONTAINER_UNKNOWN:
                self._store.finish(container, self.LOST_CODE)
        for sandbox_id in list(self._store.sandboxes):
            self.kill_sandbox(sandbox_id)
        self._store.on_runtime("rebooted", "", "", "", None)

    def jump_clock(self, seconds: float) -> None:
        """The wall clock jumps; durations are not touched, and stamps never go back."""
        self._store.epoch_ns += round(seconds * _NS)
