"""Requests and responses as protobuf messages of the CRI."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cri_api.v1 import api_pb2

from kubelet_conformance.trace.errors import BodyError
from kubelet_conformance.trace.messages import message, request_message, response_message
from kubelet_conformance.trace.reader import Reader
from kubelet_conformance.trace.records import Body, Call, Reply
from kubelet_fixtures import traces

SHIPPED = sorted(traces().glob("*/*.jsonl"))


@pytest.mark.slow
def test_every_call_of_the_shipped_traces_is_a_message() -> None:
    """The first request and response of each rpc in each shipped trace become messages of the right type."""
    rpcs: set[str] = set()
    for path in SHIPPED:
        seen: set[str] = set()
        with Reader(path) as reader:
            for record in reader:
                if isinstance(record, Call) and record.rpc not in seen:
                    assert type(request_message(record)).__name__ == f"{record.rpc}Request"
                elif (
                    isinstance(record, Reply) and record.call.rpc not in seen and record.response is not None
                ):
                    assert type(response_message(record)).__name__ == f"{record.call.rpc}Response"
                    seen.add(record.call.rpc)
        rpcs |= seen

    assert {
        "RunPodSandbox",
        "CreateContainer",
        "StopContainer",
        "ExecSync",
        "PullImage",
        "RemovePodSandbox",
    } <= rpcs


def test_message_holds_what_the_json_said() -> None:
    """Names in snake_case, 64-bit integers as strings and defaults that are absent come out as meant."""
    body = Body(b'{"container_id": "c", "timeout": "30", "of_a_later_version": {}}')
    stop = message(body, api_pb2.StopContainerRequest)

    assert (stop.container_id, stop.timeout) == ("c", 30)
    assert message(Body(b"{}"), api_pb2.StopContainerRequest).timeout == 0


def test_failed_call_has_no_response() -> None:
    """A reply that is an error has no message."""
    call = Call(1, 0.0, "Version", "c1", Body(b"{}"))

    assert response_message(Reply(2, 0.0, call, None, None, effect=True, same=False)) is None


@pytest.mark.parametrize("raw", [b'{"timeout": "soon"}', b'{"container_id": 5}', b"[]", b"{", b'"x"'])
def test_wrong_body_is_a_body_error(raw: bytes) -> None:
    """A body that is no such message is refused by the same error as everywhere."""
    with pytest.raises(BodyError, match="StopContainerRequest"):
        message(Body(raw), api_pb2.StopContainerRequest)


def test_unknown_rpc_is_a_lookup_error() -> None:
    """A call that the installed messages do not know is told apart from a wrong one."""
    with pytest.raises(LookupError, match="no call StreamContainers"):
        request_message(Call(1, 0.0, "StreamContainers", "c1", Body(b"{}")))


@pytest.mark.slow
def test_judging_does_not_load_the_messages() -> None:
    """Neither judging nor the command imports protobuf: it would cost more than a small trace."""
    code = """
import sys
import kubelet_conformance.cli.group
from kubelet_conformance.contracts import every_contract
every_contract()
sys.exit(any(name.startswith(("cri_api", "google", "grpc")) for name in sys.modules))
"""

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
