"""Traces of nodes under pressure: short of memory or disk, full, or about to go down."""

from collections.abc import Sequence
from typing import Any

from outside_world import event
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder

CRITICAL = 2_000_000_000
MARK = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
ALLOCATABLE = {"cpu": "1", "memory": "1Gi", "pods": "110"}
LOW = "The node was low on resource: memory."


class Runs:
    """A pod that runs, with what the runtime has of it."""

    def __init__(self, s: TraceBuilder, pod: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle) -> None:
        self.s = s
        self.pod = pod
        self.sandbox = sandbox
        self.c1 = c1

    def fails(self, reason: str, phase: str = "Failed", *, mark: bool = True, **status: Any) -> None:
        """Its terminal status is written."""
        conditions = [MARK] if mark else []
        ended = {"name": "c1", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
        reported = {"message": LOW, "containerStatuses": [ended], **status}
        self.s.status(self.pod, phase, reason=reason, conditions=conditions, **reported)


def configured_node(kubernetes: str = "1.32", **configuration: Any) -> TraceBuilder:
    """The trace of a node of which one knows how its kubelet is configured, and what it has."""
    return TraceBuilder(kubernetes, configuration=configuration, allocatable=ALLOCATABLE)


def run(
    s: TraceBuilder, name: str = "web", *, containers: Sequence[Any] = (), grace: int = 30, **spec: Any
) -> Runs:
    """A pod that has run for a second."""
    given = list(containers) or [{"name": "c1", "image": "img:1"}]
    web = s.pod(name, containers=given, terminationGracePeriodSeconds=grace, **spec)
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(1)
    return Runs(s, web, sandbox, c1)


def press(s: TraceBuilder, available: str = "50Mi", signal: str = "memory.available") -> None:
    """The machine runs short of something."""
    s.record("fault", what=f"{signal} is low", values={signal: available})


def use(s: TraceBuilder, web: Runs, **amounts: str) -> None:
    """A pod uses so much."""
    values = {name.replace("volume_", "volume ").replace("_", "-"): text for name, text in amounts.items()}
    s.record("fault", what="a pod uses more", uid=web.pod.uid, values=values)


def evict(s: TraceBuilder, web: Runs, reason: str = "Evicted", after: float = 5) -> None:
    """The kubelet tells that it evicts the pod, or preempts it."""
    s.wait(after)
    event(s, web.pod, reason, kind="Warning", message=LOW)


def stop(s: TraceBuilder, web: Runs, timeout: int = 2, *, takes: float = 0.1) -> None:
    """The pod is stopped."""
    s.stop(web.c1, timeout, takes=takes)
    s.stop_sandbox(web.sandbox)


def shut_down(s: TraceBuilder) -> None:
    """The shutdown of the machine is announced."""
    s.wait(10).record("fault", what="the node shuts down")
