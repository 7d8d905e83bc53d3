"""Histories as data: kept, described, and played the same each time."""

from pathlib import Path
from typing import Any, get_args

import pytest
from sampling import sampled

from kubelet_conformance.campaigns.histories.history import (
    SCHEMA,
    History,
    HistoryError,
    KeptHistory,
    as_json,
    from_json,
    keep,
    kept_in,
    name_of,
)
from kubelet_conformance.campaigns.histories.play import PlayedHistory, as_scenario, as_words, play
from kubelet_conformance.campaigns.histories.search import chunks, seek
from kubelet_conformance.campaigns.histories.steps import (
    AddAgain,
    Delete,
    DeleteMirror,
    End,
    Heal,
    InjectFault,
    KillSandbox,
    Outage,
    Publish,
    Reboot,
    RestartKubelet,
    RestartRuntime,
    SetProbeResponse,
    Step,
    Update,
    Wait,
    Want,
)
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import Node, container, pod
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.controls import Effect, Target
from kubelet_conformance.targets.opening import open_stage
from kubelet_fakes.faults import API_VERBS

REFERENCE = Choice(kubernetes="1.32")
CONTRACTS = list(every_contract().values())
KEPT = kept_in(Path(__file__).with_name("kept"))
EVERY_STEP = History(
    (
        Want(pod(container("c1", "run"), container("c2", "run"))),
        Want(pod(container("c1", "run")), static=True),
        Wait(5),
        End(0, 1),
        End(1, oom=True),
        Update(0, 0, "img:2"),
        Update(1, 0, "img:2"),
        Wait(20),
        DeleteMirror(0),
        InjectFault("StopContainer", Effect.AFTER, 1, 0.5, "DEADLINE_EXCEEDED"),
        KillSandbox("kill_sandbox", 0),
        SetProbeResponse("/a", 500),
        Publish("img:3", there=False),
        RestartKubelet(2, kill=False),
        RestartRuntime(),
        Outage(),
        Wait(3),
        Heal(),
        Delete(0, 1),
        Delete(0),
        Wait(30),
        AddAgain(0),
        AddAgain(0),
        Reboot(),
    ),
    orders=(1, 0, 2),
    seed=1,
)
UNPLAYED = play(History(()), REFERENCE, ())


def lines(trace: bytes) -> list[str]:
    """The records of a trace, without its header."""
    return trace.decode().splitlines()[1:]


def test_a_history_comes_back_from_its_json() -> None:
    """What is kept of a history is all of it."""
    drawn: list[History] = []

    def draw(history: History) -> PlayedHistory:
        drawn.append(history)
        return UNPLAYED

    for chunk in chunks(150, 1):
        assert seek(chunk, draw, lambda _: ()) is None

    for history in drawn:
        text = as_json(history)
        assert as_json(from_json(text)) == text
        assert from_json(text) == history
    seen = {type(step) for history in drawn for step in history.steps}
    assert seen == set(get_args(Step)), "every kind of step is drawn"
    struck = {
        step.rpc.partition(" ")[0]
        for history in drawn
        for step in history.steps
        if isinstance(step, InjectFault)
    }
    assert struck >= API_VERBS - {"update"} | {"httpGet", "tcpSocket", "grpc", "StopContainer"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "no history"),
        (b'{"steps":[{"step":"dance"}]}', "Invalid value 'dance'"),
        (b'{"steps":[],"colour":"red"}', "unknown field `colour`"),
        (b'{"steps":[],"schema":%d}' % (SCHEMA + 1), f"this suite reads {SCHEMA}"),
    ],
)
def test_what_is_no_history_is_refused(text: bytes, problem: str) -> None:
    """A file that holds no history, or one of a later schema, is refused with the reason."""
    with pytest.raises(HistoryError, match=problem):
        from_json(text)


def test_a_kept_history_is_found_again(tmp_path: Path) -> None:
    """A history that is kept comes back under a name that tells what it broke."""
    history = History((Want(pod()),))
    keep(tmp_path / "new", history, "TERM-01")

    assert [each.history for each in kept_in(tmp_path / "new")] == [history]
    assert [each.name for each in kept_in(tmp_path / "new")] == [name_of(history, "TERM-01")]
    assert kept_in(tmp_path / "none") == []


