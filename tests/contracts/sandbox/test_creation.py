"""SANDBOX contracts on when a sandbox is run: each is kept by a right trace and broken by a wrong one."""

import pytest
from trace_builder import PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def listed(s: TraceBuilder, *sandboxes: SandboxHandle) -> None:
    """A listing of these sandboxes."""
    items = [
        {
            "id": one.id,
            "metadata": one.config["metadata"],
            "state": one.state,
            "created_at": str(one.created_at),
        }
        for one in sandboxes
    ]
    s.call("ListPodSandbox", {}, {"items": items})


def running(s: TraceBuilder) -> tuple[PodHandle, SandboxHandle]:
    """A pod with a sandbox and the container c1 in it."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    s.run_container(web, sandbox)
    return web, sandbox


@detects("SANDBOX-01")
def test_first_sandbox_counts_from_zero(s: TraceBuilder, *, right: bool) -> None:
    """SANDBOX-01 breaks when the first sandbox of a pod is not attempt 0."""
    s.run_sandbox(s.pod(), attempt=0 if right else 1)


@detects("SANDBOX-01")
def test_first_sandbox_names_its_pod(s: TraceBuilder, *, right: bool) -> None:
    """SANDBOX-01 breaks when the sandbox has the pod's UID and another name."""
    web = s.pod()
    config = s.sandbox_config(web)
    config["metadata"] = config["metadata"] | ({} if right else {"name": "other"})
    s.run_sandbox(web, config=config)


@pytest.mark.parametrize("source", ["api", "file"])
@detects("SANDBOX-01")
def test_new_pod_gets_a_sandbox_soon(s: TraceBuilder, source: str, *, right: bool) -> None:
    """SANDBOX-01 breaks when a pod that waits for nothing is not begun within a retry, and a file's poll."""
    web = s.pod(source=source)
    config = s.sandbox_config(web)
    if source == "file":
        config["metadata"]["name"] = "web-node-1"
    s.wait(3 if right else 50).run_sandbox(web, config=config)


def test_pod_with_volumes_may_wait() -> None:
    """SANDBOX-01 says nothing of how long volumes take."""
    s = TraceBuilder()
    web = s.pod(volumes=[{"name": "v", "secret": {"secretName": "s"}}])
    s.wait(100).run_sandbox(web)

    assert s.judge("SANDBOX-01").verdict is Verdict.KEPT


@pytest.mark.parametrize("by_list", [False, True])
@detects("SANDBOX-01")
def test_kubelet_uses_only_sandboxes_it_was_reported(s: TraceBuilder, *, right: bool, by_list: bool) -> None:
    """SANDBOX-01 breaks when a sandbox is read, or listed, that nobody ran."""
    web = s.pod()
    s.run_sandbox(web)
    other = s.pod("other", volumes=[])
    reported = s.run_sandbox(other)
    if not right:
        for record in s.records[-4:-2]:
            record.update(rpc="Version", request={}) if record["kind"] == "call" else record.update(
                rpc="Version"
            )
        if by_list:
            del s.records[-2:]
            listed(s, reported)


@pytest.mark.parametrize("wrong", ["ready", "same attempt", "two attempts on"])
@detects("SANDBOX-02")
def test_sandbox_is_replaced_only_when_dead(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SANDBOX-02 breaks when a ready sandbox gets a second one, and when the attempt is not one more."""
    web, sandbox = running(s)
    if right or wrong != "ready":
        s.sandbox_died(sandbox)
        s.stop_sandbox(sandbox)
    s.run_sandbox(web, attempt=1 if right or wrong == "ready" else 0 if wrong == "same attempt" else 2)


@pytest.mark.parametrize("reason", ["two ready", "no address", "host network"])
def test_other_reasons_for_a_replacement(reason: str) -> None:
    """SANDBOX-02 is kept by a replacement for each of the reasons of the table."""
    s = TraceBuilder()
    web = s.pod()
    first = s.run_sandbox(web)
    last = 1
    if reason == "two ready":
        s.sandbox_status(first)
        s.stop_sandbox(s.run_sandbox(web, attempt=1))
        last = 2
    elif reason == "no address":
        s.sandbox_status(first, network={"ip": ""})
    else:
        web.manifest["spec"]["hostNetwork"] = True
        s.set(web)
    s.stop_sandbox(first)
    s.run_sandbox(web, attempt=last)

    breaks = s.judge("SANDBOX-02").breaks
    assert breaks == (1 if reason == "two ready" else 0)


@pytest.mark.parametrize("late", ["kill", "replacement"])
@detects("SANDBOX-02")
def test_dead_sandbox_is_replaced_at_once(s: TraceBuilder, late: str, *, right: bool) -> None:
    """SANDBOX-02 breaks when the kill, or the replacement after it, does not follow."""
    web, sandbox = running(s)
    s.sandbox_died(sandbox)
    s.wait(1 if right or late != "kill" else 9).stop_sandbox(sandbox)
    s.wait(1 if right or late != "replacement" else 9).run_sandbox(web, attempt=1)


@detects("SANDBOX-02")
def test_vanished_sandbox_is_replaced_at_once(s: TraceBuilder, *, right: bool) -> None:
    """SANDBOX-02 breaks when a sandbox that has vanished is not replaced."""
    web, _ = running(s)
    s.wait(1)
    listed(s)
    s.wait(1 if right else 9).run_sandbox(web)


@detects("SANDBOX-04")
def test_unknown_sandbox_counts_as_stopped(s: TraceBuilder, *, right: bool) -> None:
    """SANDBOX-04 takes NotFound for a success, and no other error."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox, error="NOT_FOUND" if right else "INTERNAL")
    s.run_sandbox(web, attempt=1)


@detects("SANDBOX-10")
def test_event_has_the_error(s: TraceBuilder, *, right: bool) -> None:
    """SANDBOX-10 breaks when the event of a sandbox that could not be run has another error than the call."""
    web = s.pod()
    s.run_sandbox(web, error="CANCELLED")
    code = "Canceled" if right else "Unknown"
    message = f"Failed to create pod sandbox: rpc error: code = {code} desc = injected"
    s.record("event", uid=web.uid, type="Warning", reason="FailedCreatePodSandBox", message=message)
    s.wait(12).run_sandbox(web)
