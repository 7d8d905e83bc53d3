"""Messages of the CRI by service and method, and their JSON as a trace has it."""

import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.tap.errors import UndecodableError
from kubelet_conformance.tap.messages import as_json, method, streams
from kubelet_fakes.runtime.serving.methods import METHODS

RUNTIME, IMAGES = "runtime.v1.RuntimeService", "runtime.v1.ImageService"


def test_every_method_has_its_classes() -> None:
    """Both services, as the stubs have them."""
    for each in METHODS:
        found = method(each.service, each.name)

        assert found is not None
        assert (found.request, found.response, found.streams) == (each.request, each.response, each.streams)


def test_what_is_not_known_is_none() -> None:
    """Methods of other versions, and a known method under another service."""
    asked = [(RUNTIME, "Dream"), (IMAGES, "Version"), ("runtime.v1alpha2.RuntimeService", "Version")]

    assert [method(*each) for each in asked] == [None] * 3


@pytest.mark.parametrize(
    ("service", "rpc", "streaming"),
    [
        (RUNTIME, "GetContainerEvents", True),
        (RUNTIME, "Version", False),
        ("runtime.v1alpha2.RuntimeService", "Version", False),
        ("runtime.v1alpha2.RuntimeService", "Dream", None),
        ("runtime.v2.RuntimeService", "Version", None),
    ],
)
def test_which_methods_stream(service: str, rpc: str, *, streaming: bool | None) -> None:
    """Those of v1alpha2 are like their namesakes; of others nothing is known."""
    assert streams(service, rpc) is streaming


def test_json_is_that_of_a_trace() -> None:
    """Names as in the protocol, keys sorted, defaults absent, long numbers as strings."""
    message = cri.ContainerStatus(id="a", created_at=1 << 40, state=cri.CONTAINER_EXITED, exit_code=3)

    assert bytes(as_json(cri.ContainerStatus, message.SerializeToString())) == (
        b'{"created_at":"1099511627776","exit_code":3,"id":"a","state":"CONTAINER_EXITED"}'
    )


def test_bytes_that_are_no_message_are_reported() -> None:
    """With the name of what they should be."""
    with pytest.raises(UndecodableError, match="3 bytes that are no VersionRequest"):
        as_json(cri.VersionRequest, b"\xff\xff\xff")
