"""Evictions, preemptions and the shutdown of a node: the decisions."""

from typing import Any

import pytest
from config_doubles import a_pod
from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_reference.api import pods
from kubelet_reference.api.pods import SYSTEM_CRITICAL, is_critical, may_preempt
from kubelet_reference.eviction.eviction_rules import (
    Threshold,
    condition_of,
    exceeded_limits,
    is_met,
    kill_grace,
    ranked,
    resource_of,
    thresholds,
)
from kubelet_reference.eviction.nodeshutdown import Group, by_group, groups
from kubelet_reference.eviction.preemption import victims
from kubelet_reference.status.conditions import ended_by_kubelet
from kubelet_reference.util.ports import Amount, PodUsage
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

STATIC = a_pod("static", annotations={"kubernetes.io/config.source": "file"})
HARD, SOFT = Threshold("memory.available", "100Mi"), Threshold("memory.available", "200Mi", 30)


def asking(name: str, **requests: str) -> Pod:
    """A pod that asks for so much."""
    container = {"name": "c1", "image": "img:1", "resources": {"requests": requests}}
    return a_pod(name, uid=name, spec={"containers": [container]})


def ranking(name: str, priority: int | None) -> Pod:
    """A pod of that priority."""
    return a_pod(name, uid=name, spec={"priority": priority})


def test_thresholds_in_order() -> None:
    """Memory comes before disks, and what is hard before what is soft."""
    found = thresholds(
        Settings(
            eviction_hard={"nodefs.available": "10%", "memory.available": "100Mi"},
            eviction_soft={"memory.available": "200Mi"},
            eviction_soft_grace_period={"memory.available": 30},
        )
    )

    assert found == (HARD, SOFT, Threshold("nodefs.available", "10%"))
    assert [resource_of(one.signal) for one in found] == ["memory", "memory", "ephemeral-storage"]
    assert [condition_of(one.signal) for one in found] == ["MemoryPressure", "MemoryPressure", "DiskPressure"]


@pytest.mark.parametrize(
    ("limit", "available", "met"),
    [("100Mi", 100 << 20, False), ("100Mi", (100 << 20) - 1, True), ("10%", 10, False), ("10%", 9, True)],
)
def test_too_little(limit: str, available: int, *, met: bool) -> None:
    """Less than the limit is too little, not as much."""
    assert is_met(Threshold("memory.available", limit), Amount(available, 100)) is met
    assert not is_met(Threshold("memory.available", limit), None)


def test_who_goes_first() -> None:
    """Who uses more than it asked for, then who has the least priority, then who is furthest above."""
    used = {"modest": 10, "greedy": 300, "greedier": 400, "important": 900}
    every = [asking(name, memory="50") for name in ("modest", "greedy", "greedier")]
    important = a_pod("important", uid="important", spec={"priority": 5})
    order = ranked([*every, important], "memory", lambda pod: PodUsage({"memory": used[pods.name(pod)]}))

    assert [pods.name(pod) for pod in order] == ["greedier", "greedy", "important", "modest"]


@pytest.mark.parametrize(
    ("version", "threshold", "most", "grace"),
    [
        ("1.32", HARD, 60, 1),
        ("1.32", None, 60, 1),
        ("1.30", HARD, 60, None),
        ("1.32", SOFT, 20, 20),
        ("1.32", SOFT, 90, 30),
        ("1.30", SOFT, 90, 90),
        ("1.32", SOFT, -1, None),
    ],
)
def test_grace_of_an_eviction(
    version: str, threshold: Threshold | None, most: int, grace: int | None
) -> None:
    """The threshold, the maximum and the version decide (EVICT-03)."""
    pod = a_pod(spec={"terminationGracePeriodSeconds": 30})
    settings = Settings(eviction_max_pod_grace_period=most)

    assert kill_grace(threshold, pod, settings, Behaviour.of(version)) == grace