def test_every_kind_of_step_is_reported_and_done() -> None:
    """Each step of a history that finds what it is about is done, and described in words and in code."""
    played = play(EVERY_STEP, REFERENCE, ())
    passed_over = 1

    assert not played.failed, played.failed
    # Those at the end are of the healing: faults, a server that failed, an image that was missing.
    assert len(played.progress.done) == len(EVERY_STEP.steps) + 3 - passed_over
    assert len(as_words(played)) == len(played.progress.done) + 1
    assert all(one.words and one.code for one in played.progress.done)


def test_steps_about_nothing_are_passed_over() -> None:
    """A step for which nothing is there does nothing, so that any part of a history is a history."""
    steps = (
        *(End(0), Update(0, 0, "img:2"), Delete(0), DeleteMirror(0), AddAgain(0)),
        KillSandbox("kill_sandbox", 0),
    )
    played = play(History(steps), REFERENCE, ())

    assert not played.failed, played.failed
    assert [one.words for one in played.progress.done] == ["all faults are healed"]


def test_the_scenario_provokes_the_same() -> None:
    """The scenario that is printed, pasted and played, gives the trace of the history."""
    played = play(EVERY_STEP, REFERENCE, (), "same")
    reported: dict[str, Any] = {}
    exec(as_scenario(played, "TERM-01"), reported)  # noqa: S102 - that is what is under test
    scenario = reported["test_history_that_breaks_term_01"]

    async def work(target: Target) -> None:
        await scenario(Node(target))

    trace = open_stage(Choice(kubernetes="1.32", seed=1)).play(work, "same", {}, "1.32")

    assert lines(trace) == lines(played.trace)


def test_a_history_gives_one_trace() -> None:
    """The same history gives the same trace, byte for byte."""
    assert play(EVERY_STEP, REFERENCE, ()).trace == play(EVERY_STEP, REFERENCE, ()).trace


def test_choices_of_order_matter() -> None:
    """What is drawn for the order of ready inputs reaches the kubelet."""
    steps = tuple(Want(pod()) for _ in range(4))
    plain = play(History((*steps, Delete(1), Delete(2))), REFERENCE, ())
    other = play(History((*steps, Delete(1), Delete(2)), orders=(1,)), REFERENCE, ())

    assert plain.trace != other.trace


@pytest.mark.parametrize("kept", sampled(KEPT, 6), ids=lambda kept: kept.name)
def test_what_was_found_once_is_kept_now(kept: KeptHistory) -> None:
    """A history that once showed a mistake of the reference, of a fake or of a judge breaks nothing.

    `IMAGE-16-c11f1178@1.26.json` did so with a kubelet of that version.
    """
    _, _, version = kept.name.partition("@")
    played = play(kept.history, Choice(kubernetes=version) if version else REFERENCE, CONTRACTS)

    assert not played.failed, played.failed
    assert played.broken() == ()


@pytest.mark.parametrize("kubernetes", ["1.32", "1.36"])
def test_crash_loop_is_at_rest(kubernetes: str) -> None:
    """From 1.35 on no sync tells that what ended waits, before its back-off is over."""
    crash_loop = History((Want(pod(container("c1", "exit 1 0"))),))

    assert play(crash_loop, Choice(kubernetes=kubernetes), ()).progress.not_converged == ()


@pytest.mark.parametrize("script", ["exit 1 3", "seq 1@100 1@8 run"])
def test_what_is_not_begun_again_is_not_at_rest(script: str) -> None:
    """Be it before the node has come to rest, or after that: a sync that found a back-off is not repeated."""
    crash = History((Want(pod(container("c1", script))),))

    played = play(crash, Choice(kubelet="bug:MUT-WORK-15", kubernetes="1.32"), ())

    assert played.progress.not_converged == ("c1 of pod-1 is terminated Error",)


@pytest.mark.parametrize(("kubernetes", "there"), [("1.28", False), ("1.29", True)])
@pytest.mark.parametrize("static", [True, False])
def test_sidecars_are_left_out_where_there_are_none(kubernetes: str, *, there: bool, static: bool) -> None:
    """Up to 1.28 a pod with a sidecar would be refused, so that its history would tell nothing."""
    sidecar = container("s1", "run", restartPolicy="Always")
    wanted = Want(pod(container("c1", "run"), init=(sidecar,)), static=static)

    played = play(History((wanted,)), Choice(kubernetes=kubernetes), CONTRACTS)

    assert played.broken() == ()
    assert (b'"name":"s1"' in played.trace) is there
