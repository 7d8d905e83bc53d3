"""What the status says of a container, by its records, the status before and its start error.

Rows are texts. Records, newest first: `RUNNING 2` is a running instance that was restarted twice. The
status before: its state and its restart count. What comes out: state, lastState, restart count.
"""

from typing import Any

import pytest
from decisions_bench import a_pod, a_record, records
from lightkube.models.core_v1 import ContainerState, ContainerStatus, Pod
from msgspec import to_builtins

from kubelet_reference.api.records import ContainerRecord
from kubelet_reference.api.records import ContainerState as Recorded
from kubelet_reference.status.container_statuses import (
    REFUSALS,
    STATES,
    Before,
    ContainerStatuses,
    Refused,
    Seen,
    StatusInput,
    container_statuses,
)
from kubelet_reference.status.reason_cache import ReasonCache
from kubelet_reference.util.versions import Behaviour

END = {"exitCode": 3, "reason": "Error"}
BEFORE: dict[str, dict[str, Any]] = {
    "Waiting": {"state": {"waiting": {"reason": "ErrImagePull"}}, "lastState": {"terminated": END}},
    "Running": {"state": {"running": {}}, "lastState": {}},
    "Terminated": {"state": {"terminated": END}, "lastState": {}},
}


def reported(
    pod: Pod, *known: ContainerRecord, error: str = "", failed: str = "c1", version: str = "1.32"
) -> ContainerStatuses:
    """The statuses that come out, `error` being why the last start of the container failed."""
    behaviour = Behaviour.of(version)
    reasons = ReasonCache()
    if error:
        reasons.add("u1", failed, error, "no luck")
    assert pod.status is not None
    return container_statuses(StatusInput(pod, records(*known), pod.status, reasons, "fake", behaviour))


def with_before(before: str, *, count: int = 4, **more: Any) -> Pod:
    """A pod whose stored status shows c1 so."""
    shown = {"name": "c1", "image": "", "imageID": "", "ready": False, "restartCount": count}
    status = {"containerStatuses": [{**shown, **BEFORE[before]}]} if before else {}
    return a_pod(status=status, **more)


def word(state: ContainerState | None) -> str:
    """A state in a word or two."""
    if state is None:
        return "absent"
    if state.running:
        return "Running"
    if state.terminated:
        return f"Terminated {state.terminated.exitCode} {state.terminated.reason}"
    return f"Waiting {state.waiting.reason or ''}".strip() if state.waiting else "-"


def words(status: ContainerStatus) -> tuple[str, str, int]:
    """State, lastState and restart count."""
    return word(status.state), word(status.lastState), status.restartCount


N_CREATED = a_record("c1", "CREATED", attempt=7)
N_RUNNING = a_record("c1", "RUNNING", attempt=7)
N_EXITED = a_record("c1", "EXITED", code=1, attempt=7)
N_UNKNOWN = a_record("c1", "UNKNOWN", attempt=7)
OLDER = a_record("c1", "EXITED", code=2, attempt=6)
CREATING, LOST = "Waiting ContainerCreating", "Terminated 137 ContainerStatusUnknown"
T1, T2, T3 = (f"Terminated {code} Error" for code in (1, 2, 3))
PULL, CRASH, RUN = (f"Waiting {why}" for why in ("ErrImagePull", "CrashLoopBackOff", "RunContainerError"))


