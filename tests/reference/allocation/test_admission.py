"""Admission: each reason to refuse a pod, and what counts as taken."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from config_doubles import a_node, a_pod
from lightkube.models.core_v1 import Pod

from kubelet_reference.allocation.admission import (
    HANDLERS,
    Admission,
    Handler,
    InsufficientResource,
    NodePressure,
    Rejection,
    demand_of,
)
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

SETTINGS = Settings(node_name="node-1", max_pods=3, cpu_millicores=1000, memory_bytes=1 << 30)
NODE = a_node(labels={"zone": "a", "size": "3"})


def with_container(name: str = "web", **container: Any) -> Pod:
    """A pod whose one container has these fields."""
    return a_pod(name, uid=name, spec={"containers": [{"name": "c1", "image": "img:1", **container}]})


def asking(name: str = "web", **requests: str) -> Pod:
    """A pod that asks for so much."""
    return with_container(name, resources={"requests": requests})


def on_port(name: str = "web", **port: Any) -> Pod:
    """A pod with a host port."""
    return with_container(name, ports=[{"containerPort": 80, **port}])


def selecting(**affinity: Any) -> Pod:
    """A pod that requires one expression of the node's labels."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return a_pod(spec={"affinity": {"nodeAffinity": node}})


OTHERS = [asking("o1", cpu="600m", memory="1Mi"), on_port("o2", hostPort=80, hostIP="10.0.0.1")]
SIDECAR = {"initContainers": [{"name": "s", "image": "img:1", "restartPolicy": "Always"}]}
_HALF = {"name": "c1", "image": "img:1", "resources": {"requests": {"cpu": "201m"}}}
GREEDY_SIDECAR = {
    "initContainers": [{**_HALF, "name": "s", "restartPolicy": "Always"}],
    "containers": [_HALF],
}

#: A pod beside the two others, and the reason for which it is refused.
CASES: dict[str, tuple[Pod, str | None]] = {
    "plain": (a_pod(), None),
    "cpu that fits": (asking(cpu="400m"), None),
    "too much cpu": (asking(cpu="401m"), "OutOfcpu"),
    "memory that fits": (asking(memory="1023Mi"), None),
    "too much memory": (asking(memory="1024Mi"), "OutOfmemory"),
    "limit counts as request": (with_container(resources={"limits": {"cpu": "1"}}), "OutOfcpu"),
    "port of another address": (on_port(hostPort=80, hostIP="10.0.0.2"), None),
    "port of all addresses": (on_port(hostPort=80), "NodePorts"),
    "port by its wildcard": (on_port(hostPort=80, hostIP="0.0.0.0"), "NodePorts"),  # noqa: S104
    "port of another protocol": (on_port(hostPort=80, protocol="UDP"), None),
    "container port only": (on_port(), None),
    "label": (a_pod(spec={"nodeSelector": {"zone": "a"}}), None),
    "other label": (a_pod(spec={"nodeSelector": {"zone": "b"}}), "NodeAffinity"),
    "affinity": (selecting(key="zone", operator="In", values=["a", "b"]), None),
    "affinity to others": (selecting(key="zone", operator="NotIn", values=["a"]), "NodeAffinity"),
    "affinity by number": (selecting(key="size", operator="Gt", values=["2"]), None),
    "affinity by no number": (selecting(key="zone", operator="Lt", values=["2"]), "NodeAffinity"),
    "affinity to no label": (selecting(key="gpu", operator="DoesNotExist"), None),
    "sidecar": (a_pod(spec=SIDECAR), None),
    "cpu beside a sidecar's": (a_pod(spec=GREEDY_SIDECAR), "OutOfcpu"),
    "other system": (a_pod(spec={"os": {"name": "windows"}}), "PodOSNotSupported"),
    "other system by label": (
        a_pod(spec={"nodeSelector": {"kubernetes.io/os": "windows"}}),
        "NodeAffinity",
    ),
}


def _admit(pod: Pod, others: Sequence[Pod] = (), **fields: Any) -> Rejection | None:
    """What admission says of a pod on a node that has nothing else to say."""
    usual: dict[str, Any] = {
        "node": lambda: None,
        "handlers": HANDLERS,
        "behaviour": Behaviour.of(),
        "node_pressure": NodePressure,
    }
    return Admission(SETTINGS, **{**usual, **fields}).admit(pod, others, lambda _: True)


