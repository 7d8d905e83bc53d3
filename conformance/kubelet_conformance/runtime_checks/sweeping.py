"""Take away what a run has made at a runtime, whatever became of its stories."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import RUN_LABEL
from kubelet_conformance.targets.direct import DirectRuntime

_SECONDS_MAX = 20.0
_PAUSE_SECONDS = 0.5
_LOOKS_IN_HASTE = 3
_CALL_SECONDS = 30.0


async def sweep(target: DirectRuntime, run_id: str, *, in_haste: bool = False) -> list[str]:
    """Remove every sandbox and container of the run; what could not be removed, in words.

    Calls that were broken off, as when the run is interrupted (`in_haste`), may still make something for a
    moment: then it looks until nothing was there for a while.
    """
    left, clean, deadline = list[str](), 0, target.now() + _SECONDS_MAX
    while True:
        try:
            left = await _remove(target, run_id)
        except grpc.RpcError as error:
            left = [f"the runtime does not say what is left: {error}"]
        clean = 0 if left else clean + 1
        if clean >= (_LOOKS_IN_HASTE if in_haste else 1) or target.now() >= deadline:
            return left
        await target.sleep(_PAUSE_SECONDS)


async def _remove(target: DirectRuntime, run_id: str) -> list[str]:
    """Remove what is listed; what was there, in words."""
    services, ours = target.services, {RUN_LABEL: run_id}
    of_sandboxes = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(label_selector=ours))
    of_containers = cri.ListContainersRequest(filter=cri.ContainerFilter(label_selector=ours))
    sandboxes = (await services.ListPodSandbox(of_sandboxes, timeout=_CALL_SECONDS)).items
    containers = (await services.ListContainers(of_containers, timeout=_CALL_SECONDS)).containers

    async def sandbox_goes(one: str) -> None:
        stop, remove = (
            cri.StopPodSandboxRequest(pod_sandbox_id=one),
            cri.RemovePodSandboxRequest(pod_sandbox_id=one),
        )
        await services.StopPodSandbox(stop, timeout=_CALL_SECONDS)
        await services.RemovePodSandbox(remove, timeout=_CALL_SECONDS)

    await _all(sandbox_goes(one.id) for one in sandboxes)
    requests = (cri.RemoveContainerRequest(container_id=one.id) for one in containers)
    await _all(services.RemoveContainer(request, timeout=_CALL_SECONDS) for request in requests)
    names = [f"sandbox {one.metadata.name} {one.id}" for one in sandboxes]
    return names + [f"container {one.metadata.name} {one.id}" for one in containers]


async def _all(calls: Iterable[Awaitable[object]]) -> None:
    """Make them side by side; what fails is found again in the next round."""
    await asyncio.gather(*calls, return_exceptions=True)
