"""The tap between a kubelet and a runtime, in this process: what passes is on the record at once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError

from kubelet_conformance.tap.chunks import Chunk
from kubelet_conformance.tap.decoder import Decoder
from kubelet_conformance.tap.events import (
    UNDECODABLE,
    Answered,
    CallBegan,
    CallEnded,
    Observation,
    PeerChange,
    StreamItem,
)
from kubelet_conformance.tap.messages import Method, method
from kubelet_conformance.tap.relay import Relay
from kubelet_conformance.tap.stalls import StallWatch
from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.trace.format.recorder import Failed, RecordedCall, Recorder

_PEERS = {"runtime away": "the runtime is away", "runtime back": "healed: the runtime is back"}


@asynccontextmanager
async def tapped(listen: Path, runtime: Path, recorder: Recorder) -> AsyncGenerator[None]:
    """Let a kubelet reach the runtime at `listen`, everything on the record, while the context is open.

    An exception in a listener of the record is raised at the end: the bytes pass all the same. So is a
    TargetError where a connection could not be followed to its end, for then the record lacks what passed.
    """

    def stalled(fields: dict[str, Any]) -> None:
        recorder.record("stall", **fields)

    calls = _CallRecorder(recorder, runtime)
    async with Relay(listen, runtime, calls.take) as relay:
        with StallWatch(relay.peers, stalled):
            yield
    if calls.failed is not None:
        raise calls.failed


class _CallRecorder:
    """Puts the calls of the CRI onto the record, and what streams send; what it does not know is left out."""

    def __init__(self, recorder: Recorder, runtime: Path) -> None:
        self._recorder = recorder
        self._runtime = runtime
        self._decoder = Decoder()
        self.failed: Exception | None = None
        self._open: dict[str, tuple[Method, RecordedCall]] = {}

    def take(self, chunk: Chunk) -> None:
        """Take what passed."""
        try:
            for observation in self._decoder.feed(chunk):
                self._observe(observation)
        except Exception as error:  # noqa: BLE001 - raised when the bytes no longer depend on it
            self.failed = self.failed or error

    def _observe(self, observation: Observation) -> None:
        match observation:
            case CallBegan():
                self._begin(observation)
            case Answered() | CallEnded():
                found = self._open.pop(observation.id, None)
                if found is not None:
                    self._end(observation, *found)
            case StreamItem() if observation.id in self._open:
                self._item(observation, *self._open[observation.id])
            case PeerChange(what=what) if what in _PEERS:
                self._recorder.record("fault", what=_PEERS[what])
            case PeerChange(what=what) if what.startswith(UNDECODABLE):
                raise TargetError(
                    f"{self._runtime}: a connection to it {what}, so what passed there is not known; "
                    "run again, and report the traffic if it happens twice"
                )
            case _:
                pass

    def _begin(self, observation: CallBegan) -> None:
        known = method(observation.service, observation.rpc)
        if known is None:
            return
        try:
            request = known.request.FromString(observation.request)
        except DecodeError:
            return
        self._open[observation.id] = known, self._recorder.call(observation.rpc, request)

    def _item(self, observation: StreamItem, known: Method, call: RecordedCall) -> None:
        try:
            item = known.response.FromString(observation.message)
        except DecodeError:
            return
        message = MessageToDict(item, preserving_proto_field_name=True)
        self._recorder.record("message", rpc=call.rpc, id=call.id, message=message)

    def _end(self, observation: Answered | CallEnded, known: Method, call: RecordedCall) -> None:
        if isinstance(observation, CallEnded):
            # A caller that goes away learns nothing of how the call ends, and neither does the record.
            if not observation.by_client:
                self._recorder.reply(call, Failed(observation.code, observation.message))
            return
        try:
            response = known.response.FromString(observation.response)
        except DecodeError:
            self._recorder.reply(call, Failed("INTERNAL", "the reply cannot be decoded"))
            return
        self._recorder.reply(call, response)