@pytest.mark.parametrize(("pod", "reason"), CASES.values(), ids=CASES)
def test_pod_is_refused_for_its_reason(pod: Pod, reason: str | None) -> None:
    """Each pod is admitted, or refused with the reason that Kubernetes gives (ADMIT-03, ADMIT-06)."""
    found = _admit(pod, OTHERS, node=lambda: NODE)

    assert (found and found.reason) == reason


def test_sidecars_are_refused_without_their_gate() -> None:
    """A kubelet whose gate SidecarContainers is off refuses sidecars, and no other init container."""
    old = replace(Behaviour.of(), runs_sidecars=False)
    refused = _admit(a_pod(spec=SIDECAR), behaviour=old)

    assert refused is not None
    assert refused.reason == "InitContainerRestartPolicyForbidden"
    assert _admit(a_pod(spec={"initContainers": [{"name": "i", "image": "img:1"}]}), behaviour=old) is None


def test_node_takes_only_so_many_pods() -> None:
    """The pod above the limit is refused; a pod does not count against itself (ADMIT-03)."""
    full = [*OTHERS, a_pod("o3", uid="o3")]

    assert _admit(a_pod(uid="new"), full) == Rejection(
        "OutOfpods",
        "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
        InsufficientResource("pods", 1),
    )
    assert _admit(full[0], full) is None


def test_what_others_take_is_reckoned_anew_when_they_change() -> None:
    """A pod that asks for less from now on makes room (ADMIT-04)."""
    first = _admit(asking(cpu="500m"), OTHERS)
    second = _admit(asking(cpu="500m"), [asking("o1", cpu="100m")])

    assert (first and first.reason, second) == ("OutOfcpu", None)


def test_first_handler_that_refuses_decides() -> None:
    """Handlers are asked in order and can be replaced (ADMIT-01)."""
    rejections = [Rejection("A", ""), Rejection("B", "")]
    handlers: list[Handler] = [lambda _: None, *(lambda _, r=r: r for r in rejections)]

    assert _admit(a_pod(), handlers=handlers) is rejections[0]


@pytest.mark.parametrize(("init", "millicores"), [("300m", 310), ("100m", 210), ("2", 2010), ("0", 210)])
def test_init_containers_count_by_the_largest(init: str, millicores: int) -> None:
    """App containers add up, init containers run one by one; the overhead comes on top."""
    one = {"image": "img:1", "resources": {"requests": {"cpu": "100m"}}}
    spec = {
        "containers": [{"name": "a", **one}, {"name": "b", **one}],
        "initContainers": [{"name": "i", "image": "img:1", "resources": {"requests": {"cpu": init}}}],
        "overhead": {"cpu": "10m"},
    }

    assert demand_of(a_pod(spec=spec)).cpu_millicores == millicores


MEMORY, DISK = frozenset({"MemoryPressure"}), frozenset({"MemoryPressure", "DiskPressure"})
TOLERATES = {"tolerations": [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]}
SYSTEM = {"priority": 2_000_000_000}


@pytest.mark.parametrize(
    ("pod", "node_pressure", "reason"),
    [
        (a_pod(), NodePressure(MEMORY), "Evicted"),
        (a_pod(spec=TOLERATES), NodePressure(MEMORY), None),
        (asking(memory="1Mi"), NodePressure(MEMORY), None),
        (asking(memory="1Mi"), NodePressure(DISK), "Evicted"),
        (a_pod(spec=SYSTEM), NodePressure(DISK), None),
        (asking(memory="1Mi"), NodePressure(is_shutting_down=True), "NodeShutdown"),
        (a_pod(spec=SYSTEM), NodePressure(is_shutting_down=True), "NodeShutdown"),
    ],
)
def test_node_under_pressure(pod: Pod, node_pressure: NodePressure, reason: str | None) -> None:
    """A short node takes little, and one that goes down nothing (ADMIT-09, SHUT-01)."""
    refused = _admit(pod, node_pressure=lambda: node_pressure)

    assert (refused.reason if refused else None) == reason
