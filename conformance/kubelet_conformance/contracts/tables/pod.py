"""What is done about a pod, as far as a trace shows the inputs."""

from typing import Any, Literal, NamedTuple, TypeAlias

from kubelet_conformance.contract import Pod
from kubelet_conformance.contracts.facts.pod import at_its_end
from kubelet_conformance.contracts.tables.table import Row, Table

Json: TypeAlias = dict[str, Any]
Successor: TypeAlias = Literal["none", "with the first init container", "with the app containers"]
"""Whether another sandbox is run, and what is created in it first."""
Stage: TypeAlias = Literal["wanted", "terminating", "terminated", "forgotten"]
"""`terminated`: nothing of the pod runs; `forgotten`: and no source has it either."""
Act: TypeAlias = Literal["make", "remove volumes", "remove folder"]
Change: TypeAlias = Literal["added", "removed", "deleted", "updated", "reconciled", "nothing"]


class Stopped(NamedTuple):
    """Inputs for a sandbox: the policy, whether a container was created, and what there is to run.

    `more` says that some app container is left to run, `inits` that the pod has init containers.
    """

    policy: str
    made: bool
    more: bool = True
    inits: bool = False


class StageSeen(NamedTuple):
    """Inputs for a stage: is it in a source, was it asked to end, has its run ended, does it still run."""

    wanted: bool = True
    asked: bool = False
    ended: bool = False
    runs: bool = False


class ManifestParts(NamedTuple):
    """A manifest: its significant part, whether the pod is being terminated, and its status."""

    meaning: Json
    deleting: bool
    status: Json


class ManifestChange(NamedTuple):
    """The manifest of a pod that a source sent last, and the one it sends now; None where it sends none."""

    old: ManifestParts | None
    new: ManifestParts | None

    @property
    def say_the_same(self) -> bool:
        """Spec, labels, annotations and deletion are as they were."""
        return self.old is not None and self.new is not None and self.old.meaning == self.new.meaning


SUCCESSORS = Table[Stopped, Successor](
    Row("A1", lambda s: s.policy == "Never" and s.made, "none", "the pod has had its run"),
    Row("A4", lambda s: not s.more, "none", "all of it has succeeded"),
    Row("A3, A5, A7", lambda s: s.inits, "with the first init container", "initialization starts again"),
    Row("A2, A6", lambda _: True, "with the app containers", "some of them are left to run"),
)
"""What is done about a pod whose sandbox cannot be used any more."""
STAGES = Table[StageSeen, Stage](
    Row("S1", lambda s: s.runs and (s.asked or not s.wanted), "terminating", "it has to stop first"),
    Row("S2", lambda s: s.runs and s.ended, "terminating", "its run is over, and something is left"),
    Row("S3", lambda s: not s.wanted, "forgotten", "no source has it, and nothing of it runs"),
    Row("S4", lambda s: s.asked or s.ended, "terminated", "it is over, and nothing of it runs"),
    Row("S5", lambda _: True, "wanted", "it was not asked to terminate"),
)
"""The stage of a pod, as it shows from outside."""
ALLOWED: dict[Stage, frozenset[Act]] = {
    "wanted": frozenset({"make"}),
    "terminating": frozenset(),
    "terminated": frozenset({"remove volumes", "remove folder"}),
    "forgotten": frozenset({"remove volumes", "remove folder"}),
}
"""What may be done to a pod at each stage; a sync in progress may end before a termination begins."""
CHANGES = Table[ManifestChange, Change](
    Row("M1", lambda w: w.old is None and w.new is None, "nothing", "the source has never had it"),
    Row("M2", lambda w: w.new is None, "removed", "the source has it no more"),
    Row("M3", lambda w: w.old is None, "added", "the source did not have it"),
    Row("M4", lambda w: w.old == w.new, "nothing", "it was sent again"),
    Row("M5", lambda w: w.say_the_same, "reconciled", "nothing but its status is new"),
    Row(
        "M6",
        lambda w: w.new is not None and w.new.deleting,
        "deleted",
        "it is to be terminated, whatever else changed",
    ),
    Row("M7", lambda _: True, "updated", "it means something else"),
)
"""The kind of change between a source's last manifest of a pod and its new one."""


def stage_seen(pod: Pod) -> StageSeen:
    """What a trace shows of a pod's stage."""
    runs = any(container.state == "running" for container in pod.every_container())
    ended = bool(pod.finished) or at_its_end(pod)
    return StageSeen(pod.wanted, pod.termination is not None, ended, runs)


def manifest_parts(pod: Json) -> ManifestParts:
    """The parts of a manifest that are compared; the kubelet's own annotations are not (CONFIG-05)."""
    meta: Json = pod.get("metadata") or {}
    annotations: dict[str, str] = meta.get("annotations") or {}
    deletion = (meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds"))
    meaning = {
        "spec": pod.get("spec"),
        "labels": meta.get("labels") or {},
        "deletion": deletion,
        "annotations": {
            key: v for key, v in annotations.items() if not key.startswith("kubernetes.io/config.")
        },
    }
    return ManifestParts(meaning, bool(deletion[0]), pod.get("status") or {})
