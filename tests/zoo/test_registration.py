"""A bug says what it is by itself, and one that is not registered as it should be is refused at once."""

from collections.abc import Callable
from typing import Any

import pytest

from kubelet_bugs.bug import Bug, BugError, WrongParts, bug, parts_with, registered_bugs
from kubelet_fakes.runtime import RuntimeCore
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules
from kubelet_reference.pleg.generic import Pleg
from kubelet_reference.status.phase import pod_phase


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Bug]:
    """An empty registry."""
    bugs: dict[str, Bug] = {}
    monkeypatch.setattr("kubelet_bugs.bug._REGISTERED", bugs)
    return bugs


class Sleepy(Pleg):
    """It sleeps.

    What follows is no part of the title.
    """


class Rash(ActionRules):
    """It does not look."""


class Forgetful(RuntimeCore):
    """It forgets,
    and goes on.
    """  # noqa: D205 - a title of two lines


class Nothing:
    """It replaces nothing."""


class Silent(Pleg):  # noqa: D101 - that is what is wrong with it
    pass


def always_running(*_: object, **__: object) -> str:
    """It runs."""
    return "Running"


def both_wrong() -> WrongParts:
    """Two parts are wrong."""
    return parts_with(Sleepy, Rash, pod_phase=always_running)


def of_both_sides() -> WrongParts:
    """Neither the kubelet nor the runtime is right."""
    return parts_with(Sleepy, Forgetful)


def no_parts() -> Any:
    """It returns something else."""
    return 5


def test_a_class_replaces_what_it_derives_from(registry: dict[str, Bug]) -> None:
    """Components, rules and parts of the runtime find their places; the first paragraph is the title."""
    for wrong in (Sleepy, Rash, Forgetful):
        bug(f"X-{wrong.__name__}", breaks="A-1")(wrong)
    sleepy, rash, forgetful = registry.values()

    assert (sleepy.parts().pleg, sleepy.title, sleepy.is_of_runtimes) == (Sleepy, "It sleeps.", False)
    assert isinstance(getattr(rash.parts().runtime.compute_actions, "__self__", None), Rash)
    assert (forgetful.runtime().core, forgetful.title) == (Forgetful, "It forgets, and goes on.")
    assert (forgetful.is_of_runtimes, forgetful.parts().pleg) == (True, Pleg)
    assert registered_bugs() == registry


def test_a_decision_names_its_part_and_a_recipe_has_several(registry: dict[str, Bug]) -> None:
    """Functions stand for decisions, or return the parts."""
    bug("X-1", breaks=("A-1", "A-2"), part="pod_phase", aliases="Y-1", kubernetes="1.35")(always_running)
    bug("X-2", breaks="A-1")(both_wrong)
    one, two = registry.values()

    assert one.parts().status.pod_phase is always_running
    assert (one.breaks, one.aliases, one.kubernetes) == (("A-1", "A-2"), ("Y-1",), "1.35")
    assert (two.parts().pleg, two.parts().status.pod_phase) == (Sleepy, always_running)


@pytest.mark.parametrize(
    ("wrong", "more", "why"),
    [
        (Nothing, {}, "no part is replaced by a Nothing"),
        (Silent, {}, "it has no docstring"),
        (Sleepy, {"part": "pleg"}, "leave `part` out"),
        (Sleepy, {"breaks": ()}, "it breaks no contract"),
        (pod_phase, {}, "name in `part` the decision"),
        (pod_phase, {"part": "phase"}, "no part is replaced by 'phase'"),
        (
            always_running,
            {"part": "sandbox_changed"},
            "may replace kubelet.status.sandbox_changed or kubelet.runtime.sandbox_changed: say which",
        ),
        (of_both_sides, {}, r"its parts are of \['kubelet', 'runtime'\]"),
        (no_parts, {}, "it returns int"),
    ],
)
def test_mistakes_are_refused(
    registry: dict[str, Bug], wrong: Callable[..., Any], more: dict[str, Any], why: str
) -> None:
    """The error names the bug, where it stands and what to do; nothing is registered."""
    options: dict[str, Any] = {"breaks": "A-1", **more}

    with pytest.raises(BugError, match=rf"X-1 \(\S*\.{wrong.__name__}\): .*{why}"):
        bug("X-1", **options)(wrong)
    assert not registry


def test_an_id_is_given_once(registry: dict[str, Bug]) -> None:
    """The second bug of one id is refused."""
    bug("X-1", breaks="A-1")(Sleepy)

    with pytest.raises(BugError, match=r"X-1 .*there already"):
        bug("X-1", breaks="A-2")(Rash)
    assert registry["X-1"].breaks == ("A-1",)