@pytest.mark.parametrize(
    ("usage", "exceeds"),
    [
        (PodUsage(), False),
        (PodUsage(volumes={"data": 1 << 30}), False),
        (PodUsage(volumes={"data": (1 << 30) + 1}), True),
        (PodUsage(containers={"c1": 3 << 30}), True),
        (PodUsage(amounts={"ephemeral-storage": 3 << 30}), True),
        (PodUsage(amounts={"memory": 3 << 30}), False),
    ],
)
def test_own_limits(usage: PodUsage, *, exceeds: bool) -> None:
    """A volume, a container, and all of them together have limits (EVICT-08)."""
    limited = {"name": "c1", "image": "img:1", "resources": {"limits": {"ephemeral-storage": "2Gi"}}}
    limit: dict[str, Any] = {"sizeLimit": "1Gi"}
    volumes = [{"name": "data", "emptyDir": limit}, {"name": "any", "emptyDir": dict[str, Any]()}]
    pod = a_pod(spec={"containers": [limited], "volumes": volumes})

    assert any(exceeded_limits(pod, usage)) is exceeds


def test_who_is_critical() -> None:
    """Static pods, and those of the system (STATIC-23)."""
    assert is_critical(STATIC)
    assert is_critical(ranking("system", SYSTEM_CRITICAL))
    assert not is_critical(ranking("web", SYSTEM_CRITICAL - 1))
    assert may_preempt(STATIC, ranking("web", 7))
    assert not may_preempt(STATIC, ranking("system", SYSTEM_CRITICAL))
    assert may_preempt(ranking("high", 7), ranking("low", 6))
    assert not may_preempt(ranking("high", 7), ranking("none", None))


def best_effort(name: str) -> Pod:
    """A pod that asks for nothing."""
    return a_pod(name, uid=name)


@pytest.mark.parametrize(
    ("missing", "gone"),
    [
        (1, {"small"}),
        (2, {"middle"}),
        (4, {"large"}),
        (8, {"large", "small"}),
        (9, {"large", "middle"}),
        (12, set[str]()),
    ],
)
def test_fewest_make_room(missing: int, gone: set[str]) -> None:
    """As few pods as will do go, and none if all would not do (ADMIT-08)."""
    sizes = {"small": 1, "middle": 3, "large": 7}
    found = victims(STATIC, [best_effort(name) for name in sizes], missing, lambda pod: sizes[pods.name(pod)])

    assert {pods.name(pod) for pod in found} == gone


def test_better_class_is_spared() -> None:
    """Who asked for nothing goes before who asked for something, even if that takes more pods."""
    others = [best_effort("a"), best_effort("b"), asking("c", cpu="1")]
    found = victims(STATIC, others, 2, lambda pod: 2 if pods.name(pod) == "c" else 1)

    assert sorted(pods.name(pod) for pod in found) == ["a", "b"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(), ()),
        (Settings(shutdown_grace_period=30), (Group(0, 30), Group(SYSTEM_CRITICAL, 0))),
        (
            Settings(shutdown_grace_period=30, shutdown_grace_period_critical_pods=10),
            (Group(0, 20), Group(SYSTEM_CRITICAL, 10)),
        ),
        (
            Settings(shutdown_grace_period_by_pod_priority=((1000, 5), (-10, 7))),
            (Group(-10, 7), Group(1000, 5)),
        ),
    ],
)
def test_groups_of_a_shutdown(settings: Settings, expected: tuple[Group, ...]) -> None:
    """By priority, or two; none unless asked for (SHUT-04)."""
    assert groups(settings) == expected


def test_pods_find_their_group() -> None:
    """A pod belongs to the highest group that it reaches, and to the lowest if it reaches none."""
    low, high = Group(10, 1), Group(1000, 1)
    every = [ranking("none", None), ranking("ten", 10), ranking("more", 999), ranking("high", 5000)]
    found = {
        group.priority: [pods.name(pod) for pod in one] for group, one in by_group((low, high), every).items()
    }

    assert found == {10: ["none", "ten", "more"], 1000: ["high"]}


@pytest.mark.parametrize("version", ["1.24", "1.26"])
@pytest.mark.parametrize("spares", [True, False])
def test_status_of_a_disrupted_pod(version: str, *, spares: bool) -> None:
    """Failed for the reason given, marked from 1.26 on; a success may be spared (COND-08, SHUT-02)."""
    change = ended_by_kubelet("Evicted", "why", Behaviour.of(version), spares_success=spares)
    running, done = change(PodStatus(phase="Running")), change(PodStatus(phase="Succeeded"))
    marks: Any = [one.type for one in running.conditions or ()]

    assert (running.phase, running.reason, running.message) == ("Failed", "Evicted", "why")
    assert done.phase == ("Succeeded" if spares else "Failed")
    assert marks == (["DisruptionTarget"] if version == "1.26" else [])
