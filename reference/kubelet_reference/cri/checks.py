"""What a reply of the runtime must hold before the kubelet believes it (CRI-34).

Each check raises `BadReply` naming the field that is missing. A field that is not checked here may be empty.
"""

from cri_api.v1 import api_pb2 as cri

from kubelet_reference.cri.errors import BadReply

API_VERSION = "0.1.0"
"""The only version of the kubelet's side of the CRI (CRI-01)."""
RUNTIME_READY, NETWORK_READY = "RuntimeReady", "NetworkReady"


def required(value: str, what: str) -> str:
    """The value, which must not be empty."""
    if not value:
        raise BadReply(f"{what} is not set")
    return value


def check_version(reply: cri.VersionResponse) -> None:
    """All four fields are set, and the version is the one the kubelet speaks (CRI-01)."""
    required(reply.runtime_name, "RuntimeName")
    required(reply.runtime_version, "RuntimeVersion")
    required(reply.runtime_api_version, "RuntimeApiVersion")
    if reply.version != API_VERSION:
        raise BadReply(f"expected runtime version {API_VERSION}, got {reply.version!r}")


def check_runtime_status(status: cri.RuntimeStatus) -> None:
    """Both conditions are reported, whatever they say (CRI-02)."""
    reported = {condition.type for condition in status.conditions}
    missing = [name for name in (RUNTIME_READY, NETWORK_READY) if name not in reported]
    if missing:
        raise BadReply(f"{' and '.join(missing)} missing in the runtime status")


def check_sandbox_status(status: cri.PodSandboxStatus) -> None:
    """A sandbox has an id, the identity of its pod, and the time it was made."""
    required(status.id, "status.Id")
    required(status.metadata.name, "status.Metadata.Name")
    required(status.metadata.namespace, "status.Metadata.Namespace")
    required(status.metadata.uid, "status.Metadata.Uid")
    _check_created(status.created_at)


def check_container_status(status: cri.ContainerStatus) -> None:
    """A container has an id, a name, the time it was made, and an image."""
    required(status.id, "status.Id")
    required(status.metadata.name, "status.Metadata.Name")
    _check_created(status.created_at)
    required(status.image.image, "status.Image")
    required(status.image_ref, "status.ImageRef")


def check_image(image: cri.Image, name: str) -> None:
    """An image has an id and a size."""
    if not image.id or not image.size:
        raise BadReply(f'Id or size of image "{name}" is not set')


def _check_created(created_at: int) -> None:
    if created_at <= 0:
        raise BadReply("status.CreatedAt is not set")
