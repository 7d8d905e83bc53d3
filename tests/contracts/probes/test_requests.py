"""PROBE contracts on probes over the network: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from running import BROKEN, KEPT, running
from trace_builder import PodHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

HTTP = {"httpGet": {"path": "/health", "port": "web"}, "periodSeconds": 5}
PORTS = [{"name": "admin", "containerPort": 9090}, {"name": "web", "containerPort": 8080}]
URL = "http://10.88.0.2:8080/health"


def probed(probe: dict[str, Any]) -> tuple[TraceBuilder, PodHandle]:
    """A pod whose container has this readiness probe."""
    s, web, _, _ = running(readinessProbe=probe, ports=PORTS)
    return s, web


def probe_request(s: TraceBuilder, web: PodHandle | None, handler: str, outcome: str, **fields: Any) -> None:
    """A probe reaches the pod, or nobody."""
    about = {"host": "10.88.0.2", **({"uid": web.uid} if web else {}), **fields}
    s.record("probe", handler=handler, outcome=outcome, **about)


def reported(s: TraceBuilder, web: PodHandle, message: str, reason: str = "Unhealthy") -> None:
    """An event on the container."""
    about = {"uid": web.uid, "container": "spec.containers{c1}"}
    s.record("event", type="Warning", reason=reason, message=message, **about)


@pytest.mark.parametrize(
    ("outcome", "fails", "verdict"),
    [
        ("200", False, KEPT),
        ("399", False, KEPT),
        ("204", True, BROKEN),
        ("404", True, KEPT),
        ("500", False, BROKEN),
        ("refused", True, KEPT),
        ("unanswered", False, BROKEN),
    ],
)
def test_status_of_http_decides(outcome: str, verdict: Verdict, *, fails: bool) -> None:
    """PROBE-16: 200 to 399 is a success, all else a failure."""
    s, web = probed(HTTP)
    for _ in range(2):
        probe_request(s, web, "httpGet", outcome, url=URL)
        if fails:
            reported(s, web, f"Readiness probe failed: it said {outcome}")
        s.wait(5)

    assert s.judge("PROBE-16").verdict is verdict


def test_redirect_on_the_host_decides_nothing() -> None:
    """PROBE-16: what comes at the end of a redirect is the answer."""
    s, web = probed(HTTP)
    probe_request(s, web, "httpGet", "302", url=URL, location="/health2")
    reported(s, web, "Readiness probe failed: HTTP probe failed with statuscode: 500")

    assert s.judge("PROBE-16").activations == 0


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        ("Readiness probe failed: HTTP probe failed with statuscode: 500", KEPT),
        ("Readiness probe failed: HTTP probe failed with statuscode: 500: oh", BROKEN),
        ("Readiness probe failed: the password is swordfish", BROKEN),
    ],
)
def test_body_of_a_failure_is_not_reported(message: str, verdict: Verdict) -> None:
    """PROBE-17: nothing but the status is reported."""
    s, web = probed(HTTP)
    probe_request(s, web, "httpGet", "500", url=URL, text="the password is swordfish")
    reported(s, web, message)

    assert s.judge("PROBE-17").verdict is verdict


@pytest.mark.parametrize(
    ("url", "reaches", "verdict"),
    [
        (URL, True, KEPT),
        ("http://10.88.0.2:9090/health", True, BROKEN),
        ("http://127.0.0.1:8080/health", False, BROKEN),
    ],
)
def test_pod_itself_is_asked(url: str, verdict: Verdict, *, reaches: bool) -> None:
    """PROBE-20: the pod's address, and the port of that name."""
    s, web = probed(HTTP)
    host = "10.88.0.2" if reaches else "127.0.0.1"
    probe_request(s, web if reaches else None, "httpGet", "200", url=url, host=host)

    assert s.judge("PROBE-20").verdict is verdict


@pytest.mark.parametrize(
    ("hosted", "host", "breaks"),
    [(True, "10.0.0.1", False), (True, "127.0.0.1", True), (False, "10.0.0.1", True)],
)
def test_address_of_the_node_is_not_reported_yet(host: str, *, hosted: bool, breaks: bool) -> None:
    """PROBE-20: a pod in the node's network is asked at the node's address, before any status tells it."""
    s = TraceBuilder()
    container = {"name": "c1", "image": "img:1", "readinessProbe": HTTP, "ports": PORTS}
    web = s.pod(containers=[container], hostNetwork=hosted)
    s.run_container(web, s.run_sandbox(web))
    probe_request(s, None, "httpGet", "200", url=f"http://{host}:8080/health", host=host)

    assert bool(s.judge("PROBE-20").breaks) is breaks


@pytest.mark.parametrize(
    ("cmd", "verdict"),
    [
        (["check", "5", "$HOME", "$(NONE)", "$"], KEPT),
        (["check", "$(LIMIT)", "$HOME", "$(NONE)", "$$"], BROKEN),
        (["/bin/sh", "-c", "check 5"], BROKEN),
    ],
)
def test_environment_is_put_into_a_command(cmd: list[str], verdict: Verdict) -> None:
    """PROBE-21: only references to what the container's env says are replaced."""
    words = ["check", "$(LIMIT)", "$HOME", "$(NONE)", "$$"]
    s, _, _, c1 = running(
        env=[{"name": "LIMIT", "value": "5"}], livenessProbe={"exec": {"command": words}, "periodSeconds": 5}
    )
    s.call("ExecSync", {"container_id": c1.id, "cmd": cmd, "timeout": "1"}, {"exit_code": 0})

    assert s.judge("PROBE-21").verdict is verdict


def test_value_from_elsewhere_is_not_guessed() -> None:
    """PROBE-21 says nothing where a value is not in the manifest."""
    source = {"name": "LIMIT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    probe = {"exec": {"command": ["check", "$(LIMIT)"]}, "periodSeconds": 5}
    s, _, _, c1 = running(env=[source], livenessProbe=probe)
    s.call("ExecSync", {"container_id": c1.id, "cmd": ["check", ""], "timeout": "1"}, {"exit_code": 0})

    assert s.judge("PROBE-21").activations == 0
