"""The pure rules of status writing."""

from datetime import UTC, datetime
from typing import Any

import pytest
from decisions_bench import a_pod
from lightkube.models.core_v1 import ContainerStatus, PodStatus
from msgspec import convert

from kubelet_reference.status import status_rules
from kubelet_reference.status.conditions import condition
from kubelet_reference.util.versions import Behaviour

NOW = datetime(2023, 11, 14, 12, tzinfo=UTC)
STATES: dict[str, dict[str, Any]] = {
    "waiting": {"state": {"waiting": {}}},
    "running": {"state": {"running": {}}},
    "exit 0": {"state": {"terminated": {"exitCode": 0}}},
    "exit 1": {"state": {"terminated": {"exitCode": 1}}},
    "again 0": {"state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 0}}},
}


def a_status(
    apps: dict[str, str] | None = None, inits: dict[str, str] | None = None, **fields: Any
) -> PodStatus:
    """A status whose containers are shown so."""
    blank = {"image": "", "imageID": "", "ready": False, "restartCount": 0}

    def shown(words: dict[str, str] | None) -> list[dict[str, Any]]:
        return [{"name": name, **blank, **STATES[word]} for name, word in (words or {}).items()]

    body = {**fields, "containerStatuses": shown(apps), "initContainerStatuses": shown(inits)}
    return convert(body, PodStatus)


@pytest.mark.parametrize(
    ("policy", "before", "now", "impossible"),
    [
        pytest.param("Never", "exit 1", "running", True, id="never"),
        pytest.param("Never", "exit 0", "waiting", True, id="never-waiting"),
        pytest.param("OnFailure", "exit 0", "running", True, id="onfailure-succeeded"),
        pytest.param("OnFailure", "exit 1", "running", False, id="onfailure-failed"),
        pytest.param("Always", "exit 0", "running", False, id="always"),
        pytest.param("Never", "exit 1", "exit 0", False, id="still-terminated"),
        pytest.param("Never", "running", "waiting", False, id="was-running"),
    ],
)
def test_resurrection(policy: str, before: str, now: str, impossible: bool) -> None:  # noqa: FBT001 - a column
    """A container that ended for good may not be shown otherwise, init containers neither (STATUS-10)."""
    pod = a_pod(policy=policy, inits=("i1", "sc"))
    as_app = status_rules.illegal_transition(
        pod, a_status({"c1": before}), a_status({"c1": now}), Behaviour.of()
    )
    as_init = status_rules.illegal_transition(
        pod, a_status({}, {"i1": before}), a_status({}, {"i1": now}), Behaviour.of()
    )
    as_sidecar = status_rules.illegal_transition(
        pod, a_status({}, {"sc": before}), a_status({}, {"sc": now}), Behaviour.of()
    )

    assert as_app == ("c1" if impossible else None)
    assert as_init == ("i1" if impossible else None)
    assert as_sidecar is None


def ends(statuses: list[ContainerStatus] | None) -> list[str]:
    """How containers are shown: their exit code, or a dash."""
    terminated = [one.state.terminated if one.state else None for one in statuses or ()]
    return [f"{end.exitCode} {end.reason or ''}".strip() if end else "-" for end in terminated]


LOST = "137 ContainerStatusUnknown"


@pytest.mark.parametrize(
    ("inits", "apps", "expected_inits", "expected_apps"),
    [
        pytest.param({}, ["running", "exit 0"], [], [LOST, "0"], id="no-inits"),
        pytest.param({}, ["waiting"], [], [LOST], id="never-started"),
        pytest.param(
            {"i1": "waiting", "i2": "waiting"}, ["waiting"], [LOST, "-"], ["-"], id="first-init-at-least"
        ),
        pytest.param(
            {"i1": "waiting", "i2": "running", "i3": "waiting"},
            ["waiting"],
            [LOST, LOST, "-"],
            ["-"],
            id="inits-up-to-the-last-start",
        ),
        pytest.param({"i1": "exit 0", "i2": "exit 0"}, ["waiting"], ["0", "0"], [LOST], id="inits-done"),
        pytest.param({"i1": "exit 0", "i2": "again 0"}, ["waiting"], ["0", LOST], [LOST], id="done-before"),
        pytest.param({"i1": "exit 1"}, ["waiting"], ["1"], ["-"], id="init-failed"),
        pytest.param({"i1": "waiting"}, ["again 0", "waiting"], [LOST], [LOST, LOST], id="an-app-was-up"),
    ],
)
def test_final_states(
    inits: dict[str, str], apps: list[str], expected_inits: list[str], expected_apps: list[str]
) -> None:
    """What must have run and was not seen ending gets an unknown end in the last status (TERM-17)."""
    shown = a_status({f"c{n}": word for n, word in enumerate(apps)}, inits)
    found = status_rules.with_final_states(a_pod(inits=list(inits)), shown)

    assert ends(found.initContainerStatuses) == expected_inits
    assert ends(found.containerStatuses) == expected_apps


def test_messages_share_their_limit() -> None:
    """Termination messages are cut to an even share of 12 KiB, at whole characters (STATUS-12)."""
    long = {"name": "c1", "image": "", "imageID": "", "ready": False, "restartCount": 0}
    state = {"terminated": {"exitCode": 1, "message": "é" * 10_000}}
    body = {"containerStatuses": [{**long, "state": state}, {**long, "name": "c2", "lastState": state}]}
    statuses = status_rules.with_limited_messages(convert(body, PodStatus)).containerStatuses or []
    states = (statuses[0].state, statuses[1].lastState)

    for found in states:
        assert found is not None
        assert found.terminated is not None
        assert found.terminated.message == "é" * (6 * 1024 // 2)


def test_others_keep_their_fields_and_conditions() -> None:
    """What is not the kubelet's stays as it is stored (STATUS-06)."""
    gate = {"type": "example.com/gate", "status": "True"}
    claims = [{"name": "claim"}]
    stored = a_status(
        phase="Pending", resourceClaimStatuses=claims, conditions=[gate, {"type": "Ready", "status": "False"}]
    )
    new = a_status(phase="Running", conditions=[{"type": "Ready", "status": "True"}])
    found = status_rules.merged(stored, new, could_run=True, now=NOW)

    assert found.phase == "Running"
    assert found.resourceClaimStatuses == stored.resourceClaimStatuses
    assert [(one.type, one.status) for one in found.conditions or ()] == [
        ("example.com/gate", "True"),
        ("Ready", "True"),
    ]


DISRUPTION = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
ENDED: dict[str, Any] = {"phase": "Failed", "reason": "Evicted", "message": "no memory"}


def test_terminal_phase_is_held_back() -> None:
    """While containers could run the terminal phase, its reason and message are held back (TERM-15)."""
    stored = a_status({"c1": "running"}, phase="Running")
    new = a_status({"c1": "exit 1"}, conditions=[DISRUPTION], **ENDED)
    held = status_rules.merged(stored, new, could_run=True, now=NOW)
    reported = status_rules.merged(stored, new, could_run=False, now=NOW)

    assert (held.phase, held.reason, held.message) == ("Running", None, None)
    assert ends(held.containerStatuses) == ["1"]
    assert (reported.phase, reported.reason, reported.message) == ("Failed", "Evicted", "no memory")


def test_disruption_goes_with_the_end() -> None:
    """DisruptionTarget is written in the patch that ends the pod, dated then (STATUS-07)."""
    running, failed = a_status(phase="Running"), a_status(conditions=[DISRUPTION], **ENDED)
    ended = status_rules.merged(running, failed, could_run=False, now=NOW)
    found = condition(ended.conditions, "DisruptionTarget")
    early = status_rules.merged(
        running, a_status(phase="Running", conditions=[DISRUPTION]), could_run=True, now=NOW
    )

    assert found is not None
    assert found.lastTransitionTime == NOW
    assert condition(early.conditions, "DisruptionTarget") is None
