"""What the sync loop does with pods that sources add, change, remove and report."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from lightkube.models.core_v1 import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodReadinessGate,
    PodSpec,
    PodStatus,
)
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_fakes.clock import run
from kubelet_reference.allocation.admission import InsufficientResource, Rejection
from kubelet_reference.api import names
from kubelet_reference.api.events import Recorder
from kubelet_reference.api.pods import uid as uid_of
from kubelet_reference.config.pod_manager import PodManager
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.pod_workers.pod_state_queries import PodActivity
from kubelet_reference.pod_workers.worker import Update, UpdateKind
from kubelet_reference.util.ports import PodEvent
from kubelet_reference.util.versions import Behaviour


class Around:
    """All that the handlers work with: workers that note updates, an admission that refuses."""

    def __init__(self) -> None:
        self.manager = PodManager()
        self.updates: list[tuple[str, UpdateKind]] = []
        self.refused: dict[str, Rejection] = {}
        self.others: dict[str, list[str]] = {}
        self.ending: set[str] = set()
        self.terminated: set[str] = set()
        self.statuses: dict[str, PodStatus] = {}
        self.cleared: list[str] = []
        self.lesser: set[str] = set()
        self.preempted: list[str] = []
        self.enough = 2
        self.events: list[PodEvent] = []
        self.seen = True
        me = cast("Any", self)
        self.handlers = PodHandlers(
            manager=self.manager,
            workers=me,
            activity=PodActivity(me, me),
            admission=me,
            statuses=me,
            preemption=me,
            recorder=Recorder(self),
            behaviour=Behaviour.of(),
            all_sources_seen=lambda: self.seen,
            remove_dead_containers=self.cleared.append,
            allocated=lambda pod: pod,
        )

    def add(self, added: Sequence[Pod]) -> None:
        """Hand new pods over, and wait until they are admitted."""
        run(self.handlers.add(added))

    def victims(
        self, pod: Pod, others: Sequence[Pod], missing: int, frees: Callable[[Pod], int]
    ) -> Sequence[Pod]:
        """Who makes room is the first one."""
        assert missing == 1
        assert frees(pod) == 1
        return [other for other in others if uid_of(other) in self.lesser][:1]

    async def end(self, victim: Pod) -> None:
        """A pod makes room, and there is some then."""
        self.preempted.append(uid_of(victim))
        if len(self.preempted) == self.enough:
            self.refused.clear()

    def update_pod(self, update: Update) -> None:
        """A worker is notified."""
        self.updates.append((update.uid, update.kind))

    def is_pod_known_terminated(self, uid: str) -> bool:
        """Whether nothing of it runs."""
        return uid in self.terminated

    def is_termination_requested(self, uid: str) -> bool:
        """Whether it is ending."""
        return uid in self.ending

    def get(self, uid: str) -> PodStatus | None:
        """The status set last."""
        return self.statuses.get(uid)

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        """Set it."""
        self.statuses[uid_of(pod)] = status

    def admit(self, pod: Pod, others: Sequence[Pod], is_active: Callable[[Pod], bool]) -> Rejection | None:
        """Refuse what is to be refused."""
        uid = (pod.metadata or ObjectMeta()).uid or ""
        self.others[uid] = [
            (other.metadata or ObjectMeta()).uid or "" for other in others if is_active(other)
        ]
        return self.refused.get(uid)

    def monotonic(self) -> float:
        """No time goes by."""
        return 0

    def emit(self, event: PodEvent) -> None:
        """Keep the event."""
        self.events.append(event)


def pod(uid: str, *, age: int = 0, phase: str = "", **metadata: Any) -> Pod:
    """A pod that was created `age` seconds before the others."""
    created = datetime.fromtimestamp(1_000_000 - age, UTC)
    return Pod(
        metadata=ObjectMeta(uid=uid, name=uid, namespace="default", creationTimestamp=created, **metadata),
        spec=PodSpec(containers=[]),
        status=PodStatus(phase=phase) if phase else None,
    )


def static(uid: str, name: str = "web") -> Pod:
    """A static pod."""
    found = ObjectMeta(uid=uid, name=name, namespace="default", annotations={names.CONFIG_SOURCE: "file"})
    return Pod(metadata=found, spec=PodSpec(containers=[]))


def mirror(uid: str, name: str = "web") -> Pod:
    """A mirror pod."""
    found = ObjectMeta(uid=uid, name=name, namespace="default", annotations={names.CONFIG_MIRROR: "hash"})
    return Pod(metadata=found, spec=PodSpec(containers=[]))


def test_oldest_first() -> None:
    """Pods of one batch are taken in the order of their creation (LOOP-14)."""
    around = Around()
    around.add([pod("young"), pod("old", age=60), pod("middle", age=30)])

    assert around.updates == [(uid, UpdateKind.CREATE) for uid in ("old", "middle", "young")]
    assert around.others == {"old": [], "middle": ["old"], "young": ["old", "middle"]}


def test_refused_pod_is_failed_and_no_worker_notified() -> None:
    """A refusal is an event and the phase Failed; the pod stays known and counts no more (ADMIT-02)."""
    around = Around()
    around.refused["b"] = Rejection("OutOfcpu", "no room")
    around.add([pod("a", age=3), pod("b", age=2), pod("c", age=1)])
    status = around.statuses["b"]

    assert [uid for uid, _ in around.updates] == ["a", "c"]
    assert (status.phase, status.reason, status.message) == (
        "Failed",
        "OutOfcpu",
        "Pod was rejected: no room",
    )
    assert [event.reason for event in around.events] == ["OutOfcpu"]
    assert around.others["c"] == ["a"]


@pytest.mark.parametrize(("lesser", "updated"), [("ab", ["a", "b", "new"]), ("a", ["a", "b"])])
def test_critical_pod_makes_itself_room(lesser: str, updated: list[str]) -> None:
    """Pods are ended one after another until the new one fits, or nobody is left to be ended (ADMIT-08)."""
    around = Around()
    around.lesser = set(lesser)
    around.add([pod("a", age=3), pod("b", age=2)])
    around.refused["new"] = Rejection("OutOfpods", "no room", InsufficientResource("pods", 1))
    around.add([pod("new")])

    assert around.preempted == list(lesser)
    assert [uid for uid, _ in around.updates] == updated
    assert ("new" in around.statuses) is (lesser == "a")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pod_that_is_over_is_not_admitted(phase: str) -> None:
    """A pod that is over or ending is handed to its worker without being asked for its fit (ADMIT-05)."""
    around = Around()
    around.ending.add("ending")
    around.add([pod("over", phase=phase), pod("ending")])

    assert [uid for uid, _ in around.updates] == ["over", "ending"]
    assert around.others == {}


def test_who_counts_as_active() -> None:
    """Stopped pods and pods that are over take no room; one that is being stopped does (ADMIT-04)."""
    around = Around()
    around.add([pod("stopped"), pod("over", phase="Failed"), pod("stopping", phase="Failed")])
    around.terminated.add("stopped")
    around.ending.add("stopping")
    around.add([pod("new")])

    assert around.others["new"] == ["stopping"]


def test_update_is_not_admitted_again() -> None:
    """What changes goes to the worker, whether it would still fit or not (ADMIT-01)."""
    around = Around()
    around.add([pod("a")])
    around.refused["a"] = Rejection("OutOfcpu", "no room")
    around.handlers.update([pod("a", labels={"new": "label"})])

    assert around.updates == [("a", UpdateKind.CREATE), ("a", UpdateKind.UPDATE)]


def test_removal() -> None:
    """A removed pod is killed, but not before every source has spoken (CONFIG-17, LOOP-08)."""
    around = Around()
    around.add([pod("a"), pod("b")])
    around.updates.clear()
    around.seen = False
    around.handlers.remove([pod("a")])
    around.seen = True
    around.handlers.remove([pod("b")])

    assert around.updates == [("b", UpdateKind.KILL)]
    assert around.manager.pods() == ()


def test_mirror_is_never_run() -> None:
    """Whatever happens to a mirror makes its static pod have a look, if there is one (CONFIG-15)."""
    around = Around()
    around.add([mirror("m1", "nobody")])
    around.add([static("s")])
    around.updates.clear()
    for handle in (around.add, around.handlers.update, around.handlers.remove):
        handle([mirror("m2")])

    assert around.updates == [("s", UpdateKind.UPDATE)] * 3


def test_only_wanted_pods_are_synced() -> None:
    """What happens to a pod that nobody wants is ignored (LOOP-09)."""
    around = Around()
    around.add([pod("a")])
    around.updates.clear()
    around.handlers.sync(["unknown", "a"])

    assert around.updates == [("a", UpdateKind.SYNC)]


def gated(ready: str, gate: str) -> Pod:
    """A pod with a readiness gate whose container is ready, and what the API server shows of it."""
    spec = PodSpec(
        containers=[Container(name="app")], readinessGates=[PodReadinessGate(conditionType="open")]
    )
    shown = [PodCondition(type="Ready", status=ready), PodCondition(type="open", status=gate)]
    container = ContainerStatus(name="app", image="", imageID="", ready=True, restartCount=0)
    status = PodStatus(phase="Running", conditions=shown, containerStatuses=[container])
    return Pod(metadata=pod("a").metadata, spec=spec, status=status)


@pytest.mark.parametrize(
    ("reported", "syncs"),
    [
        (pod("a", phase="Running"), 0),
        (gated("False", "True"), 1),
        (gated("True", "True"), 0),
        (gated("True", "False"), 1),
    ],
    ids=["no-gates", "opened", "as-shown", "closed"],
)
def test_reported_status(reported: Pod, syncs: int) -> None:
    """A status that others changed matters only where a gate makes Ready another one (CONFIG-16)."""
    around = Around()
    around.handlers.reconcile([reported])

    assert around.updates == [("a", UpdateKind.SYNC)] * syncs
    assert around.manager.by_uid("a") is reported


def test_evicted_pod_is_cleared_away() -> None:
    """Once the API server shows a pod as Evicted its dead containers go (CONFIG-16)."""
    around = Around()
    evicted = pod("a", phase="Failed")
    evicted = Pod(
        metadata=evicted.metadata, spec=evicted.spec, status=PodStatus(phase="Failed", reason="Evicted")
    )
    around.handlers.reconcile([evicted, pod("b", phase="Failed")])

    assert around.cleared == ["a"]
