"""The kubelet's conditions: status, reason and message (COND-*)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from decisions_bench import BEHAVIOUR, a_pod
from lightkube.models.core_v1 import Pod, PodCondition

from kubelet_reference.status.conditions import (
    condition,
    lasting_initialized,
    pod_conditions,
    with_transition_times,
)
from kubelet_reference.util.versions import Behaviour

NOW, THEN = datetime(2023, 11, 14, 12, tzinfo=UTC), datetime(2023, 11, 14, 11, tzinfo=UTC)
NOT_READY = "ContainersNotReady"


def shown(
    name: str, *, ready: bool = False, state: str = "waiting", started: bool | None = None
) -> dict[str, Any]:
    """A container's status."""
    states: dict[str, dict[str, Any]] = {
        "waiting": {"waiting": {}},
        "running": {"running": {}},
        "terminated": {"terminated": {"exitCode": 0}},
    }
    status = {"name": name, "image": "", "imageID": "", "ready": ready, "restartCount": 0}
    return {**status, "state": states[state], "started": started}


def said(pod: Pod, kind: str, *, behaviour: Behaviour = BEHAVIOUR) -> tuple[str, str, str]:
    """Status, reason and message of a condition."""
    assert pod.status is not None
    found = condition(pod_conditions(pod, pod.status, behaviour, sandbox_usable=True), kind)
    assert found is not None
    return found.status, found.reason or "", found.message or ""


def with_status(
    phase: str, apps: list[dict[str, Any]], init_statuses: list[dict[str, Any]] | None = None, **more: Any
) -> Pod:
    """A pod with app containers c1 and c2, which shows this."""
    status = {"phase": phase, "containerStatuses": apps, "initContainerStatuses": init_statuses or None}
    return a_pod(apps=("c1", "c2"), status=status, **more)


UP = [shown("c1", ready=True, state="running"), shown("c2", ready=True, state="running")]
ONE_UP = [shown("c1", ready=True, state="running"), shown("c2")]


@pytest.mark.parametrize(
    ("phase", "apps", "expected"),
    [
        pytest.param("Running", UP, ("True", "", ""), id="ready"),
        pytest.param(
            "Pending", ONE_UP, ("False", NOT_READY, "containers with unready status: [c2]"), id="unready"
        ),
        pytest.param(
            "Pending",
            [shown("c1")],
            ("False", NOT_READY, "containers with unready status: [c1 c2]"),
            id="without-status",
        ),
        pytest.param("Succeeded", UP, ("False", "PodCompleted", ""), id="succeeded"),
        pytest.param("Failed", UP, ("False", "PodFailed", ""), id="failed"),
    ],
)
def test_containers_ready(phase: str, apps: list[dict[str, Any]], expected: tuple[str, str, str]) -> None:
    """ContainersReady names what is not ready and is False at the end; Ready copies it (COND-03, 05)."""
    pod = with_status(phase, apps)

    assert said(pod, "ContainersReady") == expected
    assert said(pod, "Ready") == expected


def test_sidecar_counts_for_ready() -> None:
    """A sidecar that is not ready keeps the pod from being ready (SIDECAR-17)."""
    sidecar = shown("sc", state="running", started=True)
    pod = with_status("Running", UP, [sidecar], inits=("sc",))

    assert said(pod, "Ready") == ("False", NOT_READY, "containers with unready status: [sc]")
    assert said(pod, "Initialized") == ("True", "", "")


DONE, WAITS = shown("i1", ready=True, state="terminated"), shown("i2")


@pytest.mark.parametrize(
    ("phase", "inits", "apps", "expected"),
    [
        pytest.param("Pending", [DONE, shown("i2", ready=True)], [], ("True", "", ""), id="all-done"),
        pytest.param(
            "Pending",
            [DONE, WAITS],
            [],
            ("False", "ContainersNotInitialized", "containers with incomplete status: [i2]"),
            id="incomplete",
        ),
        pytest.param(
            "Pending",
            [WAITS],
            [],
            ("False", "ContainersNotInitialized", "containers with incomplete status: [i1 i2]"),
            id="without-status",
        ),
        pytest.param("Succeeded", [DONE, WAITS], [], ("True", "PodCompleted", ""), id="succeeded"),
        pytest.param("Running", [DONE, WAITS], UP, ("True", "", ""), id="app-was-up"),
    ],
)
def test_initialized(
    phase: str, inits: list[dict[str, Any]], apps: list[dict[str, Any]], expected: tuple[str, str, str]
) -> None:
    """Initialized is True once every init container is done, or an app container was up (COND-02)."""
    assert said(with_status(phase, apps, inits, inits=("i1", "i2")), "Initialized") == expected


