"""A pod's cgroup: made before anything runs, and what has lost it is killed once (SYNC-17)."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from decisions_bench import a_record
from lightkube.models.core_v1 import Pod, PodSpec
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_fakes.clock import run
from kubelet_reference.api.records import PodRecords
from kubelet_reference.api.sync_result import SyncResult
from kubelet_reference.pod_workers.sync_pod import PodSyncer

RUNNING = a_record("app")
NOTHING, SOMETHING = PodRecords("u1"), PodRecords("u1", containers=(RUNNING,))


class Machine:
    """Notes what is asked of the cgroups and of the runtime."""

    def __init__(self, *there: str) -> None:
        self.there = list(there)
        self.steps: list[str] = []

    def uids(self) -> Sequence[str]:
        """Those that are there."""
        return self.there

    def exists(self, uid: str) -> bool:
        """Whether it is there."""
        return uid in self.there

    def make(self, uid: str) -> None:
        """It is there now."""
        self.there.append(uid)
        self.steps.append("make")

    async def kill_pod(self, pod: Pod, running: PodRecords, grace: int | None) -> SyncResult:
        """All is stopped."""
        del pod, running, grace
        self.steps.append("kill")
        return SyncResult()


def syncer(**parts: Any) -> PodSyncer:
    """A syncer of which only these parts are used."""
    unused: dict[str, Any] = dict.fromkeys(each.name for each in dataclasses.fields(PodSyncer))
    return PodSyncer(**unused | parts)


def kept(machine: Machine, records: PodRecords, policy: str = "Always") -> list[str]:
    """What a round does about the cgroup of a pod."""
    pod = Pod(metadata=ObjectMeta(uid="u1"), spec=PodSpec(containers=[], restartPolicy=policy))
    run(syncer(cgroups=machine, runtime=machine).ensure_cgroup(pod, records))
    return machine.steps


@pytest.mark.parametrize(
    ("there", "records", "policy", "steps"),
    [
        pytest.param("u1", SOMETHING, "Always", [], id="there"),
        pytest.param("", NOTHING, "Always", ["make"], id="new pod"),
        pytest.param("", NOTHING, "Never", ["make"], id="new pod that runs once"),
        pytest.param("", SOMETHING, "Always", ["kill", "make"], id="lost"),
        pytest.param("", SOMETHING, "Never", ["kill"], id="lost and not to be restarted"),
    ],
)
def test_cgroup_of_a_pod(there: str, records: PodRecords, policy: str, steps: list[str]) -> None:
    """What runs without a cgroup is killed, and gets one unless it is not to run again."""
    assert kept(Machine(there), records, policy) == steps


def test_node_without_cgroups() -> None:
    """Where nobody keeps cgroups, nothing is done about them."""
    run(syncer(cgroups=None).ensure_cgroup(Pod(metadata=ObjectMeta(uid="u1")), SOMETHING))
