"""What is done for each init container of a pod with sidecars.

A container is written as its name (one that begins with "sc" is a sidecar) and its state in a word; a sidecar
"scp..." has a startup probe.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from decisions_bench import a_pod, a_record, a_sandbox, names, records

from kubelet_reference.api.records import ContainerRecord, ContainerState
from kubelet_reference.api.results import ProbeOutcome
from kubelet_reference.kuberuntime.actions.pod_actions import compute_actions
from kubelet_reference.kuberuntime.actions.sandbox_changed import sandbox_changed
from kubelet_reference.kuberuntime.actions.sidecars import SIDECAR_ROWS, InitContainerFacts, SidecarRules
from kubelet_reference.kuberuntime.actions.sync_input import SyncInput
from kubelet_reference.util.versions import Behaviour

RUNNING, EXITED, UNKNOWN = ContainerState.RUNNING, ContainerState.EXITED, ContainerState.UNKNOWN
CREATED = ContainerState.CREATED
FAILURE, SUCCESS, NO_RESULT = ProbeOutcome.FAILURE, ProbeOutcome.SUCCESS, ProbeOutcome.UNKNOWN
STATES: dict[str, dict[str, Any]] = {
    "created": {"state": "CREATED"},
    "running": {"state": "RUNNING"},
    "old": {"state": "RUNNING", "changed": True},
    "exit 0": {"state": "EXITED"},
    "exit 1": {"state": "EXITED", "code": 1},
    "unknown": {"state": "UNKNOWN"},
}


def _facts(state: ContainerState | None = None, **more: Any) -> InitContainerFacts:
    """What is seen of an init container; what is not named is not so."""
    names = ("sidecar", "decided", "last", "failed", "never", "changed", "has_startup")
    usual: dict[str, Any] = {**dict.fromkeys(names, False), "startup": None, "liveness": None}
    return InitContainerFacts(state, **{**usual, **more})


#: Each row with what it is seen by; the last, without a name, is a sidecar that is kept.
SIGHTS: list[tuple[list[str], InitContainerFacts]] = [
    (["S1"], _facts(sidecar=True, decided=True)),
    (["S2"], _facts(sidecar=True)),
    (["S2"], _facts(decided=True)),
    (["S3"], _facts(UNKNOWN, decided=True)),
    (["S4"], _facts(CREATED)),
    (["S4"], _facts(CREATED, sidecar=True, decided=True)),
    (["S5"], _facts(RUNNING)),
    (["S6"], _facts(RUNNING, sidecar=True, has_startup=True)),
    (["S7"], _facts(RUNNING, sidecar=True, has_startup=True, startup=FAILURE)),
    (["S8"], _facts(RUNNING, sidecar=True, has_startup=True, startup=NO_RESULT)),
    (["S9"], _facts(RUNNING, sidecar=True, last=True)),
    (["S9", "S11"], _facts(RUNNING, sidecar=True, last=True, changed=True, liveness=FAILURE)),
    (["S10"], _facts(RUNNING, sidecar=True, has_startup=True, startup=SUCCESS)),
    (["S10", "S12"], _facts(RUNNING, sidecar=True, liveness=FAILURE)),
    (["S11"], _facts(RUNNING, sidecar=True, decided=True, changed=True)),
    (["S12"], _facts(RUNNING, sidecar=True, decided=True, liveness=FAILURE)),
    (["S13"], _facts(EXITED, sidecar=True, failed=True, never=True)),
    (["S14"], _facts(EXITED, failed=True)),
    (["S15"], _facts(EXITED, last=True, never=True)),
    (["S16"], _facts(EXITED)),
    (["S17"], _facts(UNKNOWN, sidecar=True, failed=True, never=True)),
    (["S18"], _facts(UNKNOWN, failed=True, never=True)),
    (["S19"], _facts(UNKNOWN, failed=True)),
    ([], _facts(RUNNING, sidecar=True, decided=True, liveness=SUCCESS)),
]


@pytest.mark.parametrize(("rows", "facts"), SIGHTS)
def test_row_fits(rows: list[str], facts: InitContainerFacts) -> None:
    """Each row is found by what it stands for; a started sidecar goes on to the rows of its end."""
    assert [row.name for row in SidecarRules().rows_for(facts)] == rows


def test_every_row_is_there() -> None:
    """The table has nineteen rows, in their order, and each is tested."""
    table = [f"S{number}" for number in range(1, 20)]

    assert [row.name for row in SIDECAR_ROWS] == table
    assert {name for rows, _ in SIGHTS for name in rows} == set(table)


def decided(
    known: dict[str, str],
    *,
    policy: str = "Always",
    startup: ProbeOutcome | None = None,
    liveness: ProbeOutcome | None = None,
    behaviour: Behaviour | None = None,
    ready: bool = True,
    others: Sequence[ContainerRecord] = (),
) -> dict[str, Any]:
    """What is done for a pod whose containers are known to be so; "" is a container without a record."""
    inits = [name for name in known if name != "c1"]
    pod = a_pod(policy=policy, inits=inits)
    for one in (pod.spec and pod.spec.initContainers) or ():
        if one.name.startswith("scp"):
            one.startupProbe = object()  # type: ignore[assignment]
    found = [a_record(name, **STATES[state]) for name, state in known.items() if state]
    have = records(*found, *others, sandboxes=(a_sandbox(ready=ready),))
    now = SyncInput(
        pod,
        have,
        lambda one: liveness if one.startswith("sc") else None,
        lambda one: startup if one.startswith("scp") else None,
        behaviour or Behaviour.of(),
        sandbox_changed(pod, have),
    )
    return names(compute_actions(now))


@pytest.mark.parametrize(
    ("known", "more", "expected"),
    [
        pytest.param({"sc": "", "c1": "running"}, {}, {"init": "sc"}, id="S1"),
        pytest.param({"sc": "", "i1": ""}, {}, {"init": "sc"}, id="S2-begin"),
        pytest.param({"i1": "", "sc": "", "c1": "running"}, {}, {"init": "sc"}, id="S2-regular-is-past"),
        pytest.param({"i1": "exit 1", "sc": "running"}, {}, {"start": ["c1"]}, id="S3"),
        pytest.param({"sc": "created"}, {}, {"init": "sc"}, id="S4-sidecar"),
        pytest.param({"sc": "running", "i1": "created"}, {}, {"init": "i1"}, id="S4-regular"),
        pytest.param({"sc": "running", "i1": "running"}, {}, {}, id="S5"),
        pytest.param({"scp": "running"}, {}, {}, id="S6"),
        pytest.param({"scp": "running"}, {"startup": FAILURE}, {"init": "scp", "kill": ["scp-0"]}, id="S7"),
        pytest.param({"scp": "running"}, {"startup": NO_RESULT}, {}, id="S8"),
        pytest.param({"scp": "running"}, {"startup": SUCCESS}, {"start": ["c1"]}, id="S9"),
        pytest.param({"sc": "running", "i1": ""}, {}, {"init": "i1"}, id="S10"),
        pytest.param(
            {"sc": "old", "c1": "running"}, {"policy": "Never"}, {"init": "sc", "kill": ["sc-0"]}, id="S11"
        ),
        pytest.param(
            {"sc": "old", "i1": ""}, {}, {"init": "sc i1", "kill": ["sc-0"]}, id="S11-before-the-next"
        ),
        pytest.param(
            {"sc": "old", "c1": "running"},
            {"behaviour": replace(Behaviour.of(), restarts_changed_sidecars=False)},
            {},
            id="S11-not-in-1.28",
        ),
        pytest.param(
            {"sc": "running", "c1": "running"},
            {"liveness": FAILURE},
            {"init": "sc", "kill": ["sc-0"]},
            id="S12",
        ),
        pytest.param(
            {"sc1": "exit 0", "sc2": "exit 1", "c1": "running"},
            {"policy": "Never"},
            {"init": "sc1 sc2"},
            id="S13",
        ),
        pytest.param({"sc": "exit 1", "i1": "running"}, {}, {"init": "sc"}, id="S13-during-init"),
        pytest.param({"sc": "running", "i1": "exit 1"}, {}, {"init": "i1"}, id="S14"),
        pytest.param({"sc": "running", "i1": "exit 0"}, {}, {"start": ["c1"]}, id="S15"),
        pytest.param({"i1": "exit 0", "sc": ""}, {}, {"init": "sc"}, id="S16"),
        pytest.param(
            {"sc": "unknown", "c1": "running"},
            {"policy": "Never"},
            {"init": "sc", "kill": ["sc-0"]},
            id="S17",
        ),
        pytest.param({"sc": "running", "i1": "unknown"}, {"policy": "Never"}, {"kill_pod": True}, id="S18"),
        pytest.param({"sc": "running", "i1": "unknown"}, {}, {"init": "i1", "kill": ["i1-0"]}, id="S19"),
    ],
)
def test_row_is_followed(known: dict[str, str], more: dict[str, Any], expected: object) -> None:
    """Each row has its consequence for the pod (SIDECAR-02 to SIDECAR-10, SIDECAR-20 to SIDECAR-22)."""
    assert decided(known, **more) == expected


def test_ended_app_proves_nothing() -> None:
    """An app container that ended may be of another sandbox: init runs on; a created one is a proof."""
    assert decided({"sc": "running", "i1": "", "c1": "exit 1"}) == {"init": "i1"}
    assert decided({"sc": "running", "i1": "", "c1": "created"}) == {"start": ["c1"]}


@pytest.mark.parametrize("sidecar", ["running", "exit 0", ""])
def test_sidecars_do_not_keep_a_pod(sidecar: str) -> None:
    """When the app containers are done the pod is killed and no sidecar is started (SIDECAR-11)."""
    assert decided({"sc": sidecar, "i1": "exit 0", "c1": "exit 0"}, policy="Never") == {"kill_pod": True}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"sc": "exit 0", "c1": "exit 0"}, {"kill_pod": True}),
        ({"sc": "exit 0", "c1": "exit 1"}, {"kill_pod": True, "create": True, "init": "sc"}),
        ({"sc": "exit 0", "c1": ""}, {"kill_pod": True, "create": True, "init": "sc"}),
        ({"sc": "exit 0", "i1": "exit 0", "c1": ""}, {"kill_pod": True, "create": True, "init": "sc"}),
    ],
)
def test_new_sandbox_begins_at_the_first(known: dict[str, str], expected: object) -> None:
    """A new sandbox is opened by the first init container, unless the pod has had its run (SIDECAR-23)."""
    assert decided(known, policy="OnFailure", ready=False) == expected
