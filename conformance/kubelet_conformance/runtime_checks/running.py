"""One run of stories against one runtime: opened, told, cleaned up after, judged."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from kubelet_conformance.contract.collecting import seldom_collected
from kubelet_conformance.reports.output import complain
from kubelet_conformance.runtime_checks.story import Story
from kubelet_conformance.runtime_checks.sweeping import sweep
from kubelet_conformance.runtime_checks.telling import Told, tell, tell_all
from kubelet_conformance.runtime_checks.trial import see_that_containers_run
from kubelet_conformance.targets.direct import (
    DirectRuntime,
    Wanted,
    is_in_process,
    on_virtual_time,
    opened,
    opened_in_process,
)

CONCURRENCY = 8


@dataclass(slots=True)
class Run:
    """What came of it.

    Attributes:
        name: what the runtime calls itself.
        version: its version, in its own words.
        told: the stories.
        left: what could not be removed, in words.
    """

    name: str = ""
    version: str = ""
    told: list[Told] = field(default_factory=list["Told"])
    left: list[str] = field(default_factory=list[str])


def run_stories(
    wanted: Wanted, stories: Iterable[Story], kubernetes: str, concurrency: int = CONCURRENCY
) -> Run:
    """Tell the stories to the runtime that is wanted.

    Raises:
        TargetError: It cannot be called.
        UnknownTargetError: Nothing is named so.
    """
    if is_in_process(wanted.target):
        return _in_process(opened_in_process(wanted.target), stories, kubernetes)
    try:
        return asyncio.run(_over_socket(wanted, stories, kubernetes, concurrency))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@seldom_collected()
def _in_process(make: Callable[[], DirectRuntime], stories: Iterable[Story], kubernetes: str) -> Run:
    """Each story has a runtime and a time of its own."""
    run = Run()

    async def one(story: Story) -> None:
        target = make()
        run.name, run.version = target.name, target.version
        run.told.append(await tell(target, story, "run", kubernetes, virtual=True))
        run.left += [f"{story.name}: {each}" for each in await sweep(target, "run")]

    for story in stories:
        on_virtual_time(one(story))
    return run


async def _over_socket(wanted: Wanted, stories: Iterable[Story], kubernetes: str, concurrency: int) -> Run:
    task = asyncio.current_task()
    if task is not None:
        # As Ctrl-C does: what was made is removed before the end.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with opened(wanted) as target:
        return await tell_and_sweep(
            target, wanted.run_id, lambda: tell_all(target, stories, wanted.run_id, kubernetes, concurrency)
        )


async def tell_and_sweep(
    target: DirectRuntime, run_id: str, told: Callable[[], Awaitable[list[Told]]]
) -> Run:
    """Tell stories and take away what they have left, also when the run is broken off."""
    run = Run(target.name, target.version)
    try:
        await see_that_containers_run(target, run_id)
        run.told = await told()
    except BaseException:
        for each in await sweep(target, run_id, in_haste=True):
            complain(left_behind(each))
        raise
    run.left = await sweep(target, run_id)
    return run


def left_behind(what: str) -> str:
    """The message about what could not be removed."""
    return f"left behind at the runtime: {what}; remove it by hand"