@pytest.mark.parametrize(
    ("known", "before", "policy", "error", "expected"),
    [
        pytest.param([], "", "Always", "", (CREATING, "-", 0), id="none-none"),
        pytest.param([], "Waiting", "Always", "", (CREATING, T3, 4), id="none-waiting"),
        pytest.param([], "Waiting", "Always", "ErrImagePull", (PULL, T3, 4), id="none-waiting-error"),
        pytest.param([], "Terminated", "deleting", "", (T3, "-", 4), id="none-terminated-deleting"),
        pytest.param([], "Terminated", "Always", "", (T3, "-", 4), id="none-terminated"),
        pytest.param([], "Terminated", "Always", "ErrImagePull", (PULL, T3, 4), id="none-terminated-error"),
        pytest.param([], "Running", "Always", "", (CREATING, LOST, 5), id="none-running"),
        pytest.param([], "Running", "deleting", "", (CREATING, LOST, 4), id="none-running-deleting"),
        pytest.param([N_CREATED], "Running", "Always", "", ("Waiting", "-", 7), id="created"),
        pytest.param([N_CREATED, OLDER], "", "Never", "RunContainerError", (RUN, T2, 7), id="created-error"),
        pytest.param([N_RUNNING, OLDER], "", "Always", "", ("Running", T2, 7), id="running"),
        pytest.param(
            [N_RUNNING, OLDER], "", "Always", "ErrImagePull", ("Running", T2, 7), id="running-error"
        ),
        pytest.param([N_EXITED, OLDER], "", "Never", "", (T1, T2, 7), id="exited-for-good"),
        pytest.param(
            [N_EXITED, OLDER], "", "Never", "CrashLoopBackOff", (T1, T2, 7), id="exited-for-good-error"
        ),
        pytest.param([N_EXITED, OLDER], "", "Always", "", (T1, T2, 7), id="exited-due"),
        pytest.param(
            [N_EXITED, OLDER], "", "Always", "CrashLoopBackOff", (CRASH, T1, 7), id="exited-due-error"
        ),
        pytest.param([N_UNKNOWN, OLDER], "Running", "Always", "", (LOST, T2, 5), id="unknown-running"),
        pytest.param([N_UNKNOWN, OLDER], "Waiting", "Always", "", ("Waiting", T2, 7), id="unknown-other"),
        pytest.param([N_UNKNOWN], "", "Always", "", ("Waiting", "-", 7), id="unknown-none"),
    ],
)
def test_row(
    known: list[ContainerRecord], before: str, policy: str, error: str, expected: tuple[str, str, int]
) -> None:
    """Each row of the table decides as it stands (CSTAT-01..07)."""
    deleting = policy == "deleting"
    pod = with_before(before, policy="Always" if deleting else policy, deleting=deleting)
    (status,) = reported(pod, *known, error=error).app

    assert words(status) == expected


#: What each row decides, with all that the rows below it look at.
SEEN = {
    "ended and gone": Seen(None, Before.TERMINATED),
    "vanished": Seen(None, Before.RUNNING),
    "not made yet": Seen(None, Before.WAITING),
    "lost": Seen(Recorded.UNKNOWN, Before.RUNNING),
    "on record": Seen(Recorded.UNKNOWN, Before.WAITING),
}
REFUSED = {
    "not due": Refused(due=False, ended=True),
    "ended": Refused(due=True, ended=True),
    "not ended": Refused(due=True, ended=False),
}


def test_each_row_decides() -> None:
    """Each row is the first that fits what it is for."""
    assert [STATES.row(SEEN[row.name]) for row in STATES] == list(STATES)
    assert [REFUSALS.row(REFUSED[row.name]) for row in REFUSALS] == list(REFUSALS)


def test_fields_of_a_record() -> None:
    """Image, image id, container id and times are the runtime's, in whole seconds (CSTAT-08, STATUS-11)."""
    (status,) = reported(a_pod(), a_record("c1", "EXITED", code=1, message="why", attempt=1)).app

    assert to_builtins(status) == {
        "name": "c1",
        "image": "sha256:img",
        "imageID": "sha256:ref",
        "containerID": "fake://c1-1",
        "ready": False,
        "restartCount": 1,
        "lastState": {},
        "state": {
            "terminated": {
                "exitCode": 1,
                "reason": "Error",
                "message": "why",
                "containerID": "fake://c1-1",
                "startedAt": "2023-11-14T22:14:21Z",
                "finishedAt": "2023-11-14T22:14:29Z",
            }
        },
    }


def test_fields_without_a_record() -> None:
    """A container without a record has the image of its spec and no ids (CSTAT-08)."""
    (status,) = reported(a_pod()).app

    assert (status.image, status.imageID, status.containerID) == ("img:1", "", None)


def test_third_record_and_foreign_containers_do_not_count() -> None:
    """Only the newest two records of a name count, and only names of the spec (CSTAT-03, CSTAT-13)."""
    third = a_record("c1", "EXITED", code=9, attempt=5)
    found = reported(a_pod(), N_RUNNING, OLDER, third, a_record("other"))

    assert [words(one) for one in found.app] == [("Running", T2, 7)]


def test_record_that_never_ran_as_last_state() -> None:
    """A record that was created and never started shows as lastState {waiting: {}} (CSTAT-15)."""
    (status,) = reported(a_pod(), N_RUNNING, a_record("c1", "CREATED", attempt=6)).app

    assert to_builtins(status.lastState) == {"waiting": {}}


