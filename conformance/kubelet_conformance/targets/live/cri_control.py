"""What can be done to a real runtime from outside: what the CRI offers, and signals where we are root."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

import grpc
import grpc.aio
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.controls import (
    NotPossibleError,
    RuntimeContainer,
    RuntimeControl,
    RuntimeSandbox,
)
from kubelet_conformance.targets.cri_endpoint import Services
from kubelet_conformance.targets.live.namespaces import Scope
from kubelet_conformance.targets.live.private_runtimes import OwnContainerd
from kubelet_conformance.targets.live.scoped_recorder import View

_CALL_SECONDS = 30.0
_LOOK_SECONDS = 0.2
_RECHECK_SECONDS = 0.05


class RuntimeState:
    """What the runtime has, looked at over a channel of its own, five times a second and after each call."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.sandboxes: list[RuntimeSandbox] = []
        self.containers: list[RuntimeContainer] = []
        self.away = ""
        """Why the runtime could not be looked at, the last time."""
        self._changed = asyncio.Event()

    def look_soon(self) -> None:
        """Something may have changed."""
        self._changed.set()

    async def keep_looking(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self._changed.clear()
            await self.look()
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def look(self) -> None:
        """Look once; a runtime that does not answer leaves what was seen before."""
        try:
            sandboxes = await self.services.ListPodSandbox(cri.ListPodSandboxRequest(), timeout=_CALL_SECONDS)
            containers = await self.services.ListContainers(
                cri.ListContainersRequest(), timeout=_CALL_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            self.away = f"{error.code().name}: {error.details()}"
            return
        self.away = ""
        found = {each.id: _sandbox(each) for each in sorted(sandboxes.items, key=_age)}
        self.sandboxes = list(found.values())
        self.containers = [
            _container(each, found[each.pod_sandbox_id])
            for each in sorted(containers.containers, key=_age)
            if each.pod_sandbox_id in found
        ]

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Look until `holds()`; raises `NotPossibleError` when it does not come in a while."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CALL_SECONDS
        while not holds():
            if loop.time() > deadline:
                raise NotPossibleError(f"a runtime on which {what}")
            self.look_soon()
            await asyncio.wait([loop.create_future()], timeout=_RECHECK_SECONDS)


class CriRuntimeControl(RuntimeControl):
    """A real runtime as one scenario controls it: it sees only what is in the scenario's own namespaces.

    Actions are begun at once and go on beside the scenario; `spawn` runs them. `private` is the runtime's
    other side, where it is one of our own.
    """

    def __init__(
        self,
        state: RuntimeState,
        view: View,
        scope: Scope,
        spawn: Callable[[Coroutine[object, object, None]], object],
        private: OwnContainerd | None = None,
    ) -> None:
        self._state = state
        self._services = state.services
        self._view = view
        self._is_mine = scope.holds
        self._file = scope.file
        self._spawn = spawn
        self._private = private

    def sandboxes(self) -> Sequence[RuntimeSandbox]:
        """The scenario's, as last seen, oldest first."""
        return [each for each in self._state.sandboxes if self._is_mine(each.namespace)]

    def containers(self) -> Sequence[RuntimeContainer]:
        """The scenario's, as last seen, oldest first."""
        return [each for each in self._state.containers if self._is_mine(each.sandbox.namespace)]

    # What can be done.

    def exit(self, container_id: str, code: int) -> None:
        """Its process ends by itself: it is asked to by the images' own `end CODE`."""
        self._spawn(self._exit(container_id, code))

    async def _exit(self, container_id: str, code: int) -> None:
        request = cri.ExecSyncRequest(container_id=container_id, cmd=["end", str(code)], timeout=10)
        # The command may go with its container; whether that has ended is looked at.
        with contextlib.suppress(grpc.aio.AioRpcError):
            await self._services.ExecSync(request, timeout=_CALL_SECONDS)
        await self._state.until(
            lambda: self._state_of(container_id) in {"EXITED", ""}, f"`end {code}` ends a container"
        )

    def _state_of(self, container_id: str) -> str:
        return next((each.state for each in self._state.containers if each.id == container_id), "")

    def kill_sandbox(self, sandbox_id: str) -> None:
        """Its own process is killed; containers go on."""
        self._spawn(self._kill_sandbox(sandbox_id))

    async def _kill_sandbox(self, sandbox_id: str) -> None:
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox_id, verbose=True)
        found = await self._services.PodSandboxStatus(request, timeout=_CALL_SECONDS)
        pid = _pid(dict(found.info))
        if not pid or not _is_of(pid, sandbox_id):
            raise NotPossibleError("a runtime that reports the process of a sandbox, on this machine")
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            raise NotPossibleError("the right to kill a sandbox's process: run as root") from None
        await self._state.until(
            lambda: not any(each.id == sandbox_id and each.ready for each in self._state.sandboxes),
            "a sandbox whose process is killed is not ready",
        )
        self._view.record("runtime", op="sandbox-died", sandbox_id=sandbox_id)

    def remove_container(self, container_id: str) -> None:
        """It is stopped and removed behind the kubelet's back."""
        self._spawn(self._remove_container(container_id))

    async def _remove_container(self, container_id: str) -> None:
        found = [each for each in self._state.containers if each.id == container_id]
        stop = cri.StopContainerRequest(container_id=container_id)
        await self._services.StopContainer(stop, timeout=_CALL_SECONDS)
        mark = self._view.mark
        remove = cri.RemoveContainerRequest(container_id=container_id)
        await self._services.RemoveContainer(remove, timeout=_CALL_SECONDS)
        for each in found:
            self._view.record_removal(mark, each.id, each.sandbox.id, each.name)
        await self._state.look()

    def remove_sandbox(self, sandbox_id: str) -> None:
        """It is stopped and removed, with its containers, behind the kubelet's back."""
        self._spawn(self._remove_sandbox(sandbox_id))

    async def _remove_sandbox(self, sandbox_id: str) -> None:
        found = [each for each in self._state.containers if each.sandbox.id == sandbox_id]
        stop = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox_id)
        await self._services.StopPodSandbox(stop, timeout=_CALL_SECONDS)
        mark = self._view.mark
        remove = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id)
        await self._services.RemovePodSandbox(remove, timeout=_CALL_SECONDS)
        for each in found:
            self._view.record_removal(mark, each.id, sandbox_id, each.name)
        self._view.record_removal(mark, "", sandbox_id, "")
        await self._state.look()

    # What can be done to a private one.

    def set_file(self, name: str, *, there: bool) -> None:
        """What `xf NAME` finds in the scenario's containers."""
        if self._private is None:
            super().set_file(name, there=there)
        else:
            self._private.set_file(self._file(name), there=there)

    def add_image(self, name: str, *, user: str = "") -> None:
        """Put an image onto the node."""
        if self._private is None:
            super().add_image(name, user=user)
        else:
            self._private.add_image(name, user=user)

    def publish_image(self, name: str, *, there: bool = True) -> None:
        """Whether the registry has it."""
        if self._private is None:
            super().publish_image(name, there=there)
        else:
            self._private.publish_image(name, there=there)


