"""Bugs at the start of a container: its image, its hook, and what counts as a failed start."""

from __future__ import annotations

from contextlib import suppress

from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.hooks import HookError
from kubelet_reference.phase import pod_phase
from kubelet_reference.pods import AnyContainer
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_result import Failure, StartError
from kubelet_reference.versions import Behaviour

_PULL_FAILURES = frozenset({Failure.ERR_IMAGE_PULL, Failure.IMAGE_PULL_BACK_OFF})


@bug("K8S-60053", breaks="HOOK-01", aliases="K8S-122803")
class HookOnce(ContainerStarter):
    """Only the first instance of a container has its postStart hook run."""

    async def _post_start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        if self.restarts(into, container) == 0:
            await super()._post_start(into, container, container_id)


@bug("K8S-100608", breaks="HOOK-03")
class HookForNothing(ContainerStarter):
    """A container whose postStart hook failed goes on."""

    async def _post_start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        handler = container.lifecycle.postStart if container.lifecycle else None
        if handler is not None:
            with suppress(HookError):
                await self._parts.hooks.run(into.pod, container, container_id, handler)


@bug("K8S-20117", breaks="START-02")
class MustStillRun(ContainerStarter):
    """A container that has ended right after its start counts as one that could not be started."""

    async def _start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        await super()._start(into, container, container_id)
        status = await self._client.container_status(container_id)
        if status.finished_at:
            raise StartError(Failure.RUN_CONTAINER, f"container {container.name} is not running")


@bug("K8S-35423", breaks="PHASE-02", part="pod_phase", aliases="K8S-66828")
def no_image_no_pod(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """A pod that is not to be restarted has failed when its image cannot be pulled."""
    waits = (one.state.waiting for one in status.containerStatuses or () if one.state)
    failed = any(waiting and waiting.reason in _PULL_FAILURES for waiting in waits)
    if failed and pods.restart_policy(pod) == pods.NEVER:
        return pods.FAILED
    return pod_phase(pod, status, behaviour, terminating=terminating)
