"""Write a trace step by step, then let a contract judge it.

    s = TraceBuilder()
    web = s.pod("web", containers=[{"name": "c1", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox, "c1")
    s.wait(5).exited(c1, code=1)
    assert s.judge("RESTART-05").verdict is Verdict.BROKEN

Times are seconds. Every call takes one millisecond by default. A call with `error="INTERNAL"`
is answered by that error; with `takes=3` its reply comes 3 s later.
"""

import io
import json
from dataclasses import dataclass
from typing import Any, Self
from zlib import crc32

from kubelet_conformance.contract.applicability import parse_version
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.judge import Judge
from kubelet_conformance.contract.verdicts import Outcome
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.world.world import World

FULL_CHANNELS = {"cri": "full", "pods": "sent", "api": "full", "events": "full"}
NOON = 1_750_000_000
BROKEN_CLAUSES: set[tuple[str, str]] = set()
"""The clauses, by contract and name, that traces of this process have broken."""


@dataclass
class PodHandle:
    """A pod of the trace."""

    manifest: dict[str, Any]
    source: str

    @property
    def uid(self) -> str:
        """Its UID."""
        uid: str = self.manifest["metadata"]["uid"]
        return uid

    @property
    def name(self) -> str:
        """Its name."""
        name: str = self.manifest["metadata"]["name"]
        return name

    @property
    def namespace(self) -> str:
        """Its namespace."""
        namespace: str = self.manifest["metadata"]["namespace"]
        return namespace


@dataclass
class SandboxHandle:
    """A sandbox of the trace; its config is what RunPodSandbox was asked."""

    id: str
    config: dict[str, Any]
    created_at: int
    state: str = "SANDBOX_READY"


@dataclass
class ContainerHandle:
    """A container of the trace; its config is what CreateContainer was asked."""

    id: str
    name: str
    sandbox: SandboxHandle
    config: dict[str, Any]
    created_at: int


