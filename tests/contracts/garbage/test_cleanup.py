"""CLEANUP contracts: each is kept by a right trace and broken by a wrong one."""

import pytest
from outside_world import NODE, api_write, file_pod, killed, remove_file, start_static, started
from running import BROKEN, KEPT, running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def orphaned() -> tuple[TraceBuilder, SandboxHandle, ContainerHandle]:
    """A pod that was deleted while no kubelet was up."""
    s, web, sandbox, c1 = running()
    killed(s)
    s.wait(1).unset(web)
    started(s.wait(1))
    return s, sandbox, c1


@detects("CLEANUP-07", begin=lambda: running(policy="Never"), runs=(False, True))
def test_finished_pod_is_not_run_again(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, runs: bool
) -> None:
    """CLEANUP-07: a pod that has failed is not started again."""
    s.exited(c1, 1)
    s.status(web, "Failed")
    if runs:
        s.wait(2).create(web, sandbox, "c1", 1)
    s.wait(5).stop_here()


@detects("CLEANUP-08", if_right=Verdict.NOT_EXERCISED, begin=running, down=(False, True))
def test_pod_that_goes_as_the_kubelet_starts_may_be_known(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, *, down: bool
) -> None:
    """CLEANUP-08: what counts is whether it went before the start, if only in the same moment."""
    killed(s)
    s.wait(1)
    if down:
        s.unset(web)
    started(s)
    if not down:
        s.unset(web)
    s.wait(1).stop(c1, timeout=2)


def test_orphans_sandbox_is_stopped_last() -> None:
    """CLEANUP-08: a sandbox that is stopped before its containers breaks it."""
    s, sandbox, _ = orphaned()
    s.wait(3).stop_sandbox(sandbox)

    assert s.judge("CLEANUP-08").verdict is BROKEN


@pytest.mark.parametrize(
    ("mirror_first", "again", "verdict"),
    [(True, False, KEPT), (False, False, BROKEN), (False, True, Verdict.NOT_EXERCISED)],
)
def test_mirrors_go_before_unknown_pods(*, mirror_first: bool, again: bool, verdict: Verdict) -> None:
    """CLEANUP-01: an orphan is killed after the mirrors of removed static pods are deleted.

    That of a pod in whose place another manifest is wanted is not left over.
    """
    s, web, _, c1 = running()
    own = file_pod(s)
    start_static(s, own)
    mirror = {"uid": "mirror-1", "namespace": "default", "name": own.name}
    s.record("status", status={"phase": "Running"}, **mirror)
    killed(s)
    remove_file(s.wait(1), own)
    s.unset(web)
    if again:
        file_pod(s, own.name.removesuffix(f"-{NODE}"), containers=[{"name": "c1", "image": "img:2"}])
    started(s)
    s.wait(3)
    if mirror_first:
        api_write(s, "delete", "mirror-1")
    s.stop(c1, timeout=2)

    assert s.judge("CLEANUP-01").verdict is verdict
