"""Waits of scenarios: on a machine that stands still for a while, and for what is over before it is seen."""

import asyncio
import json

import pytest

from kubelet_conformance.node import Node, container
from kubelet_conformance.plugin.play import perform
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

CONTRACT = "START-02"


@pytest.mark.parametrize(
    ("stalled", "comes", "expected"),
    [
        (0.0, 2.5, (CONTRACT, False, 102.0)),
        (2.0, 4.5, (CONTRACT, True, 104.5)),
        (2.0, 5.5, (CONTRACT, False, 105.0)),
        (70.0, 61.5, (CONTRACT, True, 161.5)),
        (70.0, 99.0, ("", False, 162.0)),
    ],
)
def test_stalls_do_not_count(stalled: float, comes: float, expected: tuple[str, bool, float]) -> None:
    """A wait of 2 s lasts so much longer, with 1 s to recover; one of more than a minute proves nothing."""

    async def waits(node: Node) -> None:
        there: list[bool] = []

        async def world() -> None:
            await node.wait(1.9)
            if stalled:
                node.target.recorder.record("stall", of="kubelet", seconds=stalled)
            await node.wait(comes - 1.9)
            there.append(True)
            node.target.recorder.record("fault", what="it is there")

        await node.wait(100)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(world())
            tasks.create_task(node.until(lambda: bool(there), "it", within=2, contract=CONTRACT))

    records = map(json.loads, perform(waits, "waits", open_stage(Choice())).trace.splitlines())
    [wait] = [each for each in records if each.get("kind") == "expect"]

    assert (wait["contract"], wait["met"], wait["t"]) == expected


def test_pod_whose_container_has_ended_has_run() -> None:
    """A life that is over before a status tells of it was a life."""

    async def runs(node: Node) -> None:
        await node.run(container("c1"), container("c2", "exit 0 0"), restart="Never", within=5)

    performed = perform(runs, "runs", open_stage(Choice()))

    assert (performed.unmet, performed.failed) == ("", "")
