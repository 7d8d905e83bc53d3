"""SYNC contracts on pods that are let be, and on kills that fail: each is kept once and broken once."""

from typing import Any

import pytest
from trace_builder import FULL_CHANNELS, ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

PROBE = {"livenessProbe": {"httpGet": {"port": 80}}}


def running(s: TraceBuilder, **container: Any) -> tuple[PodHandle, SandboxHandle, ContainerHandle]:
    """A pod whose containers c1 and c2 run; `container` adds to the spec of c1."""
    two = [{"name": "c1", "image": "img:1", **container}, {"name": "c2", "image": "img:1"}]
    web = s.pod(containers=two)
    sandbox = s.run_sandbox(web)
    c1, _ = (s.run_container(web, sandbox, name) for name in ("c1", "c2"))
    s.wait(5)
    return web, sandbox, c1


def pull(s: TraceBuilder, web: PodHandle) -> None:
    """PullImage of the pod's image."""
    request = {"image": {"image": "img:1"}, "sandbox_config": s.sandbox_config(web)}
    s.call("PullImage", request, {"image_ref": "sha256:img:1"})


@detects("SYNC-13", kubernetes="1.26")
def test_another_image_may_be_the_reason_all_the_same(s: TraceBuilder, *, right: bool) -> None:
    """SYNC-13: an older kubelet's sync made a container by the manifest of before, and does not say so."""
    web = s.pod(containers=[{"name": "c1", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    s.call("ImageStatus", {"image": {"image": "img:1"}}, {"image": {"id": "sha256:img:1"}})
    web.manifest["spec"]["containers"][0]["image"] = "img:2"
    s.set(web)
    s.wait(0.1 if right else 20)
    s.call("ImageStatus", {"image": {"image": "img:2"}}, {"image": {"id": "sha256:img:2"}})
    image_origin = {"image": "sha256:img:1" if right else "sha256:img:2"}
    c1 = s.create(web, sandbox, config=s.container_config(web, "c1", image=image_origin))
    s.start(c1)
    s.stop(c1)


@pytest.mark.parametrize(("policy", "verdict"), [("Never", Verdict.KEPT), ("OnFailure", Verdict.BROKEN)])
def test_lost_init_container_fails_its_pod(policy: str, verdict: Verdict) -> None:
    """SYNC-13: an init container whose state is unknown is the end of a pod that runs once."""
    s = TraceBuilder()
    web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}], restartPolicy=policy)
    sandbox = s.run_sandbox(web)
    i1 = s.run_container(web, sandbox, "i1")
    s.record("runtime", op="unknown", container_id=i1.id, sandbox_id=sandbox.id)
    s.stop_sandbox(sandbox)
    s.wait(5).stop_here()

    assert s.judge("SYNC-13").verdict is verdict


def test_unseen_probe_may_be_the_reason() -> None:
    """SYNC-13 lets a container be stopped whose probe no call shows."""
    s = TraceBuilder()
    _, _, c1 = running(s, **PROBE)
    s.stop(c1)

    assert s.judge("SYNC-13").verdict is Verdict.KEPT


@pytest.mark.parametrize("goes_on", [False, True])
def test_stop_without_events_may_be_an_eviction(*, goes_on: bool) -> None:
    """SYNC-13: where events may be missing, an unexplained stop breaks only if the pod goes on."""
    s = TraceBuilder(channels={**FULL_CHANNELS, "events": "limited"})
    web, sandbox, c1 = running(s)
    s.stop(c1)
    s.wait(5)
    if goes_on:
        s.run_container(web, sandbox, "c1", attempt=1)

    assert (s.judge("SYNC-13").verdict is Verdict.BROKEN) is goes_on


@detects("SYNC-13")
def test_sidecars_go_with_a_pod_that_fails(s: TraceBuilder, *, right: bool) -> None:
    """SYNC-13: under Never sidecars are stopped when the last app container fails its probe for good."""
    probe = {"exec": {"command": ["alive"]}, "failureThreshold": 1, "periodSeconds": 1}
    app = {"name": "c1", "image": "img:1", "startupProbe": probe}
    sidecar = {"name": "s1", "image": "img:1", "restartPolicy": "Always"}
    web = s.pod(containers=[app], initContainers=[sidecar], restartPolicy="Never")
    sandbox = s.run_sandbox(web)
    s1, c1 = (s.run_container(web, sandbox, name) for name in ("s1", "c1"))
    run = {"container_id": c1.id, "cmd": ["alive"], "timeout": "1"}
    s.call("ExecSync", run, {"exit_code": 1 if right else 0})
    s.wait(1).stop(s1)


@detects("SYNC-13")
def test_removal_that_is_noticed_late_is_a_reason(s: TraceBuilder, *, right: bool) -> None:
    """SYNC-13: a sandbox goes because the pod's file had gone, of which the kubelet could not hear before."""
    web = s.pod("web-node-1", source="file", uid="static")
    listed = s.begin("ListContainers", {"filter": {}})
    if not right:
        s.end("ListContainers", listed, {"containers": []})
    s.wait(5).unset(web)
    s.wait(5).set(web)
    if right:
        s.end("ListContainers", listed, {"containers": []})
    sandbox = s.run_sandbox(web)
    s.wait(1).stop_sandbox(sandbox)
    s.wait(5)


@detects("SYNC-13", ended=(True, False))
def test_phase_that_was_sent_is_a_reason(s: TraceBuilder, *, ended: bool) -> None:
    """SYNC-13: a pod that another client has ended is stopped, whatever the kubelet reports meanwhile."""
    web, sandbox, c1 = running(s)
    web.manifest["status"] = {"phase": "Failed" if ended else "Running"}
    s.set(web)
    s.status(web, "Running")
    s.exited(c1, code=0)
    s.stop_sandbox(sandbox)
    s.wait(5)


@pytest.mark.parametrize("wrong", ["sandbox", "container", "image"])
@detects("SYNC-13")
def test_healthy_pod_is_let_be(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SYNC-13 breaks when a ready sandbox is stopped, or what runs is made or pulled for again."""
    web, sandbox, c1 = running(s)
    if right:
        s.exited(c1, code=1)
        pull(s, web)
        s.run_container(web, sandbox, attempt=1)
        s.delete(web)
        s.stop_sandbox(sandbox)
    elif wrong == "sandbox":
        s.stop_sandbox(sandbox)
    elif wrong == "container":
        s.create(web, sandbox, attempt=1)
    else:
        pull(s, web)