def _age(record: cri.PodSandbox | cri.Container) -> tuple[int, str]:
    return record.created_at, record.id


def _sandbox(found: cri.PodSandbox) -> RuntimeSandbox:
    metadata = found.metadata
    ready = found.state == cri.SANDBOX_READY
    return RuntimeSandbox(found.id, metadata.uid, metadata.name, metadata.namespace, metadata.attempt, ready)


def _container(found: cri.Container, sandbox: RuntimeSandbox) -> RuntimeContainer:
    state = cri.ContainerState.Name(found.state).removeprefix("CONTAINER_")
    return RuntimeContainer(found.id, found.metadata.name, found.metadata.attempt, state, sandbox)


def _pid(info: dict[str, str]) -> int:
    """The process in the verbose status, as containerd and CRI-O report it; 0 if there is none."""
    try:
        pid: object = json.loads(info.get("info", "{}")).get("pid")
    except (ValueError, AttributeError):
        return 0
    return pid if isinstance(pid, int) and pid > 1 else 0


def _is_of(pid: int, sandbox_id: str) -> bool:
    """Whether this process is the sandbox's: another machine's numbers mean nothing here."""
    try:
        return sandbox_id in Path("/proc", str(pid), "cgroup").read_text(encoding="utf-8")
    except OSError:
        return False
