"""METRIC contracts: each is kept by a right trace and broken by a wrong one."""

import pytest
from running import BROKEN, KEPT
from trace_builder import TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

STARTED, FAILED = "kubelet_started_containers_total", "kubelet_started_containers_errors_total"


@pytest.mark.parametrize(
    ("started", "errors", "verdict"),
    [(2, 1, KEPT), (3, 2, KEPT), (1, 1, BROKEN), (2, 0, BROKEN), (2, 2, BROKEN)],
)
def test_sandboxes_are_counted(started: int, errors: int, verdict: Verdict) -> None:
    """METRIC-01: two tries, one of which failed; one more may have failed without a call."""
    s = TraceBuilder()
    web = s.pod()
    s.run_sandbox(web, error="INTERNAL")
    s.run_sandbox(web)
    s.record(
        "metrics",
        values={"kubelet_started_pods_total": started, "kubelet_started_pods_errors_total": errors},
    )

    assert s.judge("METRIC-01").verdict is verdict


@pytest.mark.parametrize(
    ("started", "errors", "code", "verdict"),
    [
        (2, 1, "RunContainerError", KEPT),
        (3, 2, "ErrImagePull", KEPT),
        (2, 1, "no such command", BROKEN),
        (2, 1, "CrashLoopBackOff", BROKEN),
        (1, 1, "RunContainerError", BROKEN),
        (3, 1, "RunContainerError", BROKEN),
    ],
)
def test_starts_are_counted(started: int, errors: int, code: str, verdict: Verdict) -> None:
    """METRIC-02: two tries, one of which failed; a pull may have failed before a third."""
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    s.start(s.create(web, sandbox), error="UNKNOWN")
    s.run_container(web, sandbox, "c1", 1)
    labels = 'container_type="container"'
    s.record(
        "metrics",
        values={
            f"{STARTED}{{{labels}}}": started,
            f'{FAILED}{{code="{code}",{labels}}}': errors,
        },
    )

    assert s.judge("METRIC-02").verdict is verdict


@pytest.mark.parametrize(
    ("clock", "looks", "wait", "breaks"),
    [("wall", 1, 0.2, False), ("wall", 0, 0.05, True), ("wall", 1, 0.6, True), ("virtual", 1, 0.05, True)],
)
def test_try_that_has_just_begun_may_be_counted(clock: str, looks: int, wait: float, *, breaks: bool) -> None:
    """METRIC-02: each image that was just looked for may be a try; on wall time the answer is read later."""
    s = TraceBuilder(clock=clock)
    web = s.pod()
    s.run_container(web, s.run_sandbox(web))
    s.wait(5)
    for _ in range(looks):
        s.call("ImageStatus", {"image": {"image": "img:1"}}, {})
    s.wait(wait).record("metrics", values={f'{STARTED}{{container_type="container"}}': 2})

    assert bool(s.judge("METRIC-02").breaks) is breaks
