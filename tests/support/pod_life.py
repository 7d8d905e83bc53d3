"""One pod's life as requests to a runtime, for tests that make the calls themselves."""

from importlib import import_module
from typing import Any

from cri_api.v1 import api_pb2 as cri

#: The generated stubs, which come without types.
_STUBS: Any = import_module("cri_api.v1.api_pb2_grpc")

#: The pod in every request.
POD = cri.PodSandboxConfig(
    metadata=cri.PodSandboxMetadata(name="web", uid="1", namespace="default"), labels={"app": "web"}
)


def sandbox() -> cri.RunPodSandboxRequest:
    """Make the pod's sandbox."""
    return cri.RunPodSandboxRequest(config=POD)


def container(sandbox_id: str, *command: str) -> cri.CreateContainerRequest:
    """Make a container in it, with this script."""
    config = cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name="app"), image=cri.ImageSpec(image="img:1"), command=command
    )
    return cri.CreateContainerRequest(pod_sandbox_id=sandbox_id, config=config, sandbox_config=POD)


def stubs(channel: Any) -> tuple[Any, Any]:
    """A client of the runtime service and one of the image service on a channel of either kind."""
    return _STUBS.RuntimeServiceStub(channel), _STUBS.ImageServiceStub(channel)
