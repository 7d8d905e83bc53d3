"""Which init container is next, and what comes of one that failed."""

from functools import partial

import pytest
from decisions_bench import a_pod, a_record, actions, names, records

from kubelet_reference.api.records import ContainerRecord
from kubelet_reference.kuberuntime.actions.init_containers import INIT_ROWS, InitFacts, init_progress

THREE = ("i1", "i2", "i3")
OOM = a_record("i1", "EXITED", code=0, reason="OOMKilled")


def ended(name: str, code: int = 0) -> ContainerRecord:
    """An instance that exited."""
    return a_record(name, "EXITED", code=code)


@pytest.mark.parametrize(
    ("inits", "known", "done", "following", "decided_by"),
    [
        pytest.param((), [], True, "", "", id="I1"),
        pytest.param(THREE, [a_record("c1")], True, "", "", id="I2"),
        pytest.param(THREE, [a_record("c1"), ended("i1", 1)], True, "", "", id="I2-before-failure"),
        pytest.param(THREE, [ended("i1"), ended("i2", 1)], False, "i2", "i2-0", id="I3-exit-code"),
        pytest.param(THREE, [OOM], False, "i1", "i1-0", id="I3-oom"),
        pytest.param(THREE, [a_record("i1", "UNKNOWN")], False, "i1", "i1-0", id="I3-unknown"),
        pytest.param(THREE, [ended("i1", 1), ended("i2")], False, "i1", "i1-0", id="I3-earlier"),
        pytest.param(THREE, [ended("i1", 1), ended("i3", 1)], False, "i3", "i3-0", id="I3-last"),
        pytest.param(THREE, [ended("i1"), a_record("i2")], False, "", "i2-0", id="I4"),
        pytest.param(THREE, [ended("i3")], True, "", "i3-0", id="I5-earlier-removed"),
        pytest.param(THREE, [ended("i1")], False, "i2", "i1-0", id="I6"),
        pytest.param(THREE, [ended("i2")], False, "i3", "i2-0", id="I6-earlier-removed"),
        pytest.param(THREE, [], False, "i1", "", id="I7-nothing"),
        pytest.param(THREE, [a_record("i1", "CREATED")], False, "i1", "", id="I7-created"),
        pytest.param(THREE, [ended("i1"), a_record("i2", "CREATED")], False, "i2", "i1-0", id="I7-successor"),
        pytest.param(THREE, [ended("c1")], False, "i1", "", id="I7-app-ended"),
    ],
)
def test_row(
    inits: tuple[str, ...],
    known: list[ContainerRecord],
    done: bool,  # noqa: FBT001 - a column of the table
    following: str,
    decided_by: str,
) -> None:
    """Each row of the table decides as it stands (INIT-01..18)."""
    found = init_progress(a_pod(inits=inits), records(*known))

    assert found.done is done
    assert (found.next.name if found.next else "") == following
    assert (found.record.id if found.record else "") == decided_by


_facts = partial(
    InitFacts,
    has_inits=True,
    app_runs=False,
    some_failed=False,
    runs=False,
    succeeded=False,
    is_last=False,
)

#: Facts that each row decides, with all that the rows below it look at.
FACTS = {
    "I1": _facts(has_inits=False, app_runs=True),
    "I2": _facts(app_runs=True, some_failed=True, succeeded=True, is_last=True),
    "I3": _facts(some_failed=True, runs=True),
    "I4": _facts(runs=True, is_last=True),
    "I5": _facts(succeeded=True, is_last=True),
    "I6": _facts(succeeded=True),
    "I7": _facts(),
}


def test_each_row_decides() -> None:
    """Each row is the first that fits the facts it is for."""
    assert [INIT_ROWS.row(FACTS[row.name]) for row in INIT_ROWS] == list(INIT_ROWS)


@pytest.mark.parametrize(
    ("policy", "known", "expected"),
    [
        pytest.param("Never", [], {"init": "i1"}, id="first"),
        pytest.param("Never", [ended("i1", 1)], {"kill_pod": True}, id="failed-never"),
        pytest.param("Never", [a_record("i1", "UNKNOWN")], {"kill_pod": True}, id="unknown-never"),
        pytest.param("OnFailure", [ended("i1", 1)], {"init": "i1"}, id="failed-onfailure"),
        pytest.param("Always", [ended("i1", 1)], {"init": "i1"}, id="failed-always"),
        pytest.param("Always", [a_record("i1", "UNKNOWN")], {"init": "i1", "kill": ["i1-0"]}, id="unknown"),
        pytest.param("Always", [a_record("i1")], {}, id="wait"),
        pytest.param("Always", [ended("i1")], {"init": "i2"}, id="next"),
        pytest.param("Always", [ended("i1"), ended("i2")], {"start": ["c1"]}, id="apps"),
    ],
)
def test_what_is_done(policy: str, known: list[ContainerRecord], expected: object) -> None:
    """One init container at a time, apps after the last; under Never a failed one ends the pod (INIT-08)."""
    found = actions(a_pod(policy=policy, inits=("i1", "i2")), records(*known))

    assert names(found) == expected


def test_changed_init_container_restarts_nothing() -> None:
    """The definition of an init container is not compared (INIT-13)."""
    changed = a_record("i1", "EXITED", changed=True)

    assert names(actions(a_pod(inits=("i1",)), records(changed, a_record()))) == {}
