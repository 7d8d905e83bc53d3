"""The generated status of a pod: phase rules, addresses, and what it takes over from before."""

from collections.abc import Sequence
from typing import Any

import pytest
from decisions_bench import BEHAVIOUR, a_pod, a_record, a_sandbox, records
from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_reference.api.records import PodRecords
from kubelet_reference.status.conditions import condition
from kubelet_reference.status.pod_status import Ending, StatusContext, StatusDecisions, generate_pod_status
from kubelet_reference.status.reason_cache import ReasonCache
from kubelet_reference.util.versions import Behaviour

RUNS = records(a_record())
EVICTED = {"phase": "Failed", "reason": "Evicted", "message": "no memory"}


def a_status(shown: dict[str, Any]) -> PodStatus:
    """A status by its fields."""
    return PodStatus(**shown)


def generated(
    pod: Pod,
    known: PodRecords = RUNS,
    *,
    stored: dict[str, Any] | None = None,
    terminal: bool = False,
    behaviour: Behaviour = BEHAVIOUR,
    ending: Ending | None = None,
    node_ip: str = "192.0.2.2",
    decisions: StatusDecisions | None = None,
) -> PodStatus:
    """The status that is made; probes say nothing."""
    context = StatusContext(
        behaviour,
        ReasonCache(),
        update_statuses=lambda _, status: status,
        node_ip=node_ip,
        runtime=lambda: "fake",
        ending=lambda _: ending,
        resize_refused=lambda _: None,
        decisions=decisions or StatusDecisions(),
    )
    before = a_status(stored) if stored is not None else None
    return generate_pod_status(context, pod, known, stored=before, terminal=terminal)


@pytest.mark.parametrize(
    ("api", "stored", "known", "expected"),
    [
        pytest.param({}, None, RUNS, ("Running", None, None), id="by-containers"),
        pytest.param({}, EVICTED, RUNS, ("Failed", "Evicted", "no memory"), id="cached-terminal"),
        pytest.param(EVICTED, {"phase": "Running"}, RUNS, ("Failed", None, None), id="api-terminal"),
        pytest.param(EVICTED, None, RUNS, ("Failed", "Evicted", "no memory"), id="api-terminal-only"),
        pytest.param(
            {}, {"phase": "Running", "reason": "Why"}, RUNS, ("Running", "Why", None), id="reason-kept"
        ),
        pytest.param(
            {}, {"phase": "Pending", "reason": "Why"}, RUNS, ("Running", None, None), id="reason-dropped"
        ),
        pytest.param(
            {"phase": "Succeeded"}, {"phase": "Failed"}, RUNS, ("Succeeded", None, None), id="api-wins"
        ),
    ],
)
def test_phase_rules(
    api: dict[str, Any], stored: dict[str, Any] | None, known: PodRecords, expected: tuple[str | None, ...]
) -> None:
    """A terminal phase is final; reason and message stay as long as the phase does (STATUS-17, PHASE-11)."""
    status = generated(a_pod(status=api), known, stored=stored)

    assert (status.phase, status.reason, status.message) == expected


def test_handler_ends_the_pod() -> None:
    """A deadline or eviction makes the pod Failed, whatever its containers say (PHASE-13)."""
    status = generated(a_pod(), ending=Ending("DeadlineExceeded", "too late"))

    assert (status.phase, status.reason, status.message) == ("Failed", "DeadlineExceeded", "too late")


def test_last_status() -> None:
    """The last status of a pod ends it by its exit codes (TERM-16)."""
    known = records(a_record("c1", "EXITED", code=137), sandboxes=[a_sandbox(ready=False)])

    assert generated(a_pod(), known).phase == "Running"
    assert generated(a_pod(), known, terminal=True).phase == "Failed"


def test_conditions_of_others_are_kept() -> None:
    """Conditions of others stay, and so does a disruption that was set (STATUS-06, COND-08)."""
    theirs = {"type": "example.com/gate", "status": "True"}
    own = {"type": "Ready", "status": "True"}
    disruption = a_pod(conditions=[{"type": "DisruptionTarget", "status": "True"}]).status
    assert disruption is not None
    status = generated(a_pod(conditions=[theirs, own]), stored={"conditions": disruption.conditions})
    kinds = [one.type for one in status.conditions or ()]

    assert kinds[:2] == ["example.com/gate", "DisruptionTarget"]
    assert kinds.count("Ready") == 1


