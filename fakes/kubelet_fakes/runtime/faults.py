"""Faults of the runtime's calls: which calls there are, what one is about, and what error it gets."""

import grpc
from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message

from kubelet_fakes.faults import Effect, Fault
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.records import POD_UID

#: The calls to a plugin of dynamic resources, which stands beside the runtime.
PLUGIN_CALLS = ("NodePrepareResources", "NodeUnprepareResources")

#: The names of all calls.
CALLS = tuple(
    sorted(
        [*PLUGIN_CALLS]
        + [one.name for service in cri.DESCRIPTOR.services_by_name.values() for one in service.methods]
    )
)

_PROBES = ("httpGet ", "tcpSocket ", "grpc ")
"""What the names of requests to servers in pods begin with."""
_ABOUT = frozenset({"uid", "name", "namespace", "container", "sandbox_id", "container_id", "image"})


def check(fault: Fault) -> None:
    """Raises `ValueError` where a fault names a call, a code or a filter that there is not."""
    call = fault.call
    if call.startswith(_PROBES):
        if fault.code:
            raise ValueError(f"a server in a pod is not reached, without a code: {fault}")
        return
    if call not in CALLS and "*" not in call:
        raise ValueError(f"no call is named {call!r}: expected * or one of {', '.join(CALLS)}")
    if fault.code and fault.code not in grpc.StatusCode.__members__:
        raise ValueError(f"gRPC has no status code {fault.code!r}")
    if fault.effect is Effect.STALE:
        raise ValueError("the runtime's answers are never stale")
    unknown = fault.where.keys() - _ABOUT
    if unknown:
        raise ValueError(f"a call is not about {', '.join(sorted(unknown))}: {', '.join(sorted(_ABOUT))}")


def error_of(fault: Fault) -> CallError:
    """What a call that it applies to raises."""
    code = grpc.StatusCode[fault.code or "UNKNOWN"]
    return CallError(code, fault.message, effect=fault.effect is not Effect.BEFORE)


def subject_of(core: RuntimeCore, request: Message) -> dict[str, str]:
    """What a request is about, as far as the runtime knows."""
    match request:
        case cri.RunPodSandboxRequest():
            return _of_pod(request.config.metadata)
        case cri.CreateContainerRequest():
            return _of_sandbox(core, request.pod_sandbox_id, container=request.config.metadata.name)
        case cri.PullImageRequest():
            return {**_of_pod(request.sandbox_config.metadata), "image": request.image.image}
        case cri.ImageStatusRequest() | cri.RemoveImageRequest():
            return {"image": request.image.image}
        case cri.ListPodSandboxRequest() | cri.ListContainersRequest():
            return {"uid": request.filter.label_selector.get(POD_UID, "")}
        case _:
            return _by_id(core, request)


def _by_id(core: RuntimeCore, request: Message) -> dict[str, str]:
    fields = request.DESCRIPTOR.fields_by_name
    if "container_id" in fields:
        container_id: str = getattr(request, "container_id", "")
        container = core.store.containers.get(container_id)
        if container is None:
            return {"container_id": container_id}
        return _of_sandbox(core, container.sandbox.id, container=container.name, container_id=container_id)
    if "pod_sandbox_id" in fields:
        return _of_sandbox(core, getattr(request, "pod_sandbox_id", ""))
    return {}


def _of_pod(metadata: cri.PodSandboxMetadata) -> dict[str, str]:
    return {"uid": metadata.uid, "name": metadata.name, "namespace": metadata.namespace}


def _of_sandbox(core: RuntimeCore, sandbox_id: str, **more: str) -> dict[str, str]:
    sandbox = core.store.sandboxes.get(sandbox_id)
    pod = {} if sandbox is None else _of_pod(sandbox.config.metadata)
    return {**pod, "sandbox_id": sandbox_id, **more}
