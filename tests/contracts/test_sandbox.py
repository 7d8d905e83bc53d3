"""SANDBOX contracts: each is kept by a right story and broken by a wrong one."""

from __future__ import annotations

from story import Story

from kubelet_conformance.contract.verdicts import Verdict


def test_first_sandbox_counts_from_zero() -> None:
    """SANDBOX-01 breaks when the first sandbox of a pod is not attempt 0."""
    right, wrong = Story(), Story()
    right.run_sandbox(right.pod())
    wrong.run_sandbox(wrong.pod(), attempt=1)

    assert right.judge("SANDBOX-01").verdict is Verdict.KEPT
    assert wrong.judge("SANDBOX-01").verdict is Verdict.BROKEN


def test_old_sandbox_is_stopped_before_the_next() -> None:
    """SANDBOX-04 breaks when the dead sandbox is left standing."""
    for stops, verdict in ((True, Verdict.KEPT), (False, Verdict.BROKEN)):
        s = Story()
        web = s.pod()
        sandbox = s.run_sandbox(web)
        s.sandbox_died(sandbox)
        if stops:
            s.stop_sandbox(sandbox)
        s.run_sandbox(web, attempt=1)

        assert s.judge("SANDBOX-04").verdict is verdict


def test_failed_sandbox_is_tried_again() -> None:
    """SANDBOX-10 breaks when a pod is given up after a failed RunPodSandbox."""
    again, given_up = Story(), Story()
    for s in (again, given_up):
        web = s.pod()
        s.run_sandbox(web, error="INTERNAL")
        if s is again:
            s.wait(12).run_sandbox(web)

    assert again.judge("SANDBOX-10").verdict is Verdict.KEPT
    assert given_up.judge("SANDBOX-10").verdict is Verdict.BROKEN
