"""SYNC-17: what runs without its pod's cgroup is killed, once."""

import pytest
from trace_builder import TraceBuilder
from twice import detects


@pytest.mark.parametrize("wrong", ["never killed", "never made"])
@detects("SYNC-17")
def test_pod_without_cgroup_is_killed_once(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SYNC-17 breaks when a pod goes on without its cgroup, or is killed and gets no other."""
    web = s.pod()
    path = f"/sys/fs/cgroup/kubepods/pod{web.uid}"
    s.record("disk", op="folder", path=path)
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(5).record("disk", op="removed", path=path)
    if right or wrong == "never made":
        s.wait(60).stop(c1)
        s.stop_sandbox(sandbox)
    if right:
        s.record("disk", op="folder", path=path)


@detects("SYNC-17", policy=("Always", "Never"))
def test_pod_that_runs_once_gets_no_other_cgroup(s: TraceBuilder, policy: str) -> None:
    """SYNC-17: a pod that is killed as its cgroup is missing, and that runs once, gets no other."""
    web = s.pod(restartPolicy=policy)
    path = f"/sys/fs/cgroup/kubepods/pod{web.uid}"
    s.record("disk", op="folder", path=path)
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(5).record("disk", op="removed", path=path)
    s.wait(60).stop(c1)
    s.stop_sandbox(sandbox)
    s.record("disk", op="folder", path=path)
