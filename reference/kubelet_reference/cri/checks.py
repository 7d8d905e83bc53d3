"""What a reply of the runtime must hold before the kubelet believes it (CRI-34).

Each check raises `BadReply` naming the field that is missing. A field that is not checked here may be empty.
"""

from operator import attrgetter

from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message

from kubelet_reference.cri.errors import BadReply

API_VERSION = "0.1.0"
"""The only version of the kubelet's side of the CRI (CRI-01)."""
RUNTIME_READY, NETWORK_READY = "RuntimeReady", "NetworkReady"


def required(value: str, what: str) -> str:
    """The value, which must not be empty."""
    if not value:
        raise BadReply(f"{what} is not set")
    return value


def _check(reply: Message, *fields: str) -> None:
    """None of these fields is empty."""
    for field in fields:
        required(attrgetter(field)(reply), f"{reply.DESCRIPTOR.name}.{field}")


def check_version(reply: cri.VersionResponse) -> None:
    """All four fields are set, and the version is the one the kubelet speaks (CRI-01)."""
    _check(reply, "runtime_name", "runtime_version", "runtime_api_version")
    if reply.version != API_VERSION:
        raise BadReply(f"expected runtime version {API_VERSION}, got {reply.version!r}")


def check_runtime_status(status: cri.RuntimeStatus) -> None:
    """Both conditions are reported, whatever they say (CRI-02)."""
    missing = {RUNTIME_READY, NETWORK_READY} - {condition.type for condition in status.conditions}
    if missing:
        raise BadReply(f"{' and '.join(sorted(missing))} missing in the runtime status")


def check_sandbox_status(status: cri.PodSandboxStatus) -> None:
    """A sandbox has an id, the identity of its pod, and the time it was made."""
    _check(status, "id", "metadata.name", "metadata.namespace", "metadata.uid", "created_at")


def check_container_status(status: cri.ContainerStatus) -> None:
    """A container has an id, a name, the time it was made, and an image."""
    _check(status, "id", "metadata.name", "created_at", "image.image", "image_ref")


def check_image(image: cri.Image) -> None:
    """An image has an id and a size."""
    _check(image, "id", "size")
