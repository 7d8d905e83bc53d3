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
