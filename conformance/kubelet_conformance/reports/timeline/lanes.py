"""On which lane of a timeline a record lies."""

from dataclasses import dataclass, field

from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.timeline.model import Lane, LaneKind
from kubelet_conformance.trace.format.bodies import CreateContainerRequest
from kubelet_conformance.trace.format.records import (
    ApiWrite,
    Call,
    Deleted,
    Expect,
    Fault,
    Kubelet,
    PodChange,
    Reply,
    Stall,
    Status,
)
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.resolve import full_name

_OF_THE_NODE: dict[type, LaneKind] = {
    Fault: LaneKind.SCENARIO,
    Expect: LaneKind.SCENARIO,
    Stall: LaneKind.MACHINE,
    Kubelet: LaneKind.KUBELET,
    ApiWrite: LaneKind.API_SERVER,
    Status: LaneKind.API_SERVER,
    Deleted: LaneKind.API_SERVER,
}
_NAME_CHARS = 80


@dataclass(slots=True)
class Lanes:
    """The lanes so far, and by the id of a container or sandbox the lane that it has had."""

    found: list[Lane]
    _numbers: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])
    _by_id: dict[str, int] = field(default_factory=dict[str, int])

    def pod_of(self, moment: Moment, number: int) -> str:
        """The pod of a record on the lane of this number; on a lane of the node it may be about one too."""
        pod = moment.pod
        return self.found[number].pod or ("" if pod is None else _full(pod.namespace, pod.name))

    def of_node(self, kind: LaneKind) -> int:
        """The lane of this kind; a node has one of each."""
        return self._number((kind,), Lane(kind, kind.value))

    def of(self, moment: Moment) -> int:
        """The lane of a record: its container's, else its sandbox's, else its pod's, else the node's."""
        record = moment.record
        kind = _OF_THE_NODE.get(type(record))
        if kind is not None:
            return self.of_node(kind)
        if isinstance(record, PodChange) and moment.manifest is not None:
            wanted = moment.manifest.metadata
            name = full_name(moment.world, record.source, wanted.name)
            return self._of_pod(wanted.namespace, name, LaneKind.POD)
        if isinstance(record, Call | Reply):
            return self._of_call(moment)
        return self._of_views(moment)

    def _of_call(self, moment: Moment) -> int:
        """A call names what it is about by an id, which may be of something that is gone."""
        call, pod = moment.call, moment.pod
        if call.rpc == "CreateContainer" and pod is not None:
            name = moment.request(CreateContainerRequest).config.metadata.name
            return self._of_pod(pod.namespace, pod.name, LaneKind.CONTAINER, name)
        if call.rpc == "RunPodSandbox" and pod is not None:
            return self._of_pod(pod.namespace, pod.name, LaneKind.SANDBOX)
        request = call.request.json()
        named = str(request.get("container_id") or request.get("pod_sandbox_id") or "")
        number = self._of_views(moment)
        if moment.container is not None or moment.sandbox is not None:
            self._by_id[named] = number
        return self._by_id.get(named, number)

    def _of_views(self, moment: Moment) -> int:
        pod = moment.pod
        if pod is None:
            return self.of_node(LaneKind.KUBELET)
        if moment.container is not None:
            return self._of_pod(pod.namespace, pod.name, LaneKind.CONTAINER, moment.container.name)
        kind = LaneKind.POD if moment.sandbox is None else LaneKind.SANDBOX
        return self._of_pod(pod.namespace, pod.name, kind)

    def _of_pod(self, namespace: str, pod: str, kind: LaneKind, name: str = "") -> int:
        """The lane of a pod; another pod of the same name comes after it on the same lanes."""
        label = name or (pod if kind is LaneKind.POD else kind.value)
        lane = Lane(kind, safe(label, _NAME_CHARS), _full(namespace, pod))
        return self._number((namespace or "default", pod, kind, name), lane)

    def _number(self, key: tuple[str, ...], lane: Lane) -> int:
        number = self._numbers.setdefault(key, len(self.found))
        if number == len(self.found):
            self.found.append(lane)
        return number


def _full(namespace: str, pod: str) -> str:
    """A pod as it is shown."""
    return safe(f"{namespace or 'default'}/{pod}", _NAME_CHARS)