def test_initialized_without_init_containers() -> None:
    """A pod without init containers is initialized at once (COND-02)."""
    assert said(with_status("Pending", []), "Initialized") == ("True", "", "")


def test_app_proves_nothing_to_an_old_kubelet() -> None:
    """Up to 1.26 an app container that runs does not make the pod initialized (COND-02)."""
    pod = with_status("Running", UP, [DONE, WAITS], inits=("i1", "i2"))

    assert said(pod, "Initialized", behaviour=Behaviour.of("1.26"))[0] == "False"


@pytest.mark.parametrize(("version", "status"), [("1.36", "True"), ("1.35", "False")])
def test_initialized_pod_stays_so(version: str, status: str) -> None:
    """From 1.36 on a pod that was initialized stays so while its init containers run again (COND-02)."""
    pod, behaviour = with_status("Pending", [], [DONE, WAITS], inits=("i1", "i2")), Behaviour.of(version)
    assert pod.status is not None
    found = pod_conditions(pod, pod.status, behaviour, sandbox_usable=True)
    before = [PodCondition(type="Initialized", status="True")]
    lasting = condition(lasting_initialized(found, before, behaviour), "Initialized")

    assert lasting is not None
    assert lasting.status == status
    assert lasting_initialized(found, None, behaviour) == found, "it was not initialized before"


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param({"one": "True"}, ("True", "", ""), id="open"),
        pytest.param(
            {"one": "False"},
            ("False", 'the status of pod readiness gate "one" is not "True", but False'),
            id="closed",
        ),
        pytest.param(
            {},
            ("False", 'corresponding condition of pod readiness gate "one" does not exist.'),
            id="missing",
        ),
    ],
)
def test_readiness_gates(gates: dict[str, str], expected: tuple[str, ...]) -> None:
    """Ready needs every readiness gate to be True; a missing condition is none (COND-04)."""
    theirs = [{"type": kind, "status": status} for kind, status in gates.items()]
    pod = with_status("Running", UP, spec={"readinessGates": [{"conditionType": "one"}]}, conditions=theirs)
    status, reason, message = said(pod, "Ready")

    assert said(pod, "ContainersReady")[0] == "True"
    assert status == expected[0]
    assert (reason, message) == (("ReadinessGatesNotReady", expected[1]) if status == "False" else ("", ""))


def test_kinds_and_order() -> None:
    """The conditions stand in the kubelet's order; before 1.29 there is none on the sandbox (COND-06)."""
    pod = with_status("Running", UP)
    assert pod.status is not None
    new = pod_conditions(pod, pod.status, BEHAVIOUR, sandbox_usable=False)
    old = pod_conditions(pod, pod.status, Behaviour.of("1.26"), sandbox_usable=False)
    kinds = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]

    assert [one.type for one in new] == ["PodReadyToStartContainers", *kinds]
    assert [one.type for one in old] == kinds
    assert [(one.status, one.reason) for one in (new[0], new[-1])] == [("False", None), ("True", None)]


def test_transition_times() -> None:
    """A transition time moves with the status, not with the reason, and never that of others (STATUS-09)."""
    before = [
        PodCondition(type=kind, status="True", lastTransitionTime=THEN) for kind in ("Ready", "Initialized")
    ]
    new = [
        PodCondition(type="Ready", status="False"),
        PodCondition(type="Initialized", status="True", reason="PodCompleted"),
        PodCondition(type="PodScheduled", status="True"),
        PodCondition(type="example.com/theirs", status="True"),
    ]
    times = [one.lastTransitionTime for one in with_transition_times(new, before, NOW)]

    assert times == [NOW, THEN, NOW, None]
