"""GC and CLEANUP contracts about limits, files and images: each is kept and broken by traces."""

from typing import Any

import pytest
from running import BROKEN, KEPT
from trace_builder import TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

TWO: dict[str, Any] = {"configuration": {"maximumDeadContainers": 2}}


@pytest.mark.parametrize(("gone", "verdict"), [(0, KEPT), (1, BROKEN), (None, BROKEN)])
def test_oldest_of_all_goes_first(gone: int | None, verdict: Verdict) -> None:
    """GC-03: of three dead containers, two of which may stay, the oldest goes."""
    s = TraceBuilder(**TWO)
    jobs = [s.pod(f"job-{n}", restartPolicy="Never") for n in range(3)]
    dead = [s.run_container(job, s.run_sandbox(job)) for job in jobs]
    for one in dead:
        s.wait(1).exited(one)
    s.wait(30)
    if gone is not None:
        s.remove(dead[gone])
    s.wait(90).call("ListContainers", {}, {})

    assert s.judge("GC-03").verdict is verdict


def _log(s: TraceBuilder, path: str, op: str) -> None:
    s.record("disk", op=op, path=path)


@detects("GC-06")
def test_logs_may_go_all_together(s: TraceBuilder, *, right: bool) -> None:
    """GC-06: with the folder of a pod's logs every log in it is gone."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    folder = sandbox.config["log_directory"]
    _log(s, f"{folder}/c1/0.log", "written")
    s.exited(c1)
    _log(s, folder if right else "/var/log/pods/another", "removed")
    s.remove(c1)


@pytest.mark.parametrize(("how", "verdict"), [("goes", KEPT), ("stays", BROKEN), ("early", BROKEN)])
def test_log_folder_of_a_gone_pod(how: str, verdict: Verdict) -> None:
    """GC-07: the folder of a pod's logs goes when the pod is gone, and not before."""
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    path = sandbox.config["log_directory"]
    _log(s, path, "folder")
    if how == "early":
        _log(s, path, "removed")
    s.delete(web)
    s.stop_sandbox(sandbox)
    s.deleted(web)
    if how == "goes":
        _log(s.wait(20), path, "removed")
    s.wait(200).call("ListContainers", {}, {})

    assert s.judge("GC-07").verdict is verdict


def _images(s: TraceBuilder, *names: str, pinned: str = "") -> None:
    """The kubelet lists the images of the node."""
    listed: list[dict[str, Any]] = [
        {"id": f"sha256:{name}", "repo_tags": [name], "size": "1", "pinned": name == pinned} for name in names
    ]
    s.call("ListImages", {}, {"images": listed})


def _remove(s: TraceBuilder, name: str) -> None:
    s.call("RemoveImage", {"image": {"image": f"sha256:{name}"}}, {})


@pytest.mark.parametrize(
    ("removed", "verdict"),
    [("idle:1", KEPT), ("img:1", BROKEN), ("kept:1", BROKEN), ("late:1", BROKEN), ("used:1", BROKEN)],
)
def test_unused_images_go(removed: str, verdict: Verdict) -> None:
    """GC-12: what goes is unused, not pinned, old enough, and unused for longer than what stays."""
    s = TraceBuilder()
    web = s.pod()
    other = s.pod("other", containers=[{"name": "c1", "image": "used:1"}])
    s.run_container(web, s.run_sandbox(web))
    sandbox = s.run_sandbox(other)
    used = s.run_container(other, sandbox)
    _images(s, "img:1", "used:1", "idle:1", "kept:1", pinned="kept:1")
    s.stop(used)
    s.remove(used)
    s.wait(300)
    _images(s, "img:1", "used:1", "idle:1", "kept:1", "late:1", pinned="kept:1")
    _remove(s.wait(1), removed)

    assert s.judge("GC-12").verdict is verdict


@detects("GC-12")
def test_room_is_made(s: TraceBuilder, *, right: bool) -> None:
    """GC-12: on a disk that has run full an image that may go goes with the next round."""
    _images(s, "idle:1")
    s.wait(200).record("fault", what="imagefs.available is low", values={"imagefs.available": "10%"})
    if right:
        _remove(s.wait(100), "idle:1")
    s.wait(400).call("ListContainers", {}, {})


@pytest.mark.parametrize(
    ("what", "verdict"), [("volume", KEPT), ("folder", KEPT), ("reduced", KEPT), ("", BROKEN)]
)
def test_cgroup_stays_with_its_volumes(what: str, verdict: Verdict) -> None:
    """CLEANUP-05: the cgroup of a pod that is gone is removed when its volumes are."""
    s = TraceBuilder()
    web = s.pod(volumes=[{"name": "cache", "emptyDir": {}}])
    folder = f"/var/lib/kubelet/pods/{web.uid}"
    s.record("disk", op="folder", path=f"{folder}/volumes")
    s.unset(web)
    if what == "volume":
        s.record("disk", op="removed", path=f"{folder}/volumes/kubernetes.io~empty-dir/cache")
    elif what == "folder":
        s.record("disk", op="removed", path=folder)
    op = "reduced" if what == "reduced" else "removed"
    s.record("disk", op=op, path=f"/sys/fs/cgroup/kubepods/pod{web.uid}")

    assert s.judge("CLEANUP-05").verdict is verdict