def test_apps_wait_for_initialization() -> None:
    """In a pod with init containers all wait for PodInitializing (CSTAT-01, INIT-16)."""
    found = reported(a_pod(inits=("i1",), ephemeral=("dbg",)))

    assert [word(one.state) for one in (*found.init, *found.app, *found.ephemeral)] == [
        "Waiting PodInitializing"
    ] * 3


def test_finished_init_container_stays_so() -> None:
    """A start error never hides that an init container has succeeded (CSTAT-05)."""
    done = a_record("i1", "EXITED")
    found = reported(a_pod(inits=("i1",)), done, error="CrashLoopBackOff", failed="i1")

    assert word(found.init[0].state) == "Terminated 0 Completed"


def test_init_container_without_record_waits_like_any_other() -> None:
    """One whose record went with its sandbox waits for what holds it up, its success behind it (PHASE-10)."""
    before = {"name": "i1", "image": "", "imageID": "", "ready": True, "restartCount": 0}
    done = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    pod = a_pod(inits=("i1",), status={"initContainerStatuses": [{**before, "state": done}]})
    (found,) = reported(pod, error="ErrImagePull", failed="i1").init

    assert (word(found.state), word(found.lastState)) == ("Waiting ErrImagePull", "Terminated 0 Completed")


def test_order() -> None:
    """Init containers stand in the order of the spec, the others by name (INIT-17, EPH-11)."""
    found = reported(a_pod(inits=("z", "a"), apps=("z1", "a1"), ephemeral=("z2", "a2")))
    lists = (found.init, found.app, found.ephemeral)

    assert [[one.name for one in one_list] for one_list in lists] == [["z", "a"], ["a1", "z1"], ["a2", "z2"]]


ANOTHER, OWN = "fake://another", f"fake://{a_record('c1', 'RUNNING').id}"
LOST_END: dict[str, Any] = {"exitCode": 137, "reason": "ContainerStatusUnknown"}


@pytest.mark.parametrize(
    ("known", "shown", "expected"),
    [
        pytest.param(
            [a_record("c1", "RUNNING")],
            {"state": {"terminated": END}, "containerID": ANOTHER, "restartCount": 1},
            ("Running", T3, 2),
            id="next-runs",
        ),
        pytest.param(
            [a_record("c1", "EXITED", code=1)],
            {"state": {"terminated": END}, "containerID": ANOTHER, "restartCount": 1},
            (T1, T3, 1),
            id="next-has-ended",
        ),
        pytest.param(
            [a_record("c1", "RUNNING")],
            {
                "state": {"running": {}},
                "lastState": {"terminated": END},
                "containerID": OWN,
                "restartCount": 1,
            },
            ("Running", T3, 1),
            id="the-same",
        ),
        pytest.param(
            [N_RUNNING, OLDER],
            {"state": {"terminated": END}, "containerID": ANOTHER, "restartCount": 1},
            ("Running", T2, 7),
            id="older-record",
        ),
        pytest.param(
            [N_RUNNING],
            {"state": {"terminated": LOST_END}, "containerID": ANOTHER, "restartCount": 7},
            ("Running", LOST, 7),
            id="next-after-lost",
        ),
        pytest.param(
            [a_record("c1", "RUNNING")],
            {"state": {"terminated": LOST_END}, "containerID": OWN, "restartCount": 1},
            ("Running", "-", 0),
            id="lost-is-there-again",
        ),
        pytest.param(
            [a_record("c1", "EXITED", code=1)],
            {
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {**END, "containerID": OWN}},
                "containerID": OWN,
                "restartCount": 0,
            },
            (T1, "-", 0),
            id="waited-no-more",
        ),
    ],
)
def test_status_before_speaks_for_records_that_are_gone(
    known: list[ContainerRecord], shown: dict[str, Any], expected: tuple[str, str, int]
) -> None:
    """CSTAT-07, CSTAT-14: from 1.36 on the count goes on, each restart once, and lastState stays."""
    unchanged: dict[str, Any] = {"name": "c1", "image": "", "imageID": "", "ready": False, "lastState": {}}
    status = unchanged | shown
    pod = a_pod(status={"containerStatuses": [status]})

    assert words(reported(pod, *known, version="1.36").app[0]) == expected
