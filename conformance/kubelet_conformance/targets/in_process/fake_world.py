"""The fakes around a kubelet that a test brings, on one virtual clock, with everything on the record."""

import io
from collections.abc import Coroutine
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast

from kubelet_conformance.contract.applicability import USUAL_VERSION
from kubelet_conformance.targets.in_process.api_server import RecordedApi
from kubelet_conformance.targets.in_process.recorded_runtime import Tap
from kubelet_conformance.trace.format.header import FORMAT_VERSION, Channels, Header
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.api import ApiCore
from kubelet_fakes.clock import LoopClock, run
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore

NODE = "node-1"
RecordedRuntime: TypeAlias = FakeRuntime
"""A fake runtime whose calls are recorded."""
T = TypeVar("T")


class VirtualClock(LoopClock):
    """The clock of the fakes: `run` plays a coroutine, in which waiting costs no time."""

    def __init__(self) -> None:
        super().__init__()
        self._reached: float | None = None

    def monotonic(self) -> float:
        """Seconds since the begin, also before the coroutine runs and after it."""
        try:
            return super().monotonic()
        except RuntimeError:
            return self._reached or 0.0

    def run(self, coroutine: Coroutine[Any, Any, T], *, limit_seconds: float | None = None) -> T:
        """Play one coroutine on virtual time; what it awaits without end raises DeadlockError."""
        if self._reached is not None:
            coroutine.close()
            raise RuntimeError("virtual time runs once a test: do all of it in one coroutine")

        async def timed() -> T:
            try:
                return await coroutine
            finally:
                self._reached = super(VirtualClock, self).monotonic()

        return run(timed(), limit_seconds=limit_seconds)


class _Recorded(Tap):
    """A fake runtime whose calls are recorded; whatever else it has is its own."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a call of the CRI, or an attribute
        return super().__getattr__(name) if name[0].isupper() else getattr(self._runtime, name)


class FakeWorld:
    """A runtime and an API server for one kubelet, which is called `node-1` here."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._recorder = Recorder(self.clock.monotonic)
        recorded = _Recorded(FakeRuntime(RuntimeCore(), self.clock), self._recorder)
        self.runtime = cast("FakeRuntime", recorded)

    @cached_property
    def api(self) -> RecordedApi:
        """The API server: `world` is for the test, `connection` for the kubelet."""
        return RecordedApi(ApiCore(self.clock.wall_ns), self._recorder, NODE)

    def trace(self) -> bytes:
        """What was recorded so far, as a trace. Pods are on it if the API server was asked for."""
        has_api = "api" in vars(self)
        channels = Channels(cri="full", pods="sent" if has_api else "none", api="full" if has_api else "none")
        header = Header(
            trace=FORMAT_VERSION,
            clock="virtual",
            channels=channels,
            kubernetes=USUAL_VERSION,
            runtime="kubelet_fakes",
            node=NODE,
            from_start=True,
        )
        file = io.BytesIO()
        self._recorder.write(file, header)
        return file.getvalue()
