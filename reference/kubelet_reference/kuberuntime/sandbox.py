"""Creates a pod's sandbox and reads its IPs: step 4 of a sync.

The config of the sandbox comes from `sandbox_config`. The pod's runtime class says which handler of the
runtime runs the sandbox (SANDBOX-16, KEP-585): the API server resolves it, or its last answer counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import grpc
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_reference.allocation.dynamic_resources import ResourcesError
from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason
from kubelet_reference.api.go_text import pod_text, quoted
from kubelet_reference.api.records import ips_of
from kubelet_reference.cri.errors import NoStatus, wrapped_text
from kubelet_reference.cri.labels import sandbox_record
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.util.ports import ApiError, ApiServer

DEFAULT_HANDLER = ""


class UnknownClassError(Exception):
    """The handler of a class is unknown: there is no such class, or it could not be read."""


class RuntimeClasses:
    """Asks the API server, and goes by what it last said while it is away.

    A kubelet without an API server knows no classes, and takes the default handler whatever is asked for.
    """

    def __init__(self, api: ApiServer | None) -> None:
        self._api = api
        self._handlers: dict[str, str] = {}

    async def handler(self, name: str | None) -> str:
        """The handler of the class of that name; raises `UnknownClassError`."""
        if not name or self._api is None:
            return DEFAULT_HANDLER
        try:
            self._handlers[name] = (await self._api.get_runtime_class(name)).handler
        except ApiError as error:
            if error.is_not_found:
                self._handlers.pop(name, None)
                raise UnknownClassError(f'runtimeclass.node.k8s.io "{name}" not found') from error
            if name not in self._handlers:
                raise UnknownClassError(f"failed to lookup RuntimeClass {name}: {error}") from error
        return self._handlers[name]


class SandboxError(Exception):
    """The sandbox was not made, or could not be read."""


class SandboxPutOffError(Exception):
    """The sandbox was not made, which is no failure of the sync: the pod is to end, or lacks its devices."""


@dataclass(eq=False)
class SandboxCreator:
    """Creates sandboxes; `is_ending` says whether a pod's termination was requested."""

    tools: RuntimeTools
    classes: RuntimeClasses
    is_ending: Callable[[str], bool]

    async def make(self, pod: Pod, config: cri.PodSandboxConfig) -> str:
        """Make a sandbox; its id. Every try counts as a started pod (METRIC-01).

        A failure is reported by an event (SANDBOX-10), but for a pod that is to end anyway: then it is
        `SandboxPutOffError`, and not reported (SYNC-14, SYNC-19).
        """
        self.tools.metrics.started_pods.inc()
        await self.prepare_resources(pod)
        try:
            self.tools.files.make_log_directory(pod)
            return await self.tools.client.run_sandbox(config, await self.runtime_handler(pod))
        except (grpc.RpcError, OSError, UnknownClassError) as error:
            text = wrapped_text(error)
            if self.is_ending(pods.uid(pod)):
                raise SandboxPutOffError(text) from error
            self.tools.metrics.started_pods_errors.inc()
            what = f"Failed to create pod sandbox: {text}"
            self.tools.recorder.warning(pod, Reason.FAILED_CREATE_POD_SANDBOX, what)
            raise SandboxError(f"Failed to create sandbox for pod {quoted(pod_text(pod))}: {text}") from error

    async def prepare_resources(self, pod: Pod) -> None:
        """Have the devices ready that the pod has claimed, before its sandbox (SYNC-18, SANDBOX-25).

        A failure is reported by an event alone: it is tried again with the next regular sync.
        """
        if self.tools.resources is None:
            return
        try:
            await self.tools.resources.prepare(pod)
        except ResourcesError as error:
            text = f"Failed to prepare dynamic resources: {error}"
            self.tools.recorder.warning(pod, Reason.FAILED_PREPARE_DYNAMIC_RESOURCES, text)
            raise SandboxPutOffError(text) from error

    async def runtime_handler(self, pod: Pod) -> str:
        """The handler of the pod's runtime class (SANDBOX-16)."""
        return await self.classes.handler(pods.spec(pod).runtimeClassName)

    async def ips(self, pod: Pod, sandbox_id: str) -> tuple[str, ...]:
        """The IPs of a new sandbox, which its containers get (SYNC-07, SYNC-20, SYNC-21)."""
        try:
            return ips_of(sandbox_record(await self.tools.client.sandbox_status(sandbox_id)))
        except NoStatus as error:
            raise SandboxError(str(error)) from error
        except grpc.RpcError as error:
            text = f"Unable to get pod sandbox status: {wrapped_text(error)}"
            self.tools.recorder.warning(pod, Reason.FAILED_POD_SANDBOX_STATUS, text)
            raise SandboxError(wrapped_text(error)) from error
