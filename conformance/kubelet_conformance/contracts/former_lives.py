"""Static pods that go and come back by the same file, and so with the same UID: they have several lives.

The status manager forgets a pod with the next housekeeping after its file is gone, though it may still be on
its way out (kubelet_pods.go removeOrphanedPodStatuses); what it writes of it after that begins with what the
mirror last told, if there still is one.
"""

from __future__ import annotations

import math

from kubelet_conformance.contract.frame import observer
from kubelet_conformance.contract.words import deleted, pod_set, pod_unset
from kubelet_conformance.contracts.static_names import FullName, sent_static
from kubelet_conformance.contracts.timing import REACTION
from kubelet_conformance.contracts.written import is_lost
from kubelet_conformance.trace.kubelet_view import informed_by, kubelet_view
from kubelet_conformance.trace.manifests import ContainerStatus
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import Deleted
from kubelet_conformance.trace.views import Latest, Pod, Sandbox

_LOOKED_AFTER_SINCE = (1, 27)


class _Life:
    """When the pod last came back, and when its last mirror went."""

    def __init__(self) -> None:
        self.back_t: float | None = None
        self.mirror_gone_t = -math.inf
        self.gone_uid = ""


class _Removed:
    """When files of static pods last went, by namespace and name: with nothing of it a pod is forgotten."""

    def __init__(self) -> None:
        self.t = Latest[FullName, float]()


class _Edited:
    """When the pod's file was last edited into that of another pod: the pod goes as if the file had gone."""

    def __init__(self) -> None:
        self.t = -math.inf


@observer(on=pod_set().either(deleted()))
def take_lives(m: Moment) -> None:
    """Take in which pods come back, and which mirrors go."""
    pod, record = m.pod, m.record
    if pod is not None and pod.static and isinstance(record, Deleted):
        pod.note(_Life).mirror_gone_t, pod.note(_Life).gone_uid = m.t, record.uid
    elif pod is not None and pod.static and not pod.wanted:
        pod.note(_Life).back_t = m.t


@observer(on=pod_unset().either(pod_set()))
def take_removals(m: Moment) -> None:
    """Take in which files go, and which are edited."""
    name = sent_static(m)
    if m.replaced is not None:
        m.replaced.note(_Edited).t = m.t
    elif name is not None and m.manifest is None:
        m.node.note(_Removed).t[name] = m.t


def _file_went_t(m: Moment, pod: Pod) -> float:
    """When the pod's file last went, or became that of another pod; minus infinity where it never did."""
    gone_t = m.node.note(_Removed).t.get((pod.namespace, pod.name), -math.inf)
    return max(gone_t, pod.note(_Edited).t)


def has_come_back(m: Moment, pod: Pod) -> bool:
    """The pod is a static one that went before, with its file or by an edit of that."""
    return pod.static and (pod.finished_before or _file_went_t(m, pod) > -math.inf)


def ended_since_its_file_went(m: Moment, pod: Pod) -> bool:
    """The pod's file went once, and the kubelet, which may have heard late, has stopped a sandbox since.

    What it told at that end of containers that never ran stays until they have a record (kubelet_pods.go
    convertToAPIContainerStatuses), though the pod is back by now.
    """
    gone_t = _file_went_t(m, pod)
    return gone_t > -math.inf and any(stop.call.t >= gone_t for one in pod.sandboxes for stop in one.stops)


def end_is_made_up(m: Moment, pod: Pod | None, said: ContainerStatus) -> bool:
    """It is told as lost for the end of a static pod, or of the former life of one that is back.

    What does not run then is told to have ended, whatever its record says, and the phase stays, but for pods
    of the API (status_manager.go TerminatePod).
    """
    if pod is None or not is_lost(said):
        return False
    return (pod.static and pod.termination is not None) or ended_since_its_file_went(m, pod)


def is_left_to_itself(m: Moment, pod: Pod) -> bool:
    """Its file goes or is gone, or its object by force, up to 1.26: nobody repeats a kill that failed.

    Nor one that was put off: as long as it has a worker only what config has is synced again (WORK-27).
    """
    if m.kubernetes is None or m.kubernetes >= _LOOKED_AFTER_SINCE:
        return False
    is_going = not pod.wanted or "pod:remove" in m.keys
    end = pod.termination
    return is_going and (pod.static or end is None or end.grace == 0 or end.cause in {"forced", "removed"})


def went_unheard(m: Moment, pod: Pod, sandbox: Sandbox) -> bool:
    """The sandbox was run before the kubelet could hear that the pod's file had gone, and goes for that."""
    gone_t = _file_went_t(m, pod)
    return (
        gone_t > -math.inf and sandbox.run is not None and sandbox.run.t <= informed_by(m, gone_t) + REACTION
    )


def is_without_a_past(pod: Pod, name: str) -> bool:
    """The pod's file is gone, and the container has no record any more: nothing tells of its restarts."""
    return pod.static and not pod.wanted and all(c.state == "removed" for c in pod.containers.get(name, ()))


def is_told_nowhere(pod: Pod) -> bool:
    """The pod's file is gone, and so is the mirror that its latest status was written to."""
    told_t = pod.status_t
    return pod.static and not pod.wanted and told_t is not None and pod.note(_Life).mirror_gone_t >= told_t


def has_no_mirror(m: Moment, pod: Pod) -> bool:
    """Nobody can be told of it, and one that has ended gets no mirror any more (STATIC-12).

    Its last mirror is gone, or it never got one, as the API server was away.
    """
    if pod.static and not pod.mirror_uid:
        run = pod.sandbox.run if pod.sandbox is not None else None
        return run is not None and kubelet_view(m).api_was_away(run.t)
    return pod.static and pod.mirror_uid == pod.note(_Life).gone_uid


def last_told_in_a_former_life(m: Moment, pod: Pod) -> bool:
    """The pod is a static one, and its latest status may have been forgotten: its file went after that.

    So it is where the kubelet that wrote it is gone, and the mirror that told it too or out of reach.
    """
    if not pod.static or pod.status_t is None:
        return False
    began_t = m.node.started_t or 0.0
    if began_t > pod.status_t and (
        pod.note(_Life).mirror_gone_t >= pod.status_t or kubelet_view(m).api_was_away(began_t)
    ):
        return True
    back_t = pod.note(_Life).back_t
    if not pod.wanted or back_t is None:
        return not pod.wanted
    run = pod.sandbox.run if pod.sandbox is not None else None
    return run is None or run.t < back_t or pod.status_t < run.t
