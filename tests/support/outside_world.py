"""What happens around a kubelet, for traces: faults, the runtime's Status, its restarts, its own writes."""

from typing import Any

from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder

NODE = "node-1"
HASH = "kubernetes.io/config.hash"
SOURCE = "kubernetes.io/config.source"
SEEN = "kubernetes.io/config.seen"


def tell_status(s: TraceBuilder, *, runtime: bool = True, network: bool = True) -> None:
    """The kubelet asks the runtime for its Status."""
    conditions = [{"type": "RuntimeReady", "status": runtime}, {"type": "NetworkReady", "status": network}]
    s.call("Status", {}, {"status": {"conditions": conditions}})


def outage(s: TraceBuilder) -> None:
    """The API server goes away."""
    s.record("fault", what="the API server is away")


def heal(s: TraceBuilder) -> None:
    """The API server is back."""
    s.record("fault", what="healed: the API server is back")


def node_gone(s: TraceBuilder) -> None:
    """The node's object is removed."""
    s.record("fault", what="the node's object is missing")


def killed(s: TraceBuilder) -> None:
    """The kubelet is killed."""
    s.record("kubelet", op="killed")


def started(s: TraceBuilder) -> None:
    """The kubelet starts again."""
    s.record("kubelet", op="started")


def event(
    s: TraceBuilder,
    pod: PodHandle,
    reason: str,
    container: str = "",
    *,
    kind: str = "Normal",
    message: str = "",
    path: str = "spec.containers",
) -> None:
    """An event about a pod, or about one of its containers."""
    field = f"{path}{{{container}}}" if container else None
    s.record("event", uid=pod.uid, type=kind, reason=reason, message=message, count=1, container=field)


def api_write(s: TraceBuilder, verb: str, uid: str = "", **fields: Any) -> None:
    """The kubelet writes to the API server about a pod."""
    s.record("api", verb=verb, resource="pods", uid=uid, **{"code": 200, **fields})


def file_pod(
    s: TraceBuilder, name: str = "web", *, uid: str = "", source: str = "file", **spec: Any
) -> PodHandle:
    """A manifest appears in the folder (or at the URL) of a node. The pod's name is the full one."""
    spec.setdefault("containers", [{"name": "c1", "image": "img:1"}])
    metadata = {"name": name, "namespace": "default", **({"uid": uid} if uid else {})}
    s.record("pod", op="set", source=source, pod={"metadata": metadata, "spec": spec})
    full = {"name": f"{name}-{NODE}", "namespace": "default", "uid": uid or s.new_id("hash")}
    return PodHandle({"metadata": full, "spec": spec}, source)


def create_mirror(s: TraceBuilder, web: PodHandle, uid: str = "mirror", **wrong: Any) -> None:
    """The kubelet creates the mirror of a static pod; `wrong` replaces hash, owners or tolerations."""
    annotations = {"kubernetes.io/config.mirror": wrong.get("hash", web.uid)}
    owners = wrong.get("owners", [{"kind": "Node", "name": NODE, "controller": True}])
    meta = {"name": web.name, "namespace": "default", "annotations": annotations, "ownerReferences": owners}
    tolerations: list[Any] = wrong.get("tolerations", [{"operator": "Exists", "effect": "NoExecute"}])
    spec: dict[str, Any] = {"tolerations": tolerations, "containers": []}
    api_write(s, "create", uid, body={"metadata": meta, "spec": spec}, code=201)


def remove_file(s: TraceBuilder, pod: PodHandle) -> None:
    """The manifest goes."""
    name = pod.name.removesuffix(f"-{NODE}")
    s.record("pod", op="remove", source=pod.source, namespace=pod.namespace, name=name)


def static_config(s: TraceBuilder, pod: PodHandle, **annotations: str) -> dict[str, Any]:
    """What a right kubelet asks for a static pod's sandbox; `annotations` replaces some."""
    found = {SOURCE: pod.source, HASH: pod.uid, SEEN: "2026-01-01T00:00:00Z"} | annotations
    return s.sandbox_config(pod, annotations=found)


def start_static(s: TraceBuilder, pod: PodHandle) -> tuple[SandboxHandle, ContainerHandle]:
    """A static pod's sandbox and its container c1."""
    sandbox = s.run_sandbox(pod, config=static_config(s, pod))
    return sandbox, s.run_container(pod, sandbox)
