"""What is done for a pod whose sandbox has to change."""

from typing import Any

import pytest
from decisions_bench import a_pod, a_record, a_sandbox, actions, names, records

from kubelet_reference.api.records import ContainerRecord
from kubelet_reference.util.versions import Behaviour

DEAD = (a_sandbox(0, ready=False),)
"""The only sandbox is stopped: the next has attempt 1."""
GONE = {"kill_pod": True}


def back(**more: Any) -> dict[str, Any]:
    """The pod is killed and comes back in a new sandbox."""
    return {"kill_pod": True, "create": True, **more}


def ended(name: str = "c1", code: int = 0) -> ContainerRecord:
    """An instance that exited."""
    return a_record(name, "EXITED", code=code)


@pytest.mark.parametrize(
    ("policy", "inits", "known", "expected"),
    [
        pytest.param("Never", (), [a_record()], GONE, id="A1"),
        pytest.param("Never", ("i1",), [ended("i1")], GONE, id="A1-init-record"),
        pytest.param("Never", (), [], back(start=["c1", "c2"]), id="A2"),
        pytest.param("Never", ("i1", "i2"), [], back(init="i1"), id="A3"),
        pytest.param("OnFailure", (), [ended("c1"), ended("c2")], GONE, id="A4"),
        pytest.param("OnFailure", ("i1",), [ended("i1"), ended("c1"), ended("c2")], GONE, id="A4-init-done"),
        pytest.param("OnFailure", ("i1",), [ended("c1"), ended("c2")], back(init="i1"), id="A5"),
        pytest.param("Always", (), [ended("c1"), ended("c2")], back(start=["c1", "c2"]), id="A6-always"),
        pytest.param("OnFailure", (), [ended("c1"), ended("c2", 1)], back(start=["c2"]), id="A6-onfailure"),
        pytest.param("OnFailure", (), [a_record("c1"), ended("c2")], back(start=["c1"]), id="A6-running"),
        pytest.param("Always", ("i1", "i2"), [ended("i1"), a_record()], back(init="i1"), id="A7"),
    ],
)
def test_row(policy: str, inits: tuple[str, ...], known: list[ContainerRecord], expected: object) -> None:
    """Each row of the table decides as it stands (SANDBOX-05..08)."""
    pod = a_pod(policy=policy, apps=("c1", "c2"), inits=inits, ephemeral=("dbg",))

    assert names(actions(pod, records(*known, sandboxes=DEAD))) == expected


def test_first_sandbox_of_a_never_pod() -> None:
    """Attempt 0 is no repetition: a Never pod gets its first sandbox whatever records there are (A1)."""
    found = actions(a_pod(policy="Never"), records(ended(), sandboxes=()))

    assert names(found) == back(start=["c1"])


@pytest.mark.parametrize("state", ["CREATED", "UNKNOWN"])
def test_what_has_succeeded(state: str) -> None:
    """A record that never ran has not succeeded; up to 1.26 it has, as long as its exit code is 0 (V7)."""
    pod, known = a_pod(policy="OnFailure"), records(a_record("c1", state), sandboxes=DEAD)

    assert names(actions(pod, known)) == back(start=["c1"])
    assert names(actions(pod, known, behaviour=Behaviour.of("1.26"))) == GONE


def test_ids() -> None:
    """The old sandbox is named, none is in use, and the attempt is the next one."""
    found = actions(a_pod(), records(sandboxes=DEAD))

    assert (found.attempt, found.sandbox_id, found.old_sandbox_id) == (1, "", "s0")
