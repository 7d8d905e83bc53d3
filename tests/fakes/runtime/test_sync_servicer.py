"""The synchronous servicer: unit tests by grpcio-testing talk to the same runtime, on virtual time."""

import doctest
from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any

import grpc
import pytest
from cri_api.v1 import api_pb2 as cri
from pod_life import container, sandbox

from kubelet_fakes.runtime.serving import sync_servicer
from kubelet_fakes.runtime.serving.methods import METHODS
from kubelet_fakes.runtime.serving.sync_servicer import SyncServicer

Call = Callable[..., tuple[Any, grpc.StatusCode, str]]

#: The library comes without types.
grpc_testing: Any = import_module("grpc_testing")

RUNTIME = cri.DESCRIPTOR.services_by_name["RuntimeService"]


@pytest.fixture
def servicer() -> Generator[SyncServicer]:
    """A servicer over a new runtime."""
    with SyncServicer() as made:
        yield made


@pytest.fixture
def call(servicer: SyncServicer) -> Call:
    """Makes a call through grpcio-testing: the reply, the code and the text."""
    server = grpc_testing.server_from_dictionary(servicer.by_descriptor(), grpc_testing.strict_fake_time(0))

    def make(name: str, request: Any, timeout: float | None = None) -> tuple[Any, grpc.StatusCode, str]:
        method = RUNTIME.methods_by_name[name]
        reply, _, code, details = server.invoke_unary_unary(method, (), request, timeout).termination()
        return reply, code, details

    return make


def started(call: Call, *command: str) -> tuple[str, str]:
    """A sandbox and a container that runs in it, by their ids."""
    pod = call("RunPodSandbox", sandbox())[0].pod_sandbox_id
    app = call("CreateContainer", container(pod, *command))[0].container_id
    call("StartContainer", cri.StartContainerRequest(container_id=app))
    return pod, app


def test_example_in_the_docs_works() -> None:
    """The module's example does what it says."""
    result = doctest.testmod(sync_servicer)

    assert (result.failed, result.attempted > 0) == (0, True)


def test_has_every_method(servicer: SyncServicer) -> None:
    """Both services are complete."""
    assert all(callable(getattr(servicer, method.name)) for method in METHODS)


def test_stop_waits_in_virtual_time(servicer: SyncServicer, call: Call) -> None:
    """A stop is answered when the container has ended, 20 s later on the runtime's clock and at once here."""
    _, app = started(call, "run", "stopdelay=20", "stopcode=4")
    before = servicer.runtime.core.now
    call("StopContainer", cri.StopContainerRequest(container_id=app, timeout=30))
    status = call("ContainerStatus", cri.ContainerStatusRequest(container_id=app))[0].status

    assert (status.state, status.exit_code) == (cri.CONTAINER_EXITED, 4)
    assert servicer.runtime.core.now - before == 20_000_000_000


def test_time_passes_when_asked(servicer: SyncServicer, call: Call) -> None:
    """Between calls nothing happens unless the test lets time pass."""
    _, app = started(call, "exit", "3", "5")
    request = cri.ContainerStatusRequest(container_id=app)
    states = [call("ContainerStatus", request)[0].status.state]
    servicer.wait(5)
    states.append(call("ContainerStatus", request)[0].status.state)

    assert states == [cri.CONTAINER_RUNNING, cri.CONTAINER_EXITED]


def test_errors_keep_code_and_text(call: Call) -> None:
    """A failed call ends with the runtime's own code and text."""
    _, code, details = call("ContainerStatus", cri.ContainerStatusRequest(container_id="nobody"))

    assert (code, "nobody" in details) == (grpc.StatusCode.NOT_FOUND, True)


@pytest.mark.parametrize("timeout", [None, 3.0])
def test_call_that_hangs_ends(servicer: SyncServicer, call: Call, timeout: float | None) -> None:
    """A hanging call ends with its deadline, or, having none, when nothing can happen any more."""
    with servicer.runtime.faults.add("Version hang"):
        _, code, _ = call("Version", cri.VersionRequest(), timeout)

    assert code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert call("Version", cri.VersionRequest())[1] is grpc.StatusCode.OK


def test_events_stream_what_happens(servicer: SyncServicer) -> None:
    """The stream reports what happens by itself, and ends when nothing more can."""

    class Context:
        """A context that stays active."""

        def is_active(self) -> bool:
            """Nobody hangs up."""
            return True

        def time_remaining(self) -> float | None:
            """There is no deadline."""
            return None

    ask: Any = servicer
    pod = ask.RunPodSandbox(sandbox(), Context()).pod_sandbox_id
    app = ask.CreateContainer(container(pod, "exit", "0", "5"), Context()).container_id
    ask.StartContainer(cri.StartContainerRequest(container_id=app), Context())
    reported = [
        event.container_event_type for event in ask.GetContainerEvents(cri.GetEventsRequest(), Context())
    ]

    assert reported == [cri.CONTAINER_STOPPED_EVENT]