class TraceBuilder:
    """A trace that grows line by line."""

    def __init__(self, kubernetes: str | None = "1.32", *, from_start: bool = True, **header: Any) -> None:
        first: dict[str, Any] = {"trace": 1, "clock": "virtual", "channels": FULL_CHANNELS, "node": "node-1"}
        first |= {"from_start": from_start, **({"kubernetes": kubernetes} if kubernetes else {}), **header}
        self.header = first
        self.records: list[dict[str, Any]] = []
        self.now = 0.0
        self._ids = 0
        if from_start:
            self.record("kubelet", op="started")
            self.call("ListPodSandbox", {}, {})
            self.call("ListContainers", {}, {})

    def record(self, kind: str, **fields: Any) -> int:
        """Any record, as it stands; returns its seq."""
        seq = len(self.records) + 1
        self.records.append({"seq": seq, "t": round(self.now, 4), "kind": kind, **fields})
        return seq

    def wait(self, seconds: float) -> Self:
        """Let time pass."""
        self.now += seconds
        return self

    def new_id(self, word: str) -> str:
        """An id nobody has used."""
        self._ids += 1
        return f"{word}-{self._ids:04}"

    def begin(self, rpc: str, request: dict[str, Any]) -> str:
        """The begin of a call; returns its id for `end`."""
        call_id = self.new_id("call")
        self.record("call", rpc=rpc, id=call_id, request=request)
        return call_id

    def end(
        self, rpc: str, call_id: str, response: dict[str, Any] | None = None, error: str | None = None
    ) -> None:
        """The reply to a call."""
        if error is not None:
            self.record(
                "reply", rpc=rpc, id=call_id, error={"code": error, "message": "injected"}, effect=False
            )
        else:
            self.record("reply", rpc=rpc, id=call_id, response=response or {})

    def call(
        self,
        rpc: str,
        request: dict[str, Any],
        response: dict[str, Any] | None = None,
        *,
        error: str | None = None,
        takes: float = 0.001,
    ) -> None:
        """A whole call."""
        call_id = self.begin(rpc, request)
        self.wait(takes)
        self.end(rpc, call_id, response, error)

    def pod(
        self, name: str = "web", *, source: str = "api", uid: str | None = None, **spec: Any
    ) -> PodHandle:
        """A pod is wanted. `spec` is pod.spec; one container c1 of img:1 by default."""
        spec.setdefault("containers", [{"name": "c1", "image": "img:1"}])
        metadata = {"name": name, "namespace": "default", "uid": uid or self.new_id(f"uid-{name}")}
        handle = PodHandle({"metadata": metadata, "spec": spec}, source)
        self.set(handle)
        return handle

    def set(self, pod: PodHandle) -> None:
        """Send the pod's manifest as it is now."""
        self.record("pod", op="set", source=pod.source, pod=json.loads(json.dumps(pod.manifest)))

    def delete(self, pod: PodHandle, grace: int = 30) -> None:
        """Delete the pod through the API: deletionTimestamp and grace period."""
        pod.manifest["metadata"] |= {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": grace,
        }
        self.set(pod)

    def unset(self, pod: PodHandle) -> None:
        """The pod is gone from its source."""
        self.record(
            "pod", op="remove", source=pod.source, namespace=pod.namespace, name=pod.name, uid=pod.uid
        )

    def deleted(self, pod: PodHandle) -> None:
        """The pod object was finally removed."""
        self.record("deleted", uid=pod.uid)

    def sandbox_config(self, pod: PodHandle, attempt: int = 0, **more: Any) -> dict[str, Any]:
        """What a right kubelet asks for this pod's sandbox; `more` replaces fields."""
        labels = {
            "io.kubernetes.pod.name": pod.name,
            "io.kubernetes.pod.namespace": pod.namespace,
            "io.kubernetes.pod.uid": pod.uid,
            **pod.manifest["metadata"].get("labels", {}),
        }
        metadata = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
        return {
            "metadata": metadata | ({"attempt": attempt} if attempt else {}),
            "hostname": pod.name,
            "log_directory": f"/var/log/pods/{pod.namespace}_{pod.name}_{pod.uid}",
            "labels": labels,
            "linux": {"security_context": {"namespace_options": {"pid": "CONTAINER"}}},
        } | more

    def run_sandbox(
        self,
        pod: PodHandle,
        attempt: int = 0,
        *,
        config: dict[str, Any] | None = None,
        error: str | None = None,
        read: bool = True,
        takes: float = 0.001,
    ) -> SandboxHandle:
        """RunPodSandbox and, as a right kubelet does, PodSandboxStatus after it (unless `read` is False)."""
        config = config or self.sandbox_config(pod, attempt)
        self.wait(0.001)
        handle = SandboxHandle(self.new_id("sandbox"), config, int((NOON + self.now) * 1e9))
        self.call(
            "RunPodSandbox", {"config": config}, {"pod_sandbox_id": handle.id}, error=error, takes=takes
        )
        if error is None and read:
            self.sandbox_status(handle)
        return handle

    def sandbox_status(self, sandbox: SandboxHandle, **fields: Any) -> None:
        """PodSandboxStatus, answered with the sandbox's state; `fields` replaces fields of the status."""
        record = {
            "id": sandbox.id,
            "metadata": sandbox.config["metadata"],
            "state": sandbox.state,
            "created_at": str(sandbox.created_at),
            "network": {"ip": "10.88.0.2"},
            "labels": sandbox.config.get("labels", {}),
            "annotations": sandbox.config.get("annotations", {}),
        } | fields
        self.call("PodSandboxStatus", {"pod_sandbox_id": sandbox.id}, {"status": record})

    def container_config(self, pod: PodHandle, name: str, attempt: int = 0, **more: Any) -> dict[str, Any]:
        """What a right kubelet asks for this container; `more` replaces fields."""
        spec = pod.manifest["spec"]
        lists = ("containers", "initContainers", "ephemeralContainers")
        image = next((c["image"] for key in lists for c in spec.get(key, []) if c["name"] == name), "img:1")
        labels = {
            "io.kubernetes.pod.name": pod.name,
            "io.kubernetes.pod.namespace": pod.namespace,
            "io.kubernetes.pod.uid": pod.uid,
            "io.kubernetes.container.name": name,
        }
        annotations = {
            "io.kubernetes.container.hash": f"{crc32(image.encode()):08x}",
            "io.kubernetes.container.restartCount": str(attempt),
            "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
            "io.kubernetes.container.terminationMessagePolicy": "File",
            "io.kubernetes.pod.terminationGracePeriod": str(spec.get("terminationGracePeriodSeconds", 30)),
        }
        return {
            "metadata": {"name": name} | ({"attempt": attempt} if attempt else {}),
            "image": {"image": f"sha256:{image}", "user_specified_image": image},
            "labels": labels,
            "annotations": annotations,
            "log_path": f"{name}/{attempt}.log",
        } | more

    def create(
        self,
        pod: PodHandle,
        sandbox: SandboxHandle,
        name: str = "c1",
        attempt: int = 0,
        *,
        config: dict[str, Any] | None = None,
        error: str | None = None,
    ) -> ContainerHandle:
        """CreateContainer."""
        config = config or self.container_config(pod, name, attempt)
        self.wait(0.001)
        request = {"pod_sandbox_id": sandbox.id, "config": config, "sandbox_config": sandbox.config}
        handle = ContainerHandle(
            self.new_id("container"), name, sandbox, config, int((NOON + self.now) * 1e9)
        )
        self.call("CreateContainer", request, {"container_id": handle.id}, error=error)
        return handle

    def start(self, container: ContainerHandle, *, error: str | None = None) -> None:
        """StartContainer."""
        self.call("StartContainer", {"container_id": container.id}, {}, error=error)

    def run_container(
        self, pod: PodHandle, sandbox: SandboxHandle, name: str = "c1", attempt: int = 0
    ) -> ContainerHandle:
        """ImageStatus, CreateContainer, StartContainer, and the status the kubelet reads of it."""
        spec = self.container_config(pod, name)["image"]["user_specified_image"]
        image = {"id": f"sha256:{spec}", "repo_tags": [spec], "size": "1"}
        self.call("ImageStatus", {"image": {"image": spec}}, {"image": image})
        handle = self.create(pod, sandbox, name, attempt)
        self.start(handle)
        self.container_status(handle, state="CONTAINER_RUNNING")
        return handle

    def container_status(self, container: ContainerHandle, *, state: str, **fields: Any) -> None:
        """ContainerStatus, answered with this state; `fields` replaces fields of the status."""
        image = container.config["image"]
        record = {
            "id": container.id,
            "metadata": container.config["metadata"],
            "state": state,
            "created_at": str(container.created_at),
            "started_at": str(container.created_at + 1_000_000),
            "image": image,
            "image_ref": image["image"],
            "labels": container.config["labels"],
            "annotations": container.config["annotations"],
        } | fields
        self.call("ContainerStatus", {"container_id": container.id}, {"status": record})

    def exited(self, container: ContainerHandle, code: int = 0, *, seen: bool = True) -> None:
        """The container's process ends by itself; the kubelet reads it unless `seen` is False."""
        ids = {"container_id": container.id, "sandbox_id": container.sandbox.id, "name": container.name}
        self.record("runtime", op="exited", exit_code=code, **ids)
        if seen:
            self.wait(0.5)
            at = str(int((NOON + self.now) * 1e9))
            self.container_status(container, state="CONTAINER_EXITED", exit_code=code, finished_at=at)

    def stop(
        self,
        container: ContainerHandle,
        timeout: int = 30,
        *,
        code: int = 0,
        error: str | None = None,
        takes: float = 0.01,
    ) -> None:
        """StopContainer; the process ends with `code` just before the reply."""
        call_id = self.begin("StopContainer", {"container_id": container.id, "timeout": str(timeout)})
        self.wait(takes)
        if error is None:
            self.exited(container, code, seen=False)
        self.end("StopContainer", call_id, {}, error)

    def stop_sandbox(self, sandbox: SandboxHandle, *, error: str | None = None) -> None:
        """StopPodSandbox."""
        self.call("StopPodSandbox", {"pod_sandbox_id": sandbox.id}, {}, error=error)
        if error is None:
            sandbox.state = "SANDBOX_NOTREADY"

    def sandbox_died(self, sandbox: SandboxHandle) -> None:
        """The sandbox dies by itself; the kubelet reads it."""
        sandbox.state = "SANDBOX_NOTREADY"
        self.record("runtime", op="sandbox-died", sandbox_id=sandbox.id)
        self.wait(0.5).sandbox_status(sandbox)

    def remove(self, container: ContainerHandle) -> None:
        """RemoveContainer."""
        self.call("RemoveContainer", {"container_id": container.id}, {})

    def status(self, pod: PodHandle, phase: str = "Running", **status: Any) -> None:
        """A status as the API server stored it."""
        ids = {"uid": pod.uid, "namespace": pod.namespace, "name": pod.name}
        self.record("status", status={"phase": phase, **status}, **ids)

    def text(self) -> bytes:
        """The trace file, with an `end` one hour after the last record unless the trace has one."""
        records = list(self.records)
        if not records or records[-1]["kind"] != "end":
            records.append({"seq": len(records) + 1, "t": round(self.now, 4) + 3600, "kind": "end"})
        lines = [self.header, *records]
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def stop_here(self) -> None:
        """End the observation now: what is still owed is pending."""
        self.record("end")

    def judge(self, contract_id: str) -> Outcome:
        """The outcome of one contract on this trace."""
        outcome = self.judge_with(every_contract()[contract_id])
        BROKEN_CLAUSES.update((contract_id, clause) for clause, _ in outcome.broken_clauses)
        return outcome

    def world(self) -> World:
        """What a judge knows of the node when the trace is over."""
        with Reader("trace.jsonl", io.BytesIO(self.text())) as reader:
            judge = Judge("trace.jsonl", reader.header, [], None)
            for record in reader:
                judge.feed(record)
            return judge.world

    def judge_with(self, contract: Contract) -> Outcome:
        """The outcome of a contract that is perhaps not in the catalogue's modules."""
        version = self.header.get("kubernetes")
        with Reader("trace.jsonl", io.BytesIO(self.text())) as reader:
            judge = Judge(
                "trace.jsonl", reader.header, [contract], parse_version(version) if version else None
            )
            for record in reader:
                judge.feed(record)
            return judge.outcomes()[contract.id]
