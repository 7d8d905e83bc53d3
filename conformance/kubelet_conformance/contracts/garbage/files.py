"""GC and CLEANUP: when the files of pods and containers are removed."""

from pathlib import PurePosixPath

from msgspec import field

from kubelet_conformance.contract import Container, Manifest, Moment, Note, Pod
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS
from kubelet_conformance.contract.definition import (
    KEPT,
    Findings,
    answered,
    broken,
    contract,
    kept_if,
    observer,
)
from kubelet_conformance.contract.patterns import deleted, pod_set
from kubelet_conformance.contracts.facts.disk import log_path
from kubelet_conformance.contracts.facts.kills import deletion_grace, forced
from kubelet_conformance.contracts.facts.pod import DISK, FAULT
from kubelet_conformance.contracts.facts.timing import GC_PERIOD
from kubelet_conformance.contracts.garbage.containers import GC_SLACK, REMOVE
from kubelet_conformance.trace.format.records import Disk
from kubelet_conformance.trace.world.disruption import may_be_disrupted
from kubelet_conformance.trace.world.views import Latest

_PODS, _OF_PODS = "pods", "/pods/"


class _Paths(Note):
    """Paths of pods and of their logs: the seqs at which each appeared and was removed last."""

    appeared: Latest[str, int] = field(default_factory=Latest[str, int])
    removed: Latest[str, int] = field(default_factory=Latest[str, int])
    seq: int = 0

    def take(self, record: Disk) -> None:
        """A file appeared, or was removed."""
        if record.op in {"folder", "written", "removed"} and _OF_PODS in record.path:
            (self.removed if record.op == "removed" else self.appeared)[record.path] = self.seq

    def there(self, path: str) -> bool | None:
        """Whether it is there, as far as the trace shows; a removed folder takes along what is in it."""
        if path not in self.appeared and path not in self.removed:
            return None
        around = (path, *map(str, PurePosixPath(path).parents))
        return self.appeared.get(path, -1) > max(self.removed.get(each, -1) for each in around)


@observer(on=DISK)
def _take(m: Moment) -> None:
    paths = m.node.note(_Paths)
    if isinstance(m.record, Disk) and paths.seq != m.seq:
        paths.seq = m.seq
        paths.take(m.record)


REMOVED = DISK.where(lambda m: isinstance(m.record, Disk) and m.record.op == "removed")


@contract("GC-06", on=REMOVE, needs=(CRI,))
def logs_go_before_their_container(m: Moment, container: Container) -> Findings:
    """The log of a container is removed before its record; as long as it cannot be, the record stays."""
    path = log_path(container)
    there = m.node.note(_Paths).there(path)
    if there is None:
        return None
    return kept_if(not there, f"{container.name} is removed, and its log is left", container.create)


def _folder_of(pod: Pod) -> str:
    """The folder of the pod's logs."""
    configs = [sandbox.config for sandbox in pod.sandboxes]
    return next((each.log_directory for each in configs if each is not None and each.log_directory), "")


@contract("GC-07", on=deleted(), needs=(CRI, PODS))
def log_folder_of_a_gone_pod_goes(m: Moment, pod: Pod) -> Findings:
    """The folder of a pod's logs is removed within a minute once the pod is gone."""
    return _goes(m, pod, _folder_of(pod), "the folder of the logs")


def _goes(m: Moment, pod: Pod, path: str, what: str) -> Findings:
    """The folder of a pod that is gone is removed within a minute and its grace."""
    if pod.static or not m.node.kubelet_up or not m.node.note(_Paths).there(path):
        return None
    grace = pod.spec.grace_seconds if pod.spec is not None else 0
    return answered(
        by=REMOVED.where(lambda n: isinstance(n.record, Disk) and n.record.path == path),
        within=GC_PERIOD + GC_SLACK + grace + _forced_grace(m, pod),
        unless=FAULT,
        whole_node=True,
        text=f"{what} of {pod.name} is removed",
    )


def _forced_grace(m: Moment, pod: Pod) -> float:
    """What a forced deletion leaves the containers, once the sync in progress has used up its own grace."""
    grace = deletion_grace(m, pod) if forced(pod) else 0
    return grace if grace is not None else pod.spec.grace_seconds if pod.spec is not None else 0


