"""Tell stories to a runtime: one after another on virtual time, or side by side over a socket."""

from __future__ import annotations

import asyncio
import io
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from kubelet_conformance.runtime_checks.runtime import Runtime
from kubelet_conformance.runtime_checks.story import NotPossible, Story
from kubelet_conformance.targets.direct import DirectRuntime
from kubelet_conformance.trace.header import FORMAT_VERSION, Channels, Header
from kubelet_conformance.trace.recorder import Recorder

STORY_SECONDS = 120.0
"""A story that is not over by then is given up."""
GATES = {"EventedPLEG": True}
"""Whether a runtime offers events is asked of itself."""


@dataclass(frozen=True, slots=True)
class Told:
    """A story that was told, or could not be.

    Attributes:
        story: which.
        trace: the record, as a trace; empty if nothing was called.
        vain: the call that failed where it had to succeed, and so ended the story.
        failed: what went wrong in the suite itself.
        impossible: why the runtime could not be brought into the situation.
    """

    story: Story
    trace: bytes = b""
    vain: str = ""
    failed: str = ""
    impossible: str = ""


def header_of(target: DirectRuntime, story: str, kubernetes: str, *, virtual: bool) -> Header:
    """The header of a story's trace: whatever it holds was made in it."""
    return Header(
        trace=FORMAT_VERSION,
        clock="virtual" if virtual else "wall",
        channels=Channels(cri="full"),
        kubernetes=kubernetes,
        feature_gates=GATES,
        runtime=f"{target.name} {target.version}",
        from_start=True,
        scenario=story,
    )


async def tell(
    target: DirectRuntime, story: Story, run_id: str, kubernetes: str, *, virtual: bool = False
) -> Told:
    """Tell one story, and clean up after it."""
    lacking = [target.lacks[need] for need in story.needs if need in target.lacks]
    if lacking:
        return Told(story, impossible="; ".join(lacking))
    began = target.now()
    recorder = Recorder(lambda: round(target.now() - began, 6))
    vain = failed = impossible = ""
    runtime = Runtime(target, recorder, story.name, run_id)
    if target.listen is not None:
        target.listen(runtime.hear)
    try:
        async with asyncio.timeout(STORY_SECONDS):
            await runtime.look()
            await story.tell(runtime)
            await runtime.look()
    except NotPossible as error:
        impossible = str(error)
    except (grpc.RpcError, TimeoutError) as error:
        vain = f"{_place(error)}{_said(error)}"
    except Exception as error:  # noqa: BLE001 - the other stories are told all the same
        failed = f"{_place(error)}{type(error).__name__}: {error}\n{traceback.format_exc()}"
    await runtime.clean_up()
    await runtime.ended(runtime.look())
    file = io.BytesIO()
    recorder.write(file, header_of(target, story.name, kubernetes, virtual=virtual))
    return Told(story, file.getvalue(), vain, failed, impossible)


async def tell_all(
    target: DirectRuntime, stories: Iterable[Story], run_id: str, kubernetes: str, concurrency: int
) -> list[Told]:
    """Tell stories side by side, at most `concurrency` at a time; those that want to be alone come after."""
    every = list(stories)
    places = asyncio.Semaphore(concurrency)

    async def in_turn(story: Story) -> Told:
        async with places:
            return await tell(target, story, run_id, kubernetes)

    async with asyncio.TaskGroup() as group:
        tasks = {story.name: group.create_task(in_turn(story)) for story in every if not story.alone}
    told = {name: task.result() for name, task in tasks.items()}
    for story in every:
        if story.alone:
            told[story.name] = await tell(target, story, run_id, kubernetes)
    return [told[story.name] for story in every]


def _said(error: Any) -> str:  # noqa: ANN401 - the methods of grpc's errors are those of their kind
    """An error in words."""
    if isinstance(error, TimeoutError):
        return f"not over after {STORY_SECONDS:g} s"
    return f"a call that has to succeed failed: {error.code().name}: {error.details() or 'no words'}"


def _place(error: BaseException) -> str:
    """The last line of a story that was reached, such as `stops.py:12: `."""
    folder = Path(__file__).with_name("stories")
    frames = [one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename).parent == folder]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""
