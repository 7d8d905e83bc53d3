"""Plays that never end: ended by what repeats in them, reported as such, and the others go on."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from cri_api.v1 import api_pb2 as cri
from playing_run import runs_of

from kubelet_conformance.campaigns.histories import search
from kubelet_conformance.campaigns.histories.campaign import Campaign, HistoriesRequest
from kubelet_conformance.campaigns.histories.history import History, KeptHistory
from kubelet_conformance.campaigns.histories.play import ENDLESS
from kubelet_conformance.campaigns.histories.steps import Wait, Want
from kubelet_conformance.campaigns.sweep.kinds import blows_at
from kubelet_conformance.campaigns.sweep.play import Undisturbed
from kubelet_conformance.campaigns.sweep.play import play as play_with_fault
from kubelet_conformance.campaigns.sweep.points import Point, Role
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.node import Node, pod
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.controls import ScenarioError, Target
from kubelet_conformance.targets.in_process import repeats, stage
from kubelet_conformance.targets.opening import open_stage
from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime import FakeRuntime
from kubelet_fakes.runtime.service import RuntimeParts

BURST = 300
EVENTED, OTHER = "pleg_evented.events_drive_the_workers", "start.instances_follow_each_other"


class _RepeatsAnEvent(FakeRuntime):
    """Sends the first event over and over, `PAUSE` seconds apart: the kubelet handles each at once."""

    PAUSE: float | None = None

    async def GetContainerEvents(
        self,
        request: cri.GetEventsRequest,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as the runtime has it
    ) -> AsyncGenerator[cri.ContainerEventResponse, None]:
        async for event in super().GetContainerEvents(request, timeout=timeout):
            while True:
                yield event
                if self.PAUSE is not None:
                    await LoopClock().sleep(self.PAUSE)


@pytest.fixture(autouse=True)
def _that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(RuntimeParts(), runtime=_RepeatsAnEvent)

    def parts_of(_: str) -> RuntimeParts:
        return wrong

    monkeypatch.setattr(stage, "runtime_parts_of", parts_of)
    monkeypatch.setattr(repeats, "BURST", BURST)
    monkeypatch.setattr(repeats, "REPEATS_MAX", 2 * BURST)


@pytest.mark.parametrize("pause", [None, 0.01])
def test_a_scenario_without_end_is_reported_and_the_others_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, pause: float | None
) -> None:
    """Whether others may run meanwhile or not: it is ended, counts as broken, and the next one is kept."""
    monkeypatch.setattr(_RepeatsAnEvent, "PAUSE", pause)

    ended = runs_of(capsys, monkeypatch)("--scenario", EVENTED, "--scenario", OTHER)

    assert ended.code == 1, ended.out
    assert (
        f"the play does not end: a record of kind message comes again and again, {BURST} times" in ended.out
    )
    assert "LOOP-22" not in ended.out, "the kubelet has not ended by itself"
    assert "2 traces" in ended.out


def test_a_history_without_end_is_shrunk_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a find of its own, and the history after it is played."""
    monkeypatch.setattr(search, "_ENDLESS_SHRINKS_MAX", 4)
    steps = Want(pod()), Wait(5), Want(pod())
    endless, other = History(steps, evented=True), History(steps)
    request = HistoriesRequest(
        0, kept=[KeptHistory(tmp_path / f"{n}.json", h) for n, h in (("a", endless), ("b", other))]
    )
    campaign = Campaign(
        Choice(kubernetes="1.32"), (), lambda _: True, Check(()), tmp_path, tmp_path, lambda _: None
    )

    campaign.run(request)

    assert [each.what for each in campaign.found] == [ENDLESS]
    assert "again and again" in campaign.found[0].words[-1]
    assert campaign.played == 2


def test_a_play_of_the_sweep_without_end_is_ended() -> None:
    """The call that a wait without end repeats is named."""

    async def without_end(node: Node) -> None:
        while True:
            await node.wait(3600)

    base = Undisturbed("endless", (Point("Status", 1, Role.POLL),))
    played = play_with_fault(without_end, base, blows_at(base.points[0])[0], open_stage(Choice()), ())

    assert [one.what for one in played.breaks] == ["kubelet"]
    assert "comes again and again" in played.breaks[0].happened


def test_what_spins_without_a_record_is_ended() -> None:
    """No time passes and nothing is recorded: the clock knows."""

    async def spins(target: Target) -> None:
        while True:
            await target.sleep(0)

    with pytest.raises(ScenarioError, match=r"the play does not end: the program spins at 0.0 s"):
        open_stage(Choice()).play(spins, "spins", {}, "1.32")
