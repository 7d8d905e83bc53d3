"""HOOK contracts on hooks that run no command: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from running import BROKEN, KEPT, running
from trace_builder import ContainerHandle, PodHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

URL = "http://10.88.0.2:8080/begun"


def starting(
    kubernetes: str = "1.32", *, address: str = "10.88.0.2", **handler: Any
) -> tuple[TraceBuilder, PodHandle, ContainerHandle]:
    """A pod whose container has this postStart hook and has just been started."""
    s = TraceBuilder(kubernetes)
    ports = [{"name": "web", "containerPort": 8080}]
    web = s.pod(
        containers=[{"name": "c1", "image": "img:1", "ports": ports, "lifecycle": {"postStart": handler}}]
    )
    sandbox = s.run_sandbox(web, read=False)
    s.sandbox_status(sandbox, network={"ip": address})
    return s, web, s.run_container(web, sandbox)


def asks(**fields: Any) -> dict[str, Any]:
    """An httpGet hook."""
    return {"httpGet": {"path": "/begun", "port": "web", **fields}}


def hook_request(s: TraceBuilder, web: PodHandle | None, outcome: str, url: str = URL, **fields: Any) -> None:
    """A hook reaches the pod, or nobody."""
    about = {"host": "10.88.0.2", **({"uid": web.uid} if web else {}), **fields}
    s.record("probe", handler="httpGet", outcome=outcome, url=url, **about)


def reported(s: TraceBuilder, web: PodHandle, reason: str) -> None:
    """An event on the container."""
    about = {"uid": web.uid, "container": "spec.containers{c1}"}
    s.record("event", type="Warning", reason=reason, message=reason, **about)


@pytest.mark.parametrize(
    ("again", "tells", "authorized", "verdict"),
    [
        (True, True, False, KEPT),
        (False, True, False, BROKEN),
        (True, False, False, BROKEN),
        (True, True, True, BROKEN),
    ],
)
def test_plain_answer_is_asked_for(*, again: bool, tells: bool, authorized: bool, verdict: Verdict) -> None:
    """HOOK-09: once more in plain HTTP, without credentials, and with an event."""
    s, web, _ = starting(**asks(scheme="HTTPS"))
    hook_request(s, web, "plain", URL.replace("http:", "https:"), authorized=True)
    if again:
        hook_request(s, web, "200", authorized=authorized)
    if tells:
        reported(s, web, "LifecycleHTTPFallback")

    assert s.judge("HOOK-09").verdict is verdict


@pytest.mark.parametrize(
    ("after", "timeout", "verdict"), [(3, 27, KEPT), (0.1, 27, BROKEN), (3, 30, BROKEN), (9, 21, KEPT)]
)
def test_sleep_hook_is_slept_through(after: float, timeout: int, verdict: Verdict) -> None:
    """HOOK-11: the stop comes when the hook has slept, with what is left of the grace."""
    s, web, _, c1 = running(lifecycle={"preStop": {"sleep": {"seconds": 3}}})
    s.delete(web)
    s.wait(after).stop(c1, timeout)

    assert s.judge("HOOK-11").verdict is verdict
