"""What a trace shows of the cgroups of pods: folders below /sys/fs/cgroup that end with a pod's UID."""

from kubelet_conformance.trace.format.records import Disk
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Pod
from kubelet_conformance.trace.world.world import World

_ROOT, _PREFIX = "/sys/fs/cgroup/", "pod"


class PodCgroup:
    """One pod's cgroup."""

    def __init__(self) -> None:
        self.there = False
        self.lost_seq = 0
        """When it last vanished."""


def pod_of_cgroup(world: World, path: str) -> Pod | None:
    """The pod whose cgroup this is."""
    name = path.rpartition("/")[2]
    return world.pods.get(name.removeprefix(_PREFIX)) if path.startswith(_ROOT) else None


def cgroup_changes(moment: Moment) -> None:
    """A cgroup came or went."""
    record = moment.record
    pod = pod_of_cgroup(moment.world, record.path) if isinstance(record, Disk) else None
    if pod is None or not isinstance(record, Disk):
        return
    known = pod.note(PodCgroup)
    if record.op == "removed":
        known.there, known.lost_seq = False, moment.seq
    elif record.op == "folder":
        known.there = True
