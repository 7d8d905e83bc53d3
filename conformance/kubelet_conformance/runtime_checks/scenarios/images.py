"""Images: absent, pulled, removed."""

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.scenario import runtime_scenario
from kubelet_conformance.targets.controls import NotPossibleError

_PULL_SECONDS = 20.0
_NOT_HERE = "it does not pull from a registry on loopback over plain HTTP"


def _spec(name: str) -> cri.ImageSpec:
    return cri.ImageSpec(image=name)


async def _status(runtime: Runtime, name: str) -> cri.Image | None:
    """What the runtime reports of an image; None if it is absent."""
    reply = await runtime.call("ImageStatus", cri.ImageStatusRequest(image=_spec(name)))
    return reply.image if reply.HasField("image") else None


async def _pulled(runtime: Runtime, name: str) -> None:
    """Pull an image that the registry has."""
    try:
        await runtime.call("PullImage", cri.PullImageRequest(image=_spec(name)), timeout=_PULL_SECONDS)
    except grpc.RpcError as error:
        said: str = getattr(error, "details", str)() or ""
        raise NotPossibleError(f"{_NOT_HERE} ({said})") from None
    if not runtime.target.registry.was_asked:
        raise NotPossibleError(_NOT_HERE)


@runtime_scenario("CRI-23")
async def an_absent_image_is_no_error(runtime: Runtime) -> None:
    """Ask for an image that is nowhere, and for one that is there."""
    await runtime.attempt("ImageStatus", cri.ImageStatusRequest(image=_spec(runtime.target.registry.absent)))
    await _status(runtime, runtime.target.image)


@runtime_scenario("CRI-24", "CRI-25", needs=("registry",), alone=True)
async def an_image_goes_with_all_its_tags(runtime: Runtime) -> None:
    """Pull an image by two tags, remove it by one of them, and look for it; then remove it again."""
    first, second = await runtime.target.registry.names()
    try:
        for name in (first, second):
            await _pulled(runtime, name)
            image = await _status(runtime, name)
    finally:
        await runtime.attempt("RemoveImage", cri.RemoveImageRequest(image=_spec(first)))
    gone = [first, second, *([image.id] if image else [])]
    for name in gone:
        await _status(runtime, name)
        await runtime.call("ListImages", cri.ListImagesRequest(filter=cri.ImageFilter(image=_spec(name))))
    for name in gone:
        await runtime.attempt("RemoveImage", cri.RemoveImageRequest(image=_spec(name)))


@runtime_scenario("CRI-40", needs=("registry",), alone=True)
async def an_absent_registry_is_reported_as_such(runtime: Runtime) -> None:
    """Pull an image while the registry serves nothing."""
    first, _ = await runtime.target.registry.names()
    runtime.set_registry_away(away=True)
    try:
        request = cri.PullImageRequest(image=_spec(first))
        await runtime.attempt("PullImage", request, timeout=_PULL_SECONDS)
        if not runtime.target.registry.was_asked:
            raise NotPossibleError(_NOT_HERE)
    finally:
        runtime.set_registry_away(away=False)