def _pod_of_logs(m: Moment) -> Pod | None:
    """The pod whose folder of logs is removed here: the UID ends its name."""
    folder, _, name = m.record.path.rpartition("/") if isinstance(m.record, Disk) else ("", "", "")
    is_one = folder.endswith("/pods") and name.count("_") > 1
    return m.world.pods.get(name.rpartition("_")[2]) if is_one else None


@log_folder_of_a_gone_pod_goes.clause("not before", on=REMOVED)
def log_folder_of_a_desired_pod_stays(m: Moment) -> Findings:
    """The log folder of a desired pod is not removed."""
    pod = _pod_of_logs(m)
    if pod is None or not pod.wanted or not pod.born:
        return None
    over = pod.termination is not None or bool(pod.finished) or may_be_disrupted(pod)
    return None if over else broken(f"the logs of {pod.name}, which is desired, are removed", pod.set_seq)


def _pod_of_folder(m: Moment) -> Pod | None:
    """The pod whose own folder is removed here: it has the UID for its name."""
    folder, _, name = m.record.path.rpartition("/") if isinstance(m.record, Disk) else ("", "", "")
    return m.world.pods.get(name) if folder.rpartition("/")[2] == _PODS else None


@contract("CLEANUP-03", on=REMOVED, needs=(CRI, PODS))
def folder_of_a_running_pod_stays(m: Moment) -> Findings:
    """The folder of a pod is removed only when no container of the pod runs."""
    pod = _pod_of_folder(m)
    if pod is None or not pod.born:
        return None
    for container in pod.every_container():
        if container.state == "running":
            text = f"the folder of {pod.name} is removed while {container.name} runs"
            return broken(text, container.started_seq)
    return KEPT


@folder_of_a_running_pod_stays.clause("goes", on=deleted())
def folder_of_a_gone_pod_goes(m: Moment, pod: Pod) -> Findings:
    """It is removed within a minute once the pod is gone."""
    paths = m.node.note(_Paths)
    own = next((path for path in paths.appeared if path.endswith(f"{_OF_PODS}{pod.uid}")), "")
    return _goes(m, pod, own, "the folder")


@contract("CLEANUP-04", on=REMOVED, needs=(CRI, PODS, STATUS))
def folder_of_an_ended_pod_stays(m: Moment) -> Findings:
    """A pod that has ended keeps its folder until it is deleted."""
    pod = _pod_of_folder(m)
    if pod is None or not pod.born or not pod.finished:
        return None
    if pod.wanted and pod.termination is None:
        return broken(f"the folder of {pod.name} is removed, which is {pod.finished}", pod.status_seq)
    return KEPT


class _Specs(Note):
    """Which pods have had volumes, by UID."""

    with_volumes: Latest[str, bool] = field(default_factory=Latest[str, bool])


_CGROUPS = "/sys/fs/cgroup/"
OF_CGROUP = DISK.where(lambda m: isinstance(m.record, Disk) and m.record.path.startswith(_CGROUPS))


@contract("CLEANUP-05", on=OF_CGROUP, needs=(CRI, PODS))
def cgroup_stays_with_its_volumes(m: Moment, disk: Disk) -> Findings:
    """The cgroup of a pod that is gone is removed once no volume of the pod is left; till then it stays, with
    as little CPU as possible.
    """
    uid = disk.path.rpartition("/")[2].removeprefix("pod")
    pod = m.world.pods.get(uid)
    is_gone = pod is None or not pod.wanted
    if not is_gone or not m.node.note(_Specs).with_volumes.get(uid):
        return None
    if disk.op == "reduced":
        return KEPT
    if disk.op != "removed":
        return None
    folder = f"{_OF_PODS}{uid}"
    paths = m.node.note(_Paths)
    own = (
        each
        for each in (*paths.removed, *paths.appeared)
        if each.endswith(folder) or f"{folder}/volumes/" in each
    )
    gone = any(not paths.there(each) for each in own)
    return KEPT if gone else broken(f"the cgroup of pod {uid} is removed, and its volumes are left")


@observer(on=pod_set())
def _pod_has_volumes(m: Moment, manifest: Manifest) -> None:
    """Record which pods have volumes."""
    if not manifest.metadata.uid or not manifest.spec.volumes:
        return
    known = m.node.note(_Specs).with_volumes
    known[manifest.metadata.uid] = True
