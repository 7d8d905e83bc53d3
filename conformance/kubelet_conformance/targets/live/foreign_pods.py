"""Who lives at a runtime: pods that are not ours, and what a run of ours left behind."""

import asyncio
from collections.abc import Iterable

import grpc
import grpc.aio
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.cri_endpoint import Endpoint, Services
from kubelet_conformance.targets.live.namespaces import scope_of
from kubelet_reference.server.host.clock import LoopClock

_SHOWN = 3
_CALL_SECONDS = 30.0
_SWEEP_SECONDS = 30.0
_PAUSE_SECONDS = 0.2
_LOOKS = 2


async def check_foreign_pods(endpoint: Endpoint) -> None:
    """Raise `TargetError` if there are pods that the kubelet would kill, as they are not in its sources."""
    found = await endpoint.services.ListPodSandbox(cri.ListPodSandboxRequest(), timeout=_CALL_SECONDS)
    metadata = [each.metadata for each in found.items if not scope_of(each.metadata.namespace)]
    if not metadata:
        return
    names = sorted({f"{each.namespace}/{each.name}" for each in metadata})
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    raise TargetError(
        f"{endpoint.path}: there are pods that are not this suite's: {', '.join(names[:_SHOWN])}{more}."
        " Its kubelet would KILL them, as every kubelet kills pods that it does not know. Name a runtime that"
        " is not in use, or choose --runtime containerd for a private one; --kill-foreign-pods kills them"
    )


async def check_images(endpoint: Endpoint, images: Iterable[str]) -> None:
    """Raise `TargetError` if one of these images is not at the runtime."""
    missing: list[str] = []
    for image in sorted(images):
        request = cri.ImageStatusRequest(image=cri.ImageSpec(image=image))
        found = await endpoint.services.ImageStatus(request, timeout=_CALL_SECONDS)
        if not found.HasField("image"):
            missing.append(image)
    if missing:
        raise TargetError(
            f"{endpoint.path}: the images of the scenarios are missing: {', '.join(missing)}. Write them with"
            " `kubelet-conformance image -o images.tar` and import them, such as with"
            f" `ctr --address {endpoint.path} --namespace k8s.io images import images.tar`"
        )


async def remove_ours(services: Services) -> list[str]:
    """Stop and remove the sandboxes that scenarios made; what could not be removed, in words.

    A runtime may still be busy with a call whose caller has gone: so what fails is tried again for a while,
    and it is looked twice whether nothing is there.
    """
    clock, failures, empty = LoopClock(0), list[str](), 0
    deadline = clock.monotonic() + _SWEEP_SECONDS
    while empty < _LOOKS and clock.monotonic() < deadline:
        found = await services.ListPodSandbox(cri.ListPodSandboxRequest(), timeout=_CALL_SECONDS)
        ours = [each.id for each in found.items if scope_of(each.metadata.namespace)]
        empty = 0 if ours else empty + 1
        failures = [
            said for said in await asyncio.gather(*(_removed(services, each) for each in ours)) if said
        ]
        if failures or not ours:
            await clock.sleep(_PAUSE_SECONDS)
    return failures


async def _removed(services: Services, sandbox: str) -> str:
    try:
        await services.StopPodSandbox(
            cri.StopPodSandboxRequest(pod_sandbox_id=sandbox), timeout=_CALL_SECONDS
        )
        await services.RemovePodSandbox(
            cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox), timeout=_CALL_SECONDS
        )
    except grpc.aio.AioRpcError as error:
        return f"sandbox {sandbox}: {error.code().name}: {error.details()}"
    return ""
