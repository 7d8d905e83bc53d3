"""What a right runtime answers to readings, for traces; each answer can be made wrong."""

from typing import Any

from trace_builder import ContainerHandle, SandboxHandle, TraceBuilder

ALL: dict[str, Any] = {}


def container_record(container: ContainerHandle, state: str = "CONTAINER_RUNNING", **fields: Any) -> Any:
    """A container as ListContainers has it."""
    config = container.config
    return {
        "id": container.id,
        "pod_sandbox_id": container.sandbox.id,
        "metadata": config["metadata"],
        "image": config["image"],
        "image_ref": config["image"]["image"],
        "image_id": config["image"]["image"],
        "state": state,
        "created_at": str(container.created_at),
        "labels": config["labels"],
        "annotations": config["annotations"],
    } | fields


def sandbox_record(sandbox: SandboxHandle, **fields: Any) -> Any:
    """A sandbox as ListPodSandbox and PodSandboxStatus have it."""
    config = sandbox.config
    options = config["linux"]["security_context"]["namespace_options"]
    return {
        "id": sandbox.id,
        "metadata": config["metadata"],
        "state": sandbox.state,
        "created_at": str(sandbox.created_at),
        "network": {"ip": "10.88.0.2"},
        "linux": {"namespaces": {"options": options}},
        "labels": config["labels"],
        "annotations": config.get("annotations", {}),
    } | fields


def list_containers(s: TraceBuilder, *records: Any, asked: dict[str, Any] | None = None) -> None:
    """ListContainers, answered with these records."""
    s.call("ListContainers", {"filter": asked} if asked else {}, {"containers": list(records)})


def list_sandboxes(s: TraceBuilder, *records: Any, asked: dict[str, Any] | None = None) -> None:
    """ListPodSandbox, answered with these records."""
    s.call("ListPodSandbox", {"filter": asked} if asked else {}, {"items": list(records)})


def refuse(s: TraceBuilder, rpc: str, request: dict[str, Any], code: str, *, takes: float = 0.001) -> None:
    """A call that the runtime itself answers by an error: nothing was injected."""
    call_id = s.begin(rpc, request)
    s.wait(takes)
    s.record("reply", rpc=rpc, id=call_id, error={"code": code, "message": "no"})