@pytest.mark.parametrize(("ready", "expected"), [(True, "True"), (False, "False")])
def test_condition_on_the_sandbox(ready: bool, expected: str) -> None:  # noqa: FBT001 - a case
    """PodReadyToStartContainers says whether the sandbox can be used (COND-06, COND-07)."""
    status = generated(a_pod(), records(a_record(), sandboxes=[a_sandbox(ready=ready)]))
    found = condition(status.conditions, "PodReadyToStartContainers")

    assert found is not None
    assert found.status == expected


@pytest.mark.parametrize(
    ("ips", "spec", "stored", "expected"),
    [
        pytest.param(("10.88.0.2",), {}, {}, ["10.88.0.2"], id="sandbox"),
        pytest.param((), {}, {"podIP": "10.88.0.9"}, [], id="no-sandbox"),
        pytest.param(("fd00::2", "10.88.0.2"), {}, {}, ["10.88.0.2", "fd00::2"], id="node-family-first"),
        pytest.param(("10.88.0.2", "10.88.0.3", "fd00::2"), {}, {}, ["10.88.0.2", "fd00::2"], id="one-each"),
        pytest.param((), {"hostNetwork": True}, {}, ["192.0.2.2"], id="host"),
        pytest.param((), {"hostNetwork": True}, {"podIP": "192.0.2.1"}, ["192.0.2.1"], id="host-stays"),
    ],
)
def test_addresses(
    ips: tuple[str, ...], spec: dict[str, Any], stored: dict[str, Any], expected: Sequence[str]
) -> None:
    """The podIPs are the sandbox's, the node's family first, or the node's own (STATUS-16, SANDBOX-22)."""
    status = generated(a_pod(spec=spec), records(a_record(), ips=ips), stored=stored)

    assert [one.ip for one in status.podIPs or ()] == expected
    assert status.podIP == (expected[0] if expected else None)
    assert (status.hostIP, [one.ip for one in status.hostIPs or ()]) == ("192.0.2.2", ["192.0.2.2"])


def test_addresses_of_the_node() -> None:
    """The hostIPs came with 1.29; a kubelet on its own reports none, the pod IPv4 first (STATUS-16)."""
    old = generated(a_pod(), behaviour=Behaviour.of("1.26"))
    alone = generated(a_pod(), records(a_record(), ips=("fd00::2", "10.88.0.2")), node_ip="")

    assert (old.hostIP, old.hostIPs) == ("192.0.2.2", None)
    assert (alone.hostIP, alone.hostIPs, alone.podIP) == (None, None, "10.88.0.2")


CPU, MEMORY = {"cpu": "500m"}, {"memory": "1Gi"}
NONE: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param([NONE, NONE], "BestEffort", id="nothing"),
        pytest.param([{"requests": {"cpu": "0"}}, NONE], "BestEffort", id="zero"),
        pytest.param([{"requests": CPU}, NONE], "Burstable", id="one-request"),
        pytest.param([{"limits": CPU | MEMORY}, NONE], "Burstable", id="one-without"),
        pytest.param([{"limits": CPU | MEMORY, "requests": {"cpu": "0.5"}}] * 2, "Guaranteed", id="equal"),
        pytest.param([{"limits": CPU | MEMORY, "requests": {"cpu": "0.4"}}] * 2, "Burstable", id="less"),
        pytest.param([{"limits": CPU, "requests": CPU}] * 2, "Burstable", id="no-memory"),
    ],
)
def test_quality_of_service(resources: list[dict[str, Any]], expected: str) -> None:
    """The class of a pod follows from its containers' requests and limits (STATUS-16)."""
    containers = [{"name": f"c{n}", "resources": one} for n, one in enumerate(resources)]

    assert generated(a_pod(spec={"containers": containers})).qosClass == expected
    assert generated(a_pod(status={"qosClass": "Given"})).qosClass == "Given"


def test_decisions_can_be_replaced() -> None:
    """Each decision is one part that another can stand in for."""

    def odd(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
        assert (pod, behaviour, terminating) == (a_pod(), BEHAVIOUR, False)
        assert status.containerStatuses
        return "Odd"

    status = generated(a_pod(), decisions=StatusDecisions(pod_phase=odd))

    assert status.phase == "Odd"
