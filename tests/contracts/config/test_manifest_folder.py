"""A missing folder, and a version that is skipped: right traces keep the contracts, wrong ones do not."""

from typing import Any

import pytest
from outside_world import file_pod, killed, start_static, started, static_config, tell_status
from running import BROKEN, KEPT
from trace_builder import PodHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

FOLDER = "/etc/kubernetes/manifests"


@pytest.mark.parametrize(("waits", "verdict"), [(15, KEPT), (60, BROKEN)])
def test_folder_that_appears_is_read(waits: float, verdict: Verdict) -> None:
    """STATIC-08: manifests in a folder that is made later are run; STATIC-09 gives it time."""
    s = TraceBuilder()
    s.record("disk", op="missing", path=FOLDER)
    tell_status(s.wait(5))
    s.record("disk", op="made", path=FOLDER)
    web = file_pod(s)
    s.wait(waits).run_sandbox(web, config=static_config(s, web))

    assert s.judge("STATIC-08").verdict is verdict
    assert s.judge("STATIC-09").verdict.words == "not exercised"


_C1 = {"name": "c1", "image": "img:1"}
_VALID: dict[str, Any] = {"containers": [_C1]}


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": []},
        {"containers": [_C1, _C1]},
        {"containers": [_C1], "initContainers": [_C1]},
        {"containers": [_C1], "resourceClaims": [{"name": "gpu"}]},
        {"containers": [_C1], "ephemeralContainers": [{"name": "e"}]},
        {"containers": [{**_C1, "imagePullPolicy": "Maybe"}]},
        {"containers": [{**_C1, "livenessProbe": {"periodSeconds": -1}}]},
        _VALID,
    ],
    ids=["none", "twice", "init too", "claims", "ephemeral", "policy", "period", "valid"],
)
def test_invalid_manifest_need_not_start(spec: dict[str, Any]) -> None:
    """STATIC-09, SANDBOX-01: a manifest that is invalid is refused in the log only; a valid one starts."""
    s = TraceBuilder()
    s.call("ListContainers", {"filter": {}}, {"containers": []})
    file_pod(s, **spec)
    s.wait(60).call("ListContainers", {"filter": {}}, {"containers": []})

    expected = BROKEN if spec is _VALID else Verdict.NOT_EXERCISED
    assert s.judge("STATIC-09").verdict is expected
    assert s.judge("SANDBOX-01").verdict is expected


@pytest.mark.parametrize("runs", ["b", "a", ""])
def test_last_pod_of_a_name_is_run(runs: str) -> None:
    """CONFIG-09: of two files with one name the last one's pod is run, and the other is not."""
    s = TraceBuilder()
    killed(s)
    pods: dict[str, PodHandle] = {}
    for file, image in (("b", "img:2"), ("a", "img:1")):
        s.record("disk", op="written", path=f"{FOLDER}/{file}.yaml")
        pods[file] = file_pod(s, containers=[{"name": "c1", "image": image}])
    started(s.wait(1))
    s.record("disk", op="folder", path="/sys/fs/cgroup/kubepods/pod1")  # No manifest, and so no excuse.
    if runs:
        start_static(s.wait(1), pods[runs])
    s.wait(60).stop_here()

    assert s.judge("CONFIG-09").verdict is (KEPT if runs == "b" else BROKEN)
