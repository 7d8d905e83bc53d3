"""The process that relays: it copies bytes and hands them on, and nothing in it waits for a file."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubelet_conformance.recording.observer import TICK_SECONDS
from kubelet_conformance.recording.plan import Plan
from kubelet_conformance.tap.chunks import Chunk, What
from kubelet_conformance.tap.pipeline import Pipeline
from kubelet_conformance.tap.relay import Relay
from kubelet_conformance.tap.stalls import StallWatch

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def tap(plan: Plan, command: Sequence[str], say: Callable[[str], object]) -> int:
    """Relay until SIGINT or SIGTERM; the exit status of the process that writes.

    If that process ends before, it has reported why, and calls go on passing until the signal: a node must
    not stop because its record does. A second signal ends everything at once.

    Args:
        plan: What is recorded.
        command: The process that writes.
        say: Called once when clients can connect.

    Raises:
        AddressError: It cannot listen.
        OSError: The other process cannot be started.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    task = asyncio.current_task()

    def asked() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, asked)
    try:
        pipeline = Pipeline(command, Path(plan.output).parent)
        async with pipeline:
            relay = Relay(Path(plan.listen), Path(plan.upstream), pipeline.sink)

            def stalled(fields: dict[str, Any]) -> None:
                _note(relay, pipeline, msgspec.json.encode(fields))

            async with relay:
                say(f"unix://{relay.listen}")
                with StallWatch(relay.peers, stalled):
                    await _until(stop, relay, pipeline)
            _note(relay, pipeline)
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
    return pipeline.exit_status


async def _until(stop: asyncio.Event, relay: Relay, pipeline: Pipeline) -> None:
    """Send a note each second until it is to stop."""
    while not stop.is_set():
        _note(relay, pipeline)
        try:
            async with asyncio.timeout(TICK_SECONDS):
                await stop.wait()
        except TimeoutError:
            continue


def _note(relay: Relay, pipeline: Pipeline, data: bytes = b"") -> None:
    """Send a note, of what the data says or, without any, that a second has passed."""
    pipeline.sink(Chunk(relay.now_ns(), 0, What.NOTE, data))
