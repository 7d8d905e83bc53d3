"""RESTARTKUBELET contracts about a kubelet of another version, and the versions that traces are judged by."""

import pytest
from running import BROKEN, KEPT
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict


def upgraded(before: str, after: str) -> tuple[TraceBuilder, PodHandle, SandboxHandle, ContainerHandle]:
    """A pod that ran under a kubelet of one version, until one of another takes its place."""
    s = TraceBuilder(before, from_start=False, then_kubernetes=after)
    s.header["from_start"] = True
    comes_up(s, before)
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(10)
    comes_up(s, after)
    return s, web, sandbox, c1


def comes_up(s: TraceBuilder, version: str) -> None:
    """A kubelet of that version starts, in place of the one before."""
    if s.records:
        s.record("kubelet", op="killed")
        s.wait(2)
    s.record("kubelet", op="started", kubernetes=version)
    s.wait(1)


@pytest.mark.parametrize(
    ("before", "after", "contract", "verdict"),
    [
        ("1.32", "1.36", "RESTARTKUBELET-17", BROKEN),
        ("1.36", "1.32", "RESTARTKUBELET-01", BROKEN),
        ("1.26", "1.30", "RESTARTKUBELET-17", BROKEN),
        ("1.30", "1.31", "RESTARTKUBELET-01", Verdict.NOT_EXERCISED),
        ("1.31", "1.30", "RESTARTKUBELET-17", Verdict.NOT_EXERCISED),
    ],
)
def test_stop_is_explained_by_another_hash_alone(
    before: str, after: str, contract: str, verdict: Verdict
) -> None:
    """A kubelet of another version may stop what runs only where its hash covers something else."""
    s, _, _, c1 = upgraded(before, after)
    s.stop(c1)
    s.wait(10).stop_here()

    assert s.judge(contract).verdict is verdict


@pytest.mark.parametrize(("wait", "verdict"), [(1.0, KEPT), (70.0, BROKEN)])
def test_another_hash_restarts_what_runs(wait: float, verdict: Verdict) -> None:
    """RESTARTKUBELET-18: a container whose hash covers something else is made again soon."""
    s, web, sandbox, c1 = upgraded("1.30", "1.31")
    s.wait(wait).stop(c1, takes=0, code=0)
    s.create(web, sandbox, "c1", 1)

    assert s.judge("RESTARTKUBELET-18").verdict is verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(59.0, BROKEN), (61.0, Verdict.NOT_EXERCISED)])
def test_kubelet_that_ends_soon_is_blamed(seconds: float, verdict: Verdict) -> None:
    """RESTARTKUBELET-19: what a kubelet found at its start it has read after a minute."""
    s, *_ = upgraded("1.32", "1.36")
    s.wait(seconds - 1).record("kubelet", op="ended", code=2)

    assert s.judge("RESTARTKUBELET-19").verdict is verdict


def test_contracts_apply_to_both_versions() -> None:
    """A contract that one of the two kubelets does not have is not judged."""
    s, *_ = upgraded("1.26", "1.32")

    assert s.judge("CLEANUP-01").verdict is Verdict.NOT_APPLICABLE
