"""Histories on wall time: the same things happen, and none of them takes long."""

from typing import Any

import pytest

from kubelet_conformance.campaigns.histories.bounds import bounded
from kubelet_conformance.campaigns.histories.history import History
from kubelet_conformance.campaigns.histories.search import chunks, drawn
from kubelet_conformance.campaigns.histories.steps import (
    DelayWatch,
    Delete,
    DeleteMirror,
    DisturbEvents,
    End,
    InjectFault,
    Outage,
    RestartKubelet,
    SetProbeResponse,
    Step,
    Wait,
    Want,
)
from kubelet_conformance.node import container, pod
from kubelet_conformance.node.manifests import exec_hook, exec_probe
from kubelet_conformance.targets.controls import Effect

POD = pod(container("c1", "run"), grace=5)


def bound(*steps: Step, by_files: bool = False) -> tuple[Step, ...]:
    """The steps for a kubelet on wall time."""
    return bounded(History(steps, orders=(1, 2), seed=3), by_files=by_files).steps


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (Wait(60), Wait(12)),
        (Wait(0.5), Wait(0.5)),
        (Delete(1, 60), Delete(1, 5)),
        (Delete(1), Delete(1)),
        (DeleteMirror(1, 60), DeleteMirror(1, 5)),
        (InjectFault("PullImage", Effect.NONE, 2, 30), InjectFault("PullImage", Effect.NONE, 2, 5)),
        (DelayWatch(20), DelayWatch(5)),
        (RestartKubelet(20, kill=False), RestartKubelet(3, kill=False)),
        (SetProbeResponse("/a", 500), SetProbeResponse("/a", 500)),
        (DisturbEvents("cut"), DisturbEvents("cut")),
        (End(1, 137), End(1, 137)),
    ],
)
def test_what_takes_long_is_bounded(step: Step, expected: Step) -> None:
    """Seconds take the place of minutes; the rest stays."""
    assert bound(step) == (expected,)


def test_all_waits_together_are_bounded() -> None:
    """However many waits there are, a history is over in about a minute."""
    waits = [each.seconds for each in bound(*[Wait(60)] * 10) if isinstance(each, Wait)]

    assert waits == [12.0] * 4 + [0.0] * 6


def test_events_that_are_found_missing_minutes_later_are_not_lost() -> None:
    """Only the stream of container events may break."""
    assert bound(DisturbEvents("lose", 1), DisturbEvents("delay", 1, 40)) == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"command": "exit 137 30"}, {"command": ["exit", "137", "8"]}),
        ({"command": "seq 0@30 137@1 run"}, {"command": ["seq", "0@8", "137@1", "run"]}),
        ({"command": "run stopdelay=45"}, {"command": ["run", "stopdelay=8"]}),
        (
            {"lifecycle": {"postStart": exec_hook("x 0 40")}},
            {"lifecycle": {"postStart": exec_hook("x 0 8")}},
        ),
        (
            {"livenessProbe": exec_probe("x 0 0", periodSeconds=10, initialDelaySeconds=15)},
            {"livenessProbe": exec_probe("x 0 0", periodSeconds=3, initialDelaySeconds=4)},
        ),
    ],
)
def test_commands_and_probes_are_bounded(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """A command takes at most longer than the grace period, and probes follow each other soon."""
    given = {"command": "run", **fields}
    (want,) = bound(Want(pod(container("c1", **given), grace=40, activeDeadlineSeconds=60, hostNetwork=True)))

    assert isinstance(want, Want)
    spec = want.manifest["spec"]
    assert expected.items() <= spec["containers"][0].items()
    assert "hostNetwork" not in spec
    assert (spec["terminationGracePeriodSeconds"], spec["activeDeadlineSeconds"]) == (5, 10)


def test_a_kubelet_without_an_api_server_gets_files() -> None:
    """All pods are static, and nothing happens at an API server."""
    steps = (
        Want(POD),
        Outage(),
        DelayWatch(1),
        DeleteMirror(0),
        Delete(0, 1),
        InjectFault("get pods", Effect.BEFORE),
    )

    assert bound(*steps, by_files=True) == (Want(POD, static=True), Delete(0))


def test_a_bounded_history_stays_as_it_is() -> None:
    """A kept one is played again as it was; the order of ready inputs is the kubelet's own."""
    (chunk,) = chunks(50, 0)
    for history in drawn(chunk):
        once = bounded(history, by_files=False)

        assert bounded(once, by_files=False) == once
        assert (once.orders, once.seed) == ((), 0)
