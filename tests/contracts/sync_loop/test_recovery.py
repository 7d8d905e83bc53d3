"""What a kubelet that starts again makes of pods, probes and mirrors: right traces and wrong ones."""

from typing import Any

from outside_world import api_write, file_pod, start_static
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

PORT = {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
PROBE = {"exec": {"command": ["x"]}, "failureThreshold": 2}


def ported(s: TraceBuilder, name: str, created: str) -> PodHandle:
    """A pod that wants the port."""
    pod = s.pod(name, containers=[{"name": "c1", "image": "i", "ports": [PORT]}])
    pod.manifest["metadata"]["creationTimestamp"] = created
    s.set(pod)
    return pod


def restarted(s: TraceBuilder) -> None:
    """The kubelet dies and starts again."""
    s.record("kubelet", op="killed")
    s.wait(1).record("kubelet", op="started")


@detects("RESTARTKUBELET-02", refused=(True, False))
def test_running_pod_is_admitted_anew(s: TraceBuilder, *, refused: bool) -> None:
    """RESTARTKUBELET-02: a running pod whose port an older one has claimed is refused after the start."""
    newer = ported(s, "newer", "2026-01-01T00:00:05Z")
    s.run_container(newer, s.run_sandbox(newer))
    ported(s, "older", "2026-01-01T00:00:01Z")
    restarted(s)
    s.wait(3)
    if refused:
        s.record("event", uid=newer.uid, type="Warning", reason="NodePorts", message="", count=1)
    s.wait(60)


@detects("RESTARTKUBELET-08", failures=(2, 1))
def test_liveness_is_counted_anew(s: TraceBuilder, failures: int) -> None:
    """RESTARTKUBELET-08: failures before the start do not count."""
    web = s.pod(containers=[{"name": "c1", "image": "i", "livenessProbe": PROBE}])
    c1 = s.run_container(web, s.run_sandbox(web))
    s.wait(30)
    _fail(s, c1)
    s.wait(5)
    restarted(s)
    for _ in range(failures):
        s.wait(10)
        _fail(s, c1)
    s.stop(c1)
    s.wait(60)


def _fail(s: TraceBuilder, container: Any) -> None:
    request = {"container_id": container.id, "cmd": ["x"], "timeout": "1"}
    s.call("ExecSync", request, {"exit_code": 1})


def mirrored() -> tuple[TraceBuilder, PodHandle]:
    """A static pod that runs and has its mirror."""
    s = TraceBuilder()
    web = file_pod(s)
    _create(s, web, 201)
    start_static(s, web)
    s.record("status", uid="mirror", namespace="default", name=web.name, status={"phase": "Running"})
    s.wait(10)
    return s, web


def _create(s: TraceBuilder, web: PodHandle, code: int) -> None:
    meta = {
        "name": web.name,
        "namespace": "default",
        "annotations": {"kubernetes.io/config.mirror": web.uid},
    }
    api_write(s, "create", "mirror" if code == 201 else "", body={"metadata": meta}, code=code)


@detects("RESTARTKUBELET-15", if_right=Verdict.NOT_EXERCISED, begin=mirrored, is_to_go=(True, False))
def test_mirror_on_its_way_out_is_replaced(s: TraceBuilder, web: PodHandle, *, is_to_go: bool) -> None:
    """RESTARTKUBELET-15: somebody has deleted it before the kubelet starts."""
    annotations = {"kubernetes.io/config.mirror": web.uid}
    meta = {"name": web.name, "namespace": "default", "uid": "mirror", "annotations": annotations}
    if is_to_go:
        meta["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    s.record("pod", op="set", source="api", pod={"metadata": meta, "spec": web.manifest["spec"]})
    restarted(s)
    s.wait(5)
    api_write(s, "delete", "mirror", grace=0, precondition="mirror")
    _create(s, web, 201)
    s.wait(20).record("kubelet", op="stopped")


@detects("STATIC-14", begin=mirrored, pause=(70, 12))
def test_mirror_that_is_there_is_no_failure(s: TraceBuilder, web: PodHandle, pause: float) -> None:
    """STATIC-14: that a mirror exists already is no failure of the static pod, to be tried again soon."""
    restarted(s)
    for _ in range(5):
        _create(s, web, 409)
        s.wait(pause)
