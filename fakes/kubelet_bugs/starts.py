"""Bugs at the start of a container: its image, its hook, and what counts as a failed start."""

from __future__ import annotations

from contextlib import suppress

from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.hooks import HookError
from kubelet_reference.parts import Parts
from kubelet_reference.phase import pod_phase
from kubelet_reference.pod_status import StatusDecisions
from kubelet_reference.pods import AnyContainer
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_result import Failure, StartError
from kubelet_reference.versions import Behaviour

_PULL_FAILURES = frozenset({Failure.ERR_IMAGE_PULL, Failure.IMAGE_PULL_BACK_OFF})


class _HookOnce(ContainerStarter):
    """Runs a postStart hook at the first start of a container only."""

    async def _post_start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        if self.restarts(into, container) == 0:
            await super()._post_start(into, container, container_id)


class _HookForNothing(ContainerStarter):
    """Does not care how a postStart hook ends."""

    async def _post_start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        handler = container.lifecycle.postStart if container.lifecycle else None
        if handler is not None:
            with suppress(HookError):
                await self._parts.hooks.run(into.pod, container, container_id, handler)


class _MustStillRun(ContainerStarter):
    """Takes a container that has ended right after its start for one that could not be started."""

    async def _start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        await super()._start(into, container, container_id)
        status = await self._client.container_status(container_id)
        if status.finished_at:
            raise StartError(Failure.RUN_CONTAINER, f"container {container.name} is not running")


def _no_image_no_pod(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """The phase, with a pull that failed as the end of a pod that is not to be restarted."""
    waits = (one.state.waiting for one in status.containerStatuses or () if one.state)
    failed = any(waiting and waiting.reason in _PULL_FAILURES for waiting in waits)
    if failed and pods.restart_policy(pod) == pods.NEVER:
        return pods.FAILED
    return pod_phase(pod, status, behaviour, terminating=terminating)


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-60053",
        "Only the first instance of a container has its postStart hook run.",
        lambda: Parts(runtime=RuntimeParts(starter=_HookOnce)),
        ("HOOK-01",),
        ("K8S-122803",),
    ),
    Bug(
        "K8S-100608",
        "A container whose postStart hook failed goes on.",
        lambda: Parts(runtime=RuntimeParts(starter=_HookForNothing)),
        ("HOOK-03",),
    ),
    Bug(
        "K8S-20117",
        "A container that has ended right after its start counts as one that could not be started.",
        lambda: Parts(runtime=RuntimeParts(starter=_MustStillRun)),
        ("START-02",),
    ),
    Bug(
        "K8S-35423",
        "A pod that is not to be restarted has failed when its image cannot be pulled.",
        lambda: Parts(status=StatusDecisions(pod_phase=_no_image_no_pod)),
        ("PHASE-02",),
        ("K8S-66828",),
    ),
)
