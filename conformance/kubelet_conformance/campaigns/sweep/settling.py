"""Whether a node settles after a fault: what is desired runs or has ended, and nothing else is there."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from kubelet_conformance.campaigns.histories.convergence import Convergence, whom
from kubelet_conformance.contract.applicability import parse_version
from kubelet_conformance.node import Node, PodHandle
from kubelet_conformance.trace.format.recorder import Item

Json = dict[str, Any]
SETTLE_SECONDS = 420.0
"""How long a node may take to settle: the longest back-off, or a relist where container events are used."""
_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class _Desired:
    """A pod that was desired in a play, as the records of the play show it."""

    name: str
    manifest: Json
    static: bool
    there: bool
    handle: PodHandle


async def not_settled(
    node: Node, kubernetes: str, excused: Collection[str] = (), *, late_call: str = "", mirrors: bool = True
) -> list[str]:
    """Wait until the node has settled, but for what is excused; what has not, in words.

    Static pods have `mirrors` unless there is no API server.

    A container may run twice where its `late_call` made or started it long after the kubelet had given up on
    it: only the newest instance is looked after (kuberuntime_manager.go computePodActions), and the next one
    cannot be made where its number is in use. A sandbox that comes late may come after the end of its pod,
    and then stays until the pod is deleted: a worker that has finished takes nothing up (pod_workers.go
    UpdatePod).
    """
    doubles = late_call in {"CreateContainer", "StartContainer"}
    if not node.kubelet.running:
        await node.kubelet.start()
    is_missed = late_call == "RunPodSandbox"
    desired, version = list(_desired(node)), parse_version(kubernetes)
    convergence = Convergence(node, desired, version, missed=is_missed, mirrors=mirrors)
    left: list[str] = []
    excused_whom = {whom(each) for each in excused}

    def settled() -> bool:
        found = [*convergence.found(starting=True), *_twice(node, doubles=doubles)]
        unseen = set(_unseen(node)) if doubles else ()
        left[:] = [each for each in found if whom(each) not in excused_whom and each not in unseen]
        return not left

    await node.reaches(settled, min(SETTLE_SECONDS, node.target.wait_seconds_max))
    return left


def _desired(node: Node) -> Iterator[_Desired]:
    """The latest pod of each name and source, whether it is still desired or not."""
    latest: dict[tuple[str, str, str], tuple[Json, bool]] = {}
    for seen in node.target.recorder.records:
        if not (isinstance(seen, Item) and seen.kind == "pod"):
            continue
        fields = seen.fields
        if fields["op"] == "set":
            manifest: Json = fields["pod"]
            metadata: Json = manifest["metadata"]
            if _MIRROR in (metadata.get("annotations") or {}):
                continue
            key = fields["source"], metadata.get("namespace", "default"), metadata["name"]
            latest[key] = manifest, "deletionTimestamp" not in metadata
        else:
            key = fields["source"], fields["namespace"], fields["name"]
            if key in latest:
                latest[key] = latest[key][0], False
    for (source, namespace, name), (manifest, there) in latest.items():
        spec: Json = {"restartPolicy": "Always", "containers": [], **manifest["spec"]}
        static = source != "api"
        uid = "" if static else manifest["metadata"]["uid"]
        handle = (
            node.static(name, namespace, source) if static else PodHandle(node, namespace, name, source, uid)
        )
        yield _Desired(name, {**manifest, "spec": spec}, static, there, handle)


def _unseen(node: Node) -> Iterator[str]:
    """What is complained of a container that runs while a newer one of its name cannot be made.

    Or that was made long after the end of the one before was reported for good.
    """
    for each in node.runtime.containers():
        if each.state == "RUNNING":
            yield f"{each.name} of {each.sandbox.pod_name} is waiting CreateContainerError"
            yield f"{each.name} of {each.sandbox.pod_name} is terminated Completed, and runs"


def _twice(node: Node, *, doubles: bool) -> Iterator[str]:
    """What runs more than once at a time."""
    running = Counter(
        (each.name, each.sandbox.pod_name, each.sandbox.pod_uid)
        for each in node.runtime.containers()
        if each.state == "RUNNING" and not doubles
    )
    for (name, pod, _), count in running.items():
        if count > 1:
            yield f"{name} of {pod} runs {count} times at once"
    ready = Counter((each.pod_name, each.pod_uid) for each in node.runtime.sandboxes() if each.ready)
    for (pod, _), count in ready.items():
        if count > 1:
            yield f"{pod} has {count} ready sandboxes"
