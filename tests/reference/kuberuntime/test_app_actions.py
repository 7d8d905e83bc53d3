"""What is done for a pod whose sandbox stays."""

from typing import Any

import pytest
from decisions_bench import a_pod, a_record, actions, names, records
from lightkube.models.core_v1 import Container

from kubelet_reference.api import pods
from kubelet_reference.api.records import ContainerRecord
from kubelet_reference.api.results import KillReason
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules
from kubelet_reference.kuberuntime.actions.sync_input import SyncInput

KEPT = a_record("c2")
"""A second container, which runs: with it nothing but the row itself decides."""
START, BOTH, KILL = {"start": ["c1"]}, {"start": ["c1"], "kill": ["c1-0"]}, {"kill": ["c1-0"]}
NOTHING: dict[str, Any] = {}


def ended(code: int) -> ContainerRecord:
    """An instance of the first container that exited."""
    return a_record("c1", "EXITED", code=code)


@pytest.mark.parametrize(
    ("policy", "known", "situation", "expected"),
    [
        pytest.param("Never", None, "", START, id="B1"),
        pytest.param("Always", None, "deleting", NOTHING, id="B2-none"),
        pytest.param("Always", ended(1), "deleting", NOTHING, id="B2-exited"),
        pytest.param("Always", a_record("c1", "UNKNOWN"), "deleting", NOTHING, id="B2-unknown"),
        pytest.param("Never", a_record("c1", "CREATED"), "", START, id="B3"),
        pytest.param("Never", a_record("c1", "UNKNOWN"), "", BOTH, id="B4"),
        pytest.param("Always", ended(0), "", START, id="B5-0"),
        pytest.param("Always", ended(1), "", START, id="B5-1"),
        pytest.param("OnFailure", ended(1), "", START, id="B6"),
        pytest.param("OnFailure", ended(0), "", NOTHING, id="B7"),
        pytest.param("Never", ended(0), "", NOTHING, id="B8-0"),
        pytest.param("Never", ended(1), "", NOTHING, id="B8-1"),
        pytest.param("Never", a_record(changed=True), "", BOTH, id="B9"),
        pytest.param("Never", a_record(changed=True), "liveness", BOTH, id="B9-before-liveness"),
        pytest.param("Always", a_record(), "liveness", BOTH, id="B10-always"),
        pytest.param("OnFailure", a_record(), "liveness", BOTH, id="B10-onfailure"),
        pytest.param("Never", a_record(), "liveness", KILL, id="B11"),
        pytest.param("Always", a_record(), "startup", BOTH, id="B12-always"),
        pytest.param("OnFailure", a_record(), "startup", BOTH, id="B12-onfailure"),
        pytest.param("Never", a_record(), "startup", KILL, id="B13"),
        pytest.param("Always", a_record(), "", NOTHING, id="B15"),
        pytest.param("Always", a_record(), "deleting", NOTHING, id="B15-deleting"),
    ],
)
def test_row(policy: str, known: ContainerRecord | None, situation: str, expected: object) -> None:
    """Each row of the table decides as it stands, and leaves the sibling alone (RESTART-01..10, 17)."""
    pod = a_pod(policy=policy, apps=("c1", "c2"), deleting=situation == "deleting")
    found = actions(pod, records(*([known] if known else []), KEPT), failed=situation)

    assert names(found) == expected


@pytest.mark.parametrize(
    ("known", "failed"),
    [
        pytest.param(ended(1), "", id="exited"),
        pytest.param(a_record(), "liveness", id="killed-by-probe"),
    ],
)
def test_pod_without_a_container_left_is_killed(known: ContainerRecord, failed: str) -> None:
    """When none is kept and none is to be started the pod is killed (27.3 (4), RESTART-18, SANDBOX-23)."""
    found = actions(a_pod(policy="Never", ephemeral=("dbg",)), records(known, a_record("dbg")), failed=failed)

    assert found.kill_pod
    assert not found.create_sandbox


@pytest.mark.parametrize(
    ("known", "failed", "reason", "message"),
    [
        (
            a_record(changed=True),
            "",
            KillReason.UNKNOWN,
            "Container c1 definition changed, will be restarted",
        ),
        (
            a_record(),
            "liveness",
            KillReason.LIVENESS_PROBE,
            "Container c1 failed liveness probe, will be restarted",
        ),
        (
            a_record(),
            "startup",
            KillReason.STARTUP_PROBE,
            "Container c1 failed startup probe, will be restarted",
        ),
    ],
    ids=["changed", "liveness", "startup"],
)
def test_why_it_is_killed(known: ContainerRecord, failed: str, reason: KillReason, message: str) -> None:
    """A kill says why, in the words of the Killing event, with the reason that selects the grace period."""
    found = actions(a_pod(), records(known), failed=failed)
    (kill,) = found.to_kill

    assert (kill.reason, kill.message, kill.container.name) == (reason, message, "c1")


def test_killed_for_good_says_nothing_of_a_restart() -> None:
    """Under Never the message of a probe's kill does not promise a restart (RESTART-10)."""
    found = actions(a_pod(policy="Never"), records(a_record()), failed="liveness")

    assert [kill.message for kill in found.to_kill] == ["Container c1 failed liveness probe"]


@pytest.mark.parametrize("state", ["CREATED", "RUNNING", "EXITED", "UNKNOWN"])
def test_ephemeral_container_with_a_record_is_left_alone(state: str) -> None:
    """An ephemeral container is started when it has no record, and never again (EPH-01, EPH-02)."""
    pod = a_pod(ephemeral=("new", "old"))
    found = actions(pod, records(a_record(), a_record("old", state, code=1)))

    assert names(found) == {"ephemeral": ["new"]}


def test_ephemeral_container_does_not_wait_for_initialization() -> None:
    """Ephemeral containers start while an init container runs, apps do not (EPH-03, INIT-03)."""
    found = actions(a_pod(inits=("i1",), ephemeral=("dbg",)), records(a_record("i1")))

    assert names(found) == {"ephemeral": ["dbg"]}


def test_only_the_newest_record_counts() -> None:
    """An old instance that exited says nothing beside a newer one that runs."""
    older = a_record("c1", "EXITED", code=1, attempt=0)
    found = actions(a_pod(), records(older, a_record("c1", attempt=1)))

    assert names(found) == NOTHING
    assert (found.attempt, found.sandbox_id) == (0, "s0")


def test_one_rule_can_be_replaced() -> None:
    """A kubelet that is wrong in one rule is a subclass that overrides this rule."""

    class NeverChanged(ActionRules):
        def has_changed(self, now: SyncInput, one: Container, record: ContainerRecord) -> bool:
            assert (pods.key(now.pod), one.name, record.name) == ("default/web", "c1", "c1")
            return False

    found = actions(a_pod(), records(a_record(changed=True)), compute=NeverChanged().compute)

    assert names(found) == NOTHING
