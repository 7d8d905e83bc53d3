"""The vocabulary: what its words mean over a sequence of moments."""

from __future__ import annotations

import pytest
from story import Story

from kubelet_conformance.contract.frame import formula
from kubelet_conformance.contract.words import (
    Formula,
    Implication,
    before,
    call,
    done,
    exited,
    happened,
    once,
)


def story_of_one_container() -> Story:
    """A container that is created, started, exits and is removed."""
    s = Story()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(1).exited(c1, code=1)
    s.remove(c1)
    return s


@pytest.mark.parametrize(
    ("when", "then", "kept", "breaks"),
    [
        (done("StartContainer"), once(call("StartContainer")), 1, 0),
        (call("RemoveContainer"), before(once(exited())), 1, 0),
        (call("RemoveContainer"), before(exited()), 1, 0),
        (call("RemoveContainer"), before(exited()) & ~once(done("StartContainer")), 0, 1),
        (call("RemoveContainer"), ~once(exited()), 0, 1),
        (call("RemoveContainer"), (~exited()).since(done("StartContainer")), 0, 1),
        (exited(), before((~exited()).since(done("StartContainer"))), 1, 0),
        (call("RemoveContainer"), once(exited()) & once(call("StartContainer")), 1, 0),
        (call("RemoveContainer"), once(call("StopContainer")) | once(exited()), 1, 0),
        (call("StopContainer"), once(exited()), 0, 0),
    ],
    ids=str,
)
def test_meaning(when: Formula, then: Formula, kept: int, breaks: int) -> None:
    """Each word holds at the moments its name says, for one container's life."""
    s = story_of_one_container()

    @formula("START-01", each="container")
    def said() -> Implication:
        """A rule."""
        return when.implies(then)

    outcome = s.judge_with(said)

    assert (outcome.activations - outcome.breaks, outcome.breaks) == (kept, breaks)


def test_and_or_cannot_slip_in() -> None:
    """Python's `and`, `or` and `if` on a formula raise instead of dropping one side."""
    with pytest.raises(TypeError, match="write &"):
        bool(call("A"))


def test_formula_reads_as_a_sentence() -> None:
    """A formula prints itself in words."""
    said = call("RemoveContainer").implies(before((~done("StartContainer")).since(exited())))

    assert str(said) == (
        "RemoveContainer needs before: (not StartContainer succeeded since container exited)"
    )


def test_either_matches_any_of_its_patterns() -> None:
    """`either` joins patterns and keeps each one's own condition."""
    joined = call("A").where(lambda _: False, "never").either(happened("exited"))

    assert joined.keys == {"call:A", "runtime:exited"}
    assert str(joined) == "A where never or exited at the runtime"
