"""Runtimes that accept what they should refuse, or keep what they should give back."""

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_fakes.runtime.core import BegunExec, RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.images import Images
from kubelet_fakes.runtime.records import Container, Sandbox, sandbox_key
from kubelet_fakes.runtime.script import parse_execution
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.settings import RuntimeSettings
from kubelet_fakes.runtime.store import Addresses, Store


@bug("MUT-CRI-04", breaks="CRI-04")
class Twins(RuntimeCore):
    """One attempt of a sandbox can be run twice."""

    def _check_name(self, metadata: cri.PodSandboxMetadata) -> None:
        """Check nothing."""


@bug("MUT-CRI-35", breaks="CRI-35")
class AnyHandler(RuntimeCore):
    """A sandbox with an unknown runtime handler is run by the default one."""

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        if request.runtime_handler not in self.settings.handlers:
            request = cri.RunPodSandboxRequest(config=request.config)
        return super().run_pod_sandbox(request)


@bug("MUT-CRI-37", breaks="CRI-37")
class AnyTarget(RuntimeCore):
    """A container can be given the processes of a container of another sandbox."""

    def _check_target(self, sandbox: Sandbox, config: cri.ContainerConfig) -> None:
        """Check nothing."""


@bug("MUT-CRI-27", breaks="CRI-27")
class ExecsAnywhere(RuntimeCore):
    """A command in a container that does not run is said to have ended well."""

    def begin_exec(self, request: cri.ExecSyncRequest) -> BegunExec:
        container = self.container(request.container_id)
        if container.is_running:
            return super().begin_exec(request)
        return _InTheDead(container, parse_execution(tuple(request.cmd)), self.now, 0, self.files)


class _InTheDead(BegunExec):
    """A command that has ended well."""

    def result(self) -> cri.ExecSyncResponse:
        return cri.ExecSyncResponse()


@bug("MUT-CRI-28", breaks="CRI-28")
class HalfAnUpdate(RuntimeCore):
    """An update of resources that is refused takes place in part."""

    def update_container_resources(
        self, request: cri.UpdateContainerResourcesRequest
    ) -> cri.UpdateContainerResourcesResponse:
        container = self.container(request.container_id)
        if request.linux.memory_limit_in_bytes > 0:
            self._limit_memory(container, request.linux.memory_limit_in_bytes)
        return super().update_container_resources(request)

    def _limit_memory(self, container: Container, limit_bytes: int) -> None:
        container.config.linux.resources.memory_limit_in_bytes = limit_bytes
        self.store.resized(container)


class _DropsWhatIsLeft(RuntimeCore):
    """Makes no sandbox whose caller has left before it was made."""

    def __init__(
        self,
        settings: RuntimeSettings | None = None,
        *,
        epoch_ns: int = 0,
        store: type[Store] = Store,
        images: type[Images] = Images,
    ) -> None:
        super().__init__(settings, epoch_ns=epoch_ns, store=store, images=images)
        self.left: set[tuple[str, str, str, int]] = set()

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        key = sandbox_key(request.config.metadata)
        if key in self.left:
            self.left.discard(key)
            self.drop(key)
            raise CallError(grpc.StatusCode.CANCELLED, "context canceled")
        return super().run_pod_sandbox(request)

    def drop(self, key: tuple[str, str, str, int]) -> None:
        """Undo what was done for it."""


class _KeepsTheName(_DropsWhatIsLeft):
    """Never gives the name of such a sandbox free."""

    def run_pod_sandbox(self, request: cri.RunPodSandboxRequest) -> cri.RunPodSandboxResponse:
        metadata = request.config.metadata
        if sandbox_key(metadata) in self.left:
            raise CallError(grpc.StatusCode.UNKNOWN, f"name {metadata.name!r} is reserved")
        return super().run_pod_sandbox(request)


class _KeepsTheAddress(_DropsWhatIsLeft):
    """Never gives the address of such a sandbox back."""

    def drop(self, key: tuple[str, str, str, int]) -> None:
        self.store.addresses.take(f"{key}, {len(self.store.sandboxes)}")


class _FewAddresses(Store):
    """Has no more than four addresses, so that it shows when they run out."""

    def __init__(self, settings: RuntimeSettings, *, epoch_ns: int = 0) -> None:
        super().__init__(settings, epoch_ns=epoch_ns)
        self.addresses = _Four(settings.pod_network, dual_stack=settings.dual_stack)


class _Four(Addresses):
    """Four addresses."""

    def take(self, owner: str) -> tuple[str, ...]:
        return super().take(owner) if len(self._taken) < 4 else ()  # noqa: PLR2004 - see above


class _Forgets(FakeRuntime):
    """Says to its core which callers have left."""

    async def RunPodSandbox(
        self, request: cri.RunPodSandboxRequest, *, timeout: float | None = None
    ) -> cri.RunPodSandboxResponse:
        try:
            return await super().RunPodSandbox(request, timeout=timeout)
        except CallError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and isinstance(self.core, _DropsWhatIsLeft):
                self.core.left.add(sandbox_key(request.config.metadata))
            raise


@bug("CTRD-13599", breaks="CRI-11", aliases="R26")
class AnySandbox(RuntimeCore):
    """A container can be made in a sandbox that was stopped."""

    def create_container(self, request: cri.CreateContainerRequest) -> cri.CreateContainerResponse:
        sandbox = self.sandbox(request.pod_sandbox_id)
        was_ready, sandbox.ready = sandbox.ready, True
        try:
            return super().create_container(request)
        finally:
            sandbox.ready = was_ready


@bug("CTRD-4604", breaks="CRI-32", aliases=("R01", "CTRD-9947", "DOCK-36768"))
def reserves_the_name() -> WrongParts:
    """The name of a sandbox whose making took too long is reserved for ever."""
    return parts_with(_Forgets, _KeepsTheName)


@bug("CRIO-2984", breaks="CRI-32", aliases=("R02", "CRIO-3571", "CRIO-7010"))
def begins_again() -> WrongParts:
    """A sandbox that took too long is thrown away when it is done, and all begins again."""
    return parts_with(_Forgets, _DropsWhatIsLeft)


@bug("CTRD-5438", breaks="CRI-21", aliases=("R04", "CTRD-5768", "CTRD-13095"))
def loses_the_address() -> WrongParts:
    """The address of a sandbox that took too long is never given back."""
    return parts_with(_Forgets, _KeepsTheAddress, _FewAddresses)
