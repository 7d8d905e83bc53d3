"""Guided histories: of those that were drawn the ones that hold something new are run."""

from itertools import islice

import pytest
from command import in_process

from kubelet_conformance.campaigns.histories.history import History
from kubelet_conformance.campaigns.histories.novelty import DRAWN_FOR_ONE, Novelty, traits_of
from kubelet_conformance.campaigns.histories.search import Chunk, drawn, histories_of
from kubelet_conformance.campaigns.histories.steps import Heal, InjectFault, Reboot, Wait, Want
from kubelet_conformance.node import pod
from kubelet_conformance.targets.controls import Effect

USUAL = History((Want(pod()), Wait(1)))
FAULTY = History((Want(pod()), InjectFault("StopContainer", Effect.LOST_REPLY), Heal()))
REBOOTED = History((Want(pod()), Wait(1), Reboot()))


def test_what_is_new_is_chosen_first() -> None:
    """The history with most that none before held; what was held by many counts little."""
    novelty = Novelty()
    first = list(novelty.chosen([USUAL, USUAL, FAULTY, FAULTY, FAULTY], 5))[:2]
    then = list(novelty.chosen([USUAL, FAULTY, REBOOTED], 1))

    assert first == [FAULTY, USUAL]
    assert then == [REBOOTED]


def test_a_fault_is_seen_beside_each_step() -> None:
    """A fault before a step and the same fault after it are one trait; a number is none."""
    traits = traits_of(FAULTY)
    fault = "strike StopContainer lost-reply"

    assert traits >= {("beside", fault, each) for each in ("want  ", fault, "heal  ")}
    assert not {("beside", "heal  ", fault), ("beside", "want  ", fault)} & traits
    assert traits_of(History((Wait(1),))) == traits_of(History((Wait(2),)))


def test_a_chunk_is_chosen_from_more() -> None:
    """As many as without guidance, all of them drawn from the same seed, the same each time."""
    chunk = Chunk(7, 4)
    chosen = list(histories_of(chunk, Novelty()))
    every = drawn(Chunk(7, DRAWN_FOR_ONE * 4))

    assert len(chosen) == 4
    assert all(each in every for each in chosen)
    assert chosen == list(histories_of(chunk, Novelty())) != list(islice(every, 4))


def test_command_runs_guided_histories(capsys: pytest.CaptureFixture[str]) -> None:
    """The report is that of histories."""
    ended = in_process(capsys, "run", "--histories", "2", "--guided", "--seed", "3")

    assert ended.code == 0, ended.out
    assert "Played 2 histories on kubelet reference" in ended.out
