"""Conversations made by h2, which knows nothing of the tap, are decoded as they were held."""

from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes
from hypothesis import given
from hypothesis import strategies as st
from tap_wire import V1, Talk, message

from kubelet_conformance.tap.chunks import What

REQUEST = [
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "localhost"),
    ("content-type", "application/grpc"),
]
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["Version", "Status", "ListImages"]),
        st.binary(max_size=50),
        st.text("ab", max_size=9),
    ),
    min_size=1,
    max_size=9,
)


class Held:
    """A client and a server of h2, and the chunks between them."""

    def __init__(self) -> None:
        self.client = H2Connection(H2Configuration(client_side=True))
        self.server = H2Connection(H2Configuration(client_side=False))
        self.talk = Talk().add(What.CONNECTED)
        self.client.initiate_connection()
        self.server.initiate_connection()
        self.exchange()

    def exchange(self) -> None:
        """Let each side receive what the other sends, until both are silent."""
        while True:
            asks = self.client.data_to_send()
            self.server.receive_data(asks)
            answers = self.server.data_to_send()
            self.client.receive_data(answers)
            if not asks and not answers:
                return
            for data, send in ((asks, self.talk.asks), (answers, self.talk.answers)):
                if data:
                    send(data)

    def call(self, rpc: str, body: bytes, text: str) -> None:
        """A call that is answered by its own request, or fails with the text if there is one."""
        stream: Any = self.client.get_next_available_stream_id()
        self.client.send_headers(stream, [(":path", f"/{V1}/{rpc}"), *REQUEST])
        self.client.send_data(stream, message(body), end_stream=True, pad_length=len(body) % 7 or None)
        self.exchange()
        self.server.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        self.server.send_data(stream, message(body))
        status = [("grpc-status", "2"), ("grpc-message", text)] if text else [("grpc-status", "0")]
        self.server.send_headers(stream, status, end_stream=True)
        self.exchange()


@pytest.mark.slow
@given(CALLS, st.lists(st.integers(0, 9000), max_size=3))
def test_calls_are_observed_as_they_were_held(calls: list[tuple[str, bytes, str]], tables: list[int]) -> None:
    """With header tables that change their size in between, in both directions, and padded data."""
    held, expected = Held(), list[tuple[Any, ...]]()
    for number, (rpc, body, text) in enumerate(calls, 1):
        if tables:
            side = held.client if len(tables) % 2 else held.server
            side.update_settings({SettingCodes.HEADER_TABLE_SIZE: tables.pop()})
            held.exchange()
        held.call(rpc, body, text)
        expected.append(("CallBegan", f"c{number}", V1, rpc, body))
        if text:
            expected.append(("CallEnded", f"c{number}", rpc, "UNKNOWN", text))
        else:
            expected.append(("Answered", f"c{number}", rpc, body))

    assert held.talk.calls() == expected
