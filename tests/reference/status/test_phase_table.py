"""The phase that the containers of a pod amount to.

A container's status is written as a word: missing, empty, running, exit 0, exit 1, waiting, or waiting after
an exit: again 0, again 1.
"""

from typing import Any

import pytest
from decisions_bench import a_pod

from kubelet_reference.status.phase import pod_phase
from kubelet_reference.util.versions import Behaviour

NEW, OLD = Behaviour.of(), Behaviour.of("1.26")
STATES: dict[str, dict[str, Any]] = {
    "empty": {"state": {}},
    "running": {"state": {"running": {}}},
    "started": {"state": {"running": {}}, "started": True},
    "exit 0": {"state": {"terminated": {"exitCode": 0}}},
    "exit 1": {"state": {"terminated": {"exitCode": 1}}},
    "waiting": {"state": {"waiting": {}}},
    "created again": {"state": {"waiting": {}}, "lastState": {"waiting": {}}},
    "again 0": {"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 0}}},
    "again 1": {"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 1}}},
}


def statuses(shown: dict[str, str]) -> list[dict[str, Any]]:
    """The statuses of containers by name; a missing one has none."""
    blank = {"image": "", "imageID": "", "ready": False, "restartCount": 0}
    return [{"name": name, **blank, **STATES[word]} for name, word in shown.items() if word != "missing"]


def phase(
    policy: str,
    apps: list[str],
    inits: dict[str, str] | None = None,
    *,
    final: bool = False,
    source: str = "api",
    behaviour: Behaviour = NEW,
) -> str:
    """The phase of a pod whose app containers c1, c2, ... and init containers are shown so."""
    shown = {f"c{number}": word for number, word in enumerate(apps, 1)}
    status = {"containerStatuses": statuses(shown), "initContainerStatuses": statuses(inits or {})}
    pod = a_pod(policy=policy, apps=list(shown), inits=list(inits or {}), status=status, source=source)
    assert pod.status is not None
    return pod_phase(pod, pod.status, behaviour, terminating=final)


@pytest.mark.parametrize(
    ("policy", "inits", "apps", "expected"),
    [
        pytest.param("Never", {"i1": "exit 1"}, ["waiting"], "Failed", id="P1"),
        pytest.param("Never", {"i1": "again 1", "i2": "waiting"}, ["waiting"], "Failed", id="P1-waits-again"),
        pytest.param("Always", {"i1": "missing"}, ["waiting"], "Pending", id="P2-missing"),
        pytest.param("Always", {"i1": "running"}, ["running"], "Pending", id="P2-running"),
        pytest.param("Always", {"i1": "waiting"}, ["running"], "Pending", id="P2-waiting"),
        pytest.param("Always", {"i1": "empty"}, ["running"], "Pending", id="P2-empty"),
        pytest.param("OnFailure", {"i1": "exit 1"}, ["waiting"], "Pending", id="P4-init-failed-onfailure"),
        pytest.param("Always", {"sc": "running"}, ["waiting"], "Pending", id="P3-not-started"),
        pytest.param("Always", {"sc": "waiting"}, ["missing"], "Pending", id="P3-waiting"),
        pytest.param("Always", {"sc": "running"}, ["running"], "Running", id="P3-app-was-up"),
        pytest.param("Always", {}, ["running", "waiting"], "Pending", id="P4"),
        pytest.param("Always", {"sc": "waiting"}, ["running"], "Pending", id="P4-sidecar"),
        pytest.param("Always", {}, ["created again"], "Pending", id="P4-created-again"),
        pytest.param("Always", {}, ["running"], "Running", id="P5"),
        pytest.param("Never", {}, ["running", "exit 1"], "Running", id="P5-one-failed"),
        pytest.param("Never", {"i1": "exit 0"}, ["running"], "Running", id="P5-init-done"),
        pytest.param("Never", {"i1": "again 0"}, ["running"], "Running", id="P5-init-done-before"),
        pytest.param("Never", {"sc": "started"}, ["exit 0"], "Running", id="P5-sidecar-runs"),
        pytest.param("Always", {}, ["exit 0"], "Running", id="P8-exit-0"),
        pytest.param("Always", {}, ["again 1"], "Running", id="P8-crash-loop"),
        pytest.param("OnFailure", {}, ["exit 0", "exit 0"], "Succeeded", id="P9-onfailure"),
        pytest.param("Never", {}, ["exit 0"], "Succeeded", id="P9-never"),
        pytest.param("Never", {"sc": "exit 1"}, ["exit 0"], "Succeeded", id="P9-sidecar-ended"),
        pytest.param("Never", {"sc": "again 1"}, ["exit 0"], "Succeeded", id="P9-sidecar-comes-again"),
        pytest.param("Never", {}, ["exit 0", "exit 1"], "Failed", id="P10"),
        pytest.param("Never", {}, ["again 0"], "Failed", id="P10-waits-after-0"),
        pytest.param("OnFailure", {}, ["exit 0", "exit 1"], "Running", id="P11"),
        pytest.param("OnFailure", {}, ["again 0"], "Running", id="P11-waits-after-0"),
    ],
)
def test_row(policy: str, inits: dict[str, str], apps: list[str], expected: str) -> None:
    """Each row of the table decides as it stands, where the pod is not in its last sync (PHASE-02..09)."""
    assert phase(policy, apps, inits) == expected


@pytest.mark.parametrize(
    ("policy", "apps", "expected"),
    [
        pytest.param("Always", ["exit 0", "exit 0"], "Succeeded", id="P6-always"),
        pytest.param("OnFailure", ["exit 0"], "Succeeded", id="P6-onfailure"),
        pytest.param("Always", ["exit 0", "exit 1"], "Failed", id="P7-always"),
        pytest.param("OnFailure", ["exit 1"], "Failed", id="P7-onfailure"),
        pytest.param("Always", ["again 0"], "Failed", id="P7-waits-after-0"),
        pytest.param("Always", ["running", "exit 1"], "Running", id="P5-still-runs"),
        pytest.param("Always", ["waiting"], "Pending", id="P4-never-started"),
    ],
)
def test_last_status(policy: str, apps: list[str], expected: str) -> None:
    """In its last sync a pod ends by its exit codes alone (PHASE-14)."""
    assert phase(policy, apps, final=True) == expected


def test_last_status_of_a_static_pod_and_of_an_old_kubelet() -> None:
    """Static pods, and all pods up to 1.26, are not forced into a terminal phase (STATIC-21, V3)."""
    assert phase("Always", ["exit 1"], final=True, source="file") == "Running"
    assert phase("Always", ["exit 1"], final=True, behaviour=OLD) == "Running"


def test_ephemeral_containers_do_not_count() -> None:
    """An ephemeral container that runs keeps no pod alive (PHASE-01)."""
    status = {"containerStatuses": statuses({"c1": "exit 0"})}
    status["ephemeralContainerStatuses"] = statuses({"dbg": "running"})
    pod = a_pod(policy="Never", ephemeral=("dbg",), status=status)
    assert pod.status is not None

    assert pod_phase(pod, pod.status, NEW, terminating=False) == "Succeeded"
