"""Strategies that draw histories: what happens, how often, and which order chance takes.

A history is drawn whole and played in one go, and not as a `RuleBasedStateMachine`: a machine would have to
stop its event loop between any two rules, and a list of steps is what is kept, told and replayed anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

from kubelet_conformance.histories.history import (
    AddAgain,
    BreakRecords,
    Delete,
    DeleteMirror,
    DisturbEvents,
    End,
    Flip,
    ForgetHistory,
    Heal,
    History,
    LateWatch,
    Outage,
    Publish,
    Reboot,
    RestartKubelet,
    RestartRuntime,
    Step,
    Strike,
    Update,
    Wait,
    Want,
)
from kubelet_conformance.histories.pods import IMAGES, PATHS, pods

__all__ = ("STEPS_MAX", "histories")

if TYPE_CHECKING:
    from kubelet_conformance.targets.protocols import Effect

T = TypeVar("T")

STEPS_MAX = 40
_STEPS_MEAN = 24
_ORDERS_MEAN = 4
_ORDERS_MAX = 20
_CHOICES_MAX = 3
"""The largest number in the list of choices."""
_CALLS = (
    *("StopContainer", "StartContainer", "CreateContainer", "RunPodSandbox", "StopPodSandbox"),
    *("PullImage", "RemoveContainer", "RemovePodSandbox", "ContainerStatus", "PodSandboxStatus"),
    *("ListContainers", "ListPodSandbox", "ExecSync", "ImageStatus", "Status"),
)
_CODES = ("INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED")
_EFFECTS: tuple[Effect, ...] = ("before", "after", "none", "hang", "lost-reply")

_numbers = st.integers(0, 5)
_graces = st.sampled_from((None, None, 0, 1, 10, 60))
_sources = st.integers(0, 5).map((5).__eq__)
"""True where a pod is static: about one in six is."""
_hearing = st.sampled_from((False, False, False, True))
"""Whether the kubelet hears container events: about one in five does."""
_waits = st.sampled_from((1.0, 0.0, 0.1, 0.5, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0)).map(Wait)


@st.composite
def _strikes(draw: st.DrawFn) -> Step:
    rpc = draw(st.sampled_from(_CALLS))
    effect = draw(st.sampled_from(_EFFECTS))
    delay = draw(st.sampled_from((0.0, 1.0, 10.0) if effect != "none" else (1.0, 0.2, 7.0, 30.0)))
    code = draw(st.sampled_from(_CODES)) if effect in {"before", "after"} else "INTERNAL"
    return Strike(rpc, effect, draw(st.sampled_from((1, 2, 5))), delay, code)


_disturbances = st.one_of(
    st.builds(DisturbEvents, st.just("lose"), st.sampled_from((1, 2, 5))),
    st.builds(DisturbEvents, st.just("delay"), st.sampled_from((1, 2, 5)), st.sampled_from((1.0, 7.0, 40.0))),
    st.builds(DisturbEvents, st.just("reverse"), st.sampled_from((2, 3, 5))),
    st.just(DisturbEvents("cut")),
)


def _steps(*, sidecars: bool, evented: bool) -> st.SearchStrategy[Step]:
    """One step; what comes up more often is named more often."""
    wants = st.builds(Want, pods(sidecars=sidecars), _sources)
    ends = st.builds(
        End, _numbers, st.sampled_from((0, 1, 137)), st.sampled_from((False, False, False, True))
    )
    deletions = st.builds(Delete, _numbers, _graces)
    kubelets = st.builds(RestartKubelet, st.sampled_from((1.0, 0.0, 20.0)), st.booleans())
    return st.one_of(
        _waits,
        wants,
        _waits,
        ends,
        deletions,
        _waits,
        ends,
        _strikes(),
        st.builds(AddAgain, _numbers),
        _waits,
        kubelets,
        st.builds(Update, _numbers, _numbers, st.sampled_from(IMAGES)),
        _strikes(),
        st.builds(DeleteMirror, _numbers, _graces),
        st.builds(Flip, st.sampled_from(PATHS), st.sampled_from((200, 500, 0))),
        st.builds(BreakRecords, st.just("kill_sandbox"), _numbers),
        st.sampled_from(
            (
                Heal(),
                RestartRuntime(),
                Reboot(),
                Outage(),
                ForgetHistory(),
                *map(LateWatch, (2.0, 20.0)),
                *(Publish(image, there) for image in IMAGES[1:] for there in (False, True)),
            )
        ),
        *([_disturbances, _disturbances] if evented else []),
    )


@st.composite
def _lists(draw: st.DrawFn, elements: st.SearchStrategy[T], most: int, mean: int) -> tuple[T, ...]:
    """Up to `most` elements, about `mean` of them: Hypothesis' own lists are mostly short."""
    found: list[T] = []
    while len(found) < most and draw(st.integers(0, mean)):
        found.append(draw(elements))
    return tuple(found)


@st.composite
def histories(draw: st.DrawFn, *, sidecars: bool = True) -> History:
    """A history: a pod first, and then whatever happens."""
    first = draw(st.builds(Want, pods(sidecars=sidecars), _sources))
    evented = draw(_hearing)
    steps = draw(_lists(_steps(sidecars=sidecars, evented=evented), STEPS_MAX, _STEPS_MEAN))
    orders = draw(_lists(st.integers(0, _CHOICES_MAX), _ORDERS_MAX, _ORDERS_MEAN))
    return History((first, *steps), orders, draw(st.integers(0, 3)), evented)
