"""What a call is about, for faults that strike some calls only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message

from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.records import POD_UID


@dataclass(frozen=True, slots=True)
class Subject:
    """What a call is about; what is not known, or does not apply, is empty."""

    pod_uid: str = ""
    pod_name: str = ""
    namespace: str = ""
    container: str = ""
    sandbox_id: str = ""
    container_id: str = ""
    image: str = ""


def about(**fields: str) -> Callable[[Subject], bool]:
    """A filter: a subject that has all these values, such as `about(pod_name="web", container="c1")`."""
    unknown = fields.keys() - set(Subject.__dataclass_fields__)
    if unknown:
        raise TypeError(f"a subject has no {', '.join(sorted(unknown))}")
    return lambda subject: all(getattr(subject, name) == value for name, value in fields.items())


def subject_of(core: RuntimeCore, request: Message) -> Subject:
    """What a request is about, as far as the runtime can tell."""
    match request:
        case cri.RunPodSandboxRequest():
            return _of_pod(request.config.metadata)
        case cri.CreateContainerRequest():
            return _of_sandbox(core, request.pod_sandbox_id, request.config.metadata.name)
        case cri.PullImageRequest():
            return _of_pod(request.sandbox_config.metadata, image=request.image.image)
        case cri.ImageStatusRequest() | cri.RemoveImageRequest():
            return Subject(image=request.image.image)
        case cri.ListPodSandboxRequest() | cri.ListContainersRequest():
            return Subject(pod_uid=request.filter.label_selector.get(POD_UID, ""))
        case _:
            return _by_id(core, request)


def _by_id(core: RuntimeCore, request: Message) -> Subject:
    fields = request.DESCRIPTOR.fields_by_name
    if "container_id" in fields:
        container_id: str = getattr(request, "container_id", "")
        container = core.store.containers.get(container_id)
        if container is None:
            return Subject(container_id=container_id)
        return _of_sandbox(core, container.sandbox.id, container.name, container_id)
    if "pod_sandbox_id" in fields:
        return _of_sandbox(core, getattr(request, "pod_sandbox_id", ""))
    return Subject()


def _of_pod(metadata: cri.PodSandboxMetadata, *, image: str = "") -> Subject:
    return Subject(metadata.uid, metadata.name, metadata.namespace, image=image)


def _of_sandbox(core: RuntimeCore, sandbox_id: str, container: str = "", container_id: str = "") -> Subject:
    sandbox = core.store.sandboxes.get(sandbox_id)
    if sandbox is None:
        return Subject(container=container, sandbox_id=sandbox_id, container_id=container_id)
    metadata = sandbox.config.metadata
    return Subject(metadata.uid, metadata.name, metadata.namespace, container, sandbox_id, container_id)
