"""What a trace learns from the stream of container events."""

from typing import Any

import pytest
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder


def reported(*states: str) -> tuple[TraceBuilder, ContainerHandle]:
    """A container that was started, and these events of it, one a second."""
    s = TraceBuilder(featureGates={"EventedPLEG": True})
    web: PodHandle = s.pod()
    sandbox: SandboxHandle = s.run_sandbox(web)
    c1 = s.create(web, sandbox)
    s.start(c1)
    s.record("call", rpc="GetContainerEvents", id="stream", request={})
    for state in states:
        status: dict[str, Any] = {"id": c1.id, "metadata": c1.config["metadata"], "state": state}
        event = {"container_id": c1.id, "containers_statuses": [status | {"exit_code": 3}]}
        s.wait(1).record("message", rpc="GetContainerEvents", id="stream", message=event)
    return s, c1


@pytest.mark.parametrize(
    ("states", "state", "seen"),
    [
        (["CONTAINER_RUNNING"], "CONTAINER_RUNNING", True),
        (["CONTAINER_RUNNING", "CONTAINER_EXITED"], "CONTAINER_EXITED", True),
        (["CONTAINER_EXITED", "CONTAINER_RUNNING"], "CONTAINER_EXITED", False),
    ],
)
def test_events_are_readings(states: list[str], state: str, *, seen: bool) -> None:
    """What an event says of a container the kubelet has read; what comes late is no news."""
    s, c1 = reported(*states)
    container = s.world().containers[c1.id]

    assert container.record is not None
    assert container.record.state == state
    assert container.seen_running is seen


def test_end_that_is_reported_is_an_exit() -> None:
    """An end that only an event tells has its code."""
    s, c1 = reported("CONTAINER_EXITED")
    ended = s.world().containers[c1.id].exit

    assert ended is not None
    assert ended.code == 3


def test_other_streams_tell_nothing() -> None:
    """An item of another stream, or of an unknown container, is no reading."""
    s, c1 = reported()
    status = {"id": "other", "state": "CONTAINER_EXITED"}
    s.record("message", rpc="GetContainerEvents", id="stream", message={"containers_statuses": [status]})
    s.record("message", rpc="Other", id="stream", message={})

    assert s.world().containers[c1.id].state == "running"
    assert "other" not in s.world().containers


def test_status_without_an_id_is_of_nothing() -> None:
    """Statuses that lack the id that was asked for are not taken for several readings of one thing."""
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.create(web, sandbox)
    about = {"metadata": c1.config["metadata"], "state": "CONTAINER_CREATED", "created_at": "1"}
    s.call("ContainerStatus", {"container_id": c1.id}, {"status": about})
    s.call("PodSandboxStatus", {"pod_sandbox_id": sandbox.id}, {"status": {"state": "SANDBOX_READY"}})

    assert set(s.world().containers) == {c1.id}
    assert set(s.world().sandboxes) == {sandbox.id}
