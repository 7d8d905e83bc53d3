"""Doubles for what observes the runtime: lists that a test writes, an error, and pods with a probe."""

from typing import Any

import grpc
import msgspec
from decisions_bench import a_record
from lightkube.models.core_v1 import Pod, PodStatus
from msgspec.structs import replace

from kubelet_reference.api.records import ContainerState, ListedPod, ListedRecord, PodRecords, SandboxRecord
from kubelet_reference.cri.runtime_reader import RuntimeReader
from kubelet_reference.server.host.clock import LoopClock

START_NS = 1_767_225_600_000_000_000
"""2026-01-01T00:00:00Z."""


def clock() -> LoopClock:
    """The loop's time, beginning at the new year."""
    return LoopClock(START_NS)


def failure(code: grpc.StatusCode = grpc.StatusCode.INTERNAL, text: str = "broken") -> grpc.aio.AioRpcError:
    """An error of the runtime."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=text)


def listed(uid: str, *, sandbox: str = "RUNNING", **containers: str) -> ListedPod:
    """A pod as lists show it: the state of its sandbox ("" for none) and of each container by id."""
    found = [
        ListedRecord(key, key, ContainerState(state.lower()), created_at=1)
        for key, state in containers.items()
    ]
    sandboxes = (
        [ListedRecord(f"s-{uid}", uid, ContainerState(sandbox.lower()), created_at=1)] if sandbox else []
    )
    return ListedPod(uid, f"pod-{uid}", "default", tuple(sandboxes), tuple(found))


def records(pod: ListedPod, *, ips: tuple[str, ...] = ()) -> PodRecords:
    """The records that fit the lists."""
    return PodRecords(
        pod.uid,
        pod.name,
        pod.namespace,
        ips=ips,
        sandboxes=tuple(
            SandboxRecord(
                s.id, 0, s.created_at, ready=s.state is ContainerState.RUNNING, host_network=False, ips=()
            )
            for s in pod.sandboxes
        ),
        containers=tuple(
            replace(a_record(c.name, c.state), id=c.id, hash="", created_at=c.created_at)
            for c in pod.containers
        ),
    )


class ScriptedRuntime(RuntimeReader):
    """A runtime whose lists and faults the test sets; it notes every call."""

    def __init__(self, *pods: ListedPod) -> None:
        self.pods = pods
        self.list_error: grpc.RpcError | None = None
        self.errors: dict[str, grpc.RpcError] = {}
        self.ips: dict[str, tuple[str, ...]] = {}
        self.calls: list[str] = []

    async def list_pods(self) -> tuple[ListedPod, ...]:
        """The pods as they stand, the same object each time."""
        self.calls.append("list")
        if self.list_error:
            raise self.list_error
        return self.pods

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        """The records that fit the lists."""
        self.calls.append(uid)
        if uid in self.errors:
            raise self.errors[uid]
        found = next((pod for pod in self.pods if pod.uid == uid), ListedPod(uid, name, namespace, (), ()))
        return records(found, ips=self.ips.get(uid, ()))


def probed_pod(policy: str = "Always", *, deleted: bool = False, uid: str = "u", **probes: Any) -> Pod:
    """A pod with one container; `probes` are fields of its probes: liveness={"periodSeconds": 3}."""
    container: dict[str, Any] = {"name": "web", "image": "img:1"}
    for kind, fields in probes.items():
        container[f"{kind}Probe"] = {"exec": {"command": [kind]}, "timeoutSeconds": 1} | fields
    metadata: dict[str, Any] = {"name": "a", "namespace": "default", "uid": uid}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.convert(
        {"metadata": metadata, "spec": {"restartPolicy": policy, "containers": [container]}}, Pod
    )


def shown(
    container_id: str = "c1", *, state: str = "running", phase: str = "Running", **fields: Any
) -> PodStatus:
    """A status that shows the container of `probed_pod`; "" is a container without an id."""
    states: dict[str, Any] = {
        "running": {"startedAt": "2026-01-01T00:00:00Z"},
        "terminated": {"exitCode": 0},
        "waiting": {},
    }
    container = {
        "name": "web",
        "image": "img:1",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "containerID": f"fake://{container_id}" if container_id else "",
        "state": {state: states[state]},
    }
    return msgspec.convert({"phase": phase, "containerStatuses": [container | fields]}, PodStatus)
