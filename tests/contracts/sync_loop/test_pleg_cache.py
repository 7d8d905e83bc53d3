"""PLEG contracts about records that go, stay or race: kept by right traces and broken by wrong ones."""

from running import running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects


def removed(s: TraceBuilder, container: ContainerHandle | None, sandbox: SandboxHandle) -> None:
    """The record of a container, or else of the sandbox, goes."""
    ids = {"sandbox_id": sandbox.id} | ({"container_id": container.id} if container else {})
    s.record("runtime", op="removed", **ids)


@detects("PLEG-07", begin=running, attempt=(0, 1))
def test_pod_without_records_begins_anew(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, attempt: int
) -> None:
    """PLEG-07: a pod of which nothing is left gets its first sandbox again."""
    s.wait(10)
    removed(s, None, sandbox)
    s.wait(1).run_sandbox(web, attempt)


@detects("PLEG-08", begin=running, waits=(True, False))
def test_blind_kubelet_begins_nothing(s: TraceBuilder, *, waits: bool) -> None:
    """PLEG-08: a pod that is wanted after three minutes without a relist waits for one."""
    s.wait(1).call("ListContainers", {"filter": {}}, {})
    s.wait(1).call("ListContainers", {"filter": {}}, error="UNAVAILABLE")
    late = s.wait(200).pod("late")
    if not waits:
        s.run_sandbox(late)
    s.wait(1).call("ListContainers", {"filter": {}}, {})


@detects("PLEG-12", begin=running, newest=(True, False))
def test_newest_record_counts(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, newest: bool
) -> None:
    """PLEG-12: a status shows the instance that was made last."""
    s.exited(c1, 1)
    again = s.run_container(web, sandbox, "c1", 1)
    shown = again if newest else c1
    s.wait(10).status(
        web, containerStatuses=[{"name": "c1", "containerID": f"fake://{shown.id}", "state": {"running": {}}}]
    )
