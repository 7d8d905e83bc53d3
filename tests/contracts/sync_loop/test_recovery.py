"""What a kubelet that starts again makes of pods, probes and mirrors: right traces and wrong ones."""

from outside_world import api_write, create_mirror, file_pod, start_static
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def restarted(s: TraceBuilder) -> None:
    """The kubelet dies and starts again."""
    s.record("kubelet", op="killed")
    s.wait(1).record("kubelet", op="started")


def mirrored() -> tuple[TraceBuilder, PodHandle]:
    """A static pod that runs and has its mirror."""
    s = TraceBuilder()
    web = file_pod(s)
    create_mirror(s, web)
    start_static(s, web)
    s.record("status", uid="mirror", namespace="default", name=web.name, status={"phase": "Running"})
    s.wait(10)
    return s, web


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
    create_mirror(s, web)
    s.wait(20).record("kubelet", op="stopped")
