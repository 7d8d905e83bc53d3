"""SHUT: how a kubelet ends its pods when the machine goes down."""

from collections.abc import Iterator

import msgspec

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, PodStatus, Predicate
from kubelet_conformance.contract.applicability import CRI, EVERY_STATUS, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, exited, pod_set, status
from kubelet_conformance.contracts.facts import node_pressure as pressure
from kubelet_conformance.contracts.facts.kills import wait_before_stop
from kubelet_conformance.contracts.facts.kubelet import api_is_away
from kubelet_conformance.contracts.facts.pod import FAULT, TERMINATION_ASKED, NewPod, new_pod, of
from kubelet_conformance.contracts.facts.sandbox import FINISHED, runs_containers
from kubelet_conformance.contracts.facts.timing import REACTION, ROUNDING, STATUS_BATCH, seconds_of
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE, OVERRIDES
from kubelet_conformance.contracts.termination.grace import STOP
from kubelet_conformance.trace.format.bodies import StopContainerRequest
from kubelet_conformance.trace.format.records import Fault
from kubelet_conformance.trace.world.disruption import SHUTDOWN, disruption_of, shutdown_of

LET_GO = "nothing holds the shutdown up"
"""The fault text that says that the kubelet releases the shutdown."""
_KILL: Pattern = call("StopContainer", "ExecSync", "StopPodSandbox")


ANNOUNCED: Pattern = FAULT.where(lambda m: isinstance(m.record, Fault) and m.record.what == SHUTDOWN)


class Group(msgspec.Struct, frozen=True):
    """The pods from a priority on, and how many seconds they get, after those of the groups before."""

    priority: int
    seconds: float
    begins: float
    """When its time begins at the latest, in seconds after the announcement."""


def groups(m: Moment) -> list[Group] | None:
    """The groups by rising priority, none where nothing is set; None where the setting is unknown."""
    total, critical = (
        pressure.setting(m, "shutdownGracePeriod", "0s"),
        pressure.setting(m, "shutdownGracePeriodCriticalPods", "0s"),
    )
    by_priority = pressure.setting(m, "shutdownGracePeriodByPodPriority", [])
    if total is None or by_priority is None:
        return None
    pairs = sorted((one["priority"], float(one["shutdownGracePeriodSeconds"])) for one in by_priority)
    if not pairs and seconds_of(total) > 0:
        pairs = [
            (0, seconds_of(total) - seconds_of(critical)),
            (pressure.SYSTEM_CRITICAL, seconds_of(critical)),
        ]
    begins = [sum(each for _, each in pairs[:place]) for place in range(len(pairs))]
    return [Group(priority, most, begin) for (priority, most), begin in zip(pairs, begins, strict=True)]


def _group_of(pod: Pod, every: list[Group]) -> Group | None:
    """The pod's group; None where that is not certain: a static pod may have a priority by its class only."""
    if not every or pod.spec is None or (pod.static and pod.spec.priority is None):
        return None
    priority = pod.spec.priority or 0
    return next((group for group in reversed(every) if group.priority <= priority), every[0])


class _Then(Note):
    """The pod's state when the shutdown was announced."""

    ran: bool = False
    had_succeeded: bool = False


def _going_down(m: Moment) -> float | None:
    """How long the shutdown has been on, in this kubelet instance."""
    record, started = shutdown_of(m.node), m.node.started_t
    if record is None or not m.node.kubelet_up or (started is not None and started > record.t):
        return None
    return m.t - record.t


def _ended_by_it(m: Moment) -> tuple[Pod, Group] | None:
    """The moment's pod and its group, if the shutdown is all that ends it."""
    pod, every = m.pod, groups(m)
    if pod is None or not every or _going_down(m) is None or not pod.note(_Then).ran:
        return None
    group = _group_of(pod, every)
    if group is None or pod.termination is not None or disruption_of(pod) is not None or pod.finished:
        return None
    return pod, group


@contract("SHUT-01", on=ANNOUNCED, needs=(CRI, PODS), versions=since("1.21"), clause="all")
def pods_are_ended_in_groups(m: Moment) -> Iterator[Finding]:
    """When the node shuts down its pods are ended in groups by rising priority, each pod with the time of its
    group or its own grace, whichever is less, and no new pod is admitted.
    """
    every = groups(m)
    for pod in pressure.every_pod(m) if every and m.node.kubelet_up else ():
        group = _group_of(pod, every or [])
        if group is not None and pressure.runs(pod):
            yield answered(
                by=_KILL.where(of(pod)),
                within=group.begins + REACTION,
                unless=TERMINATION_ASKED.where(of(pod)).either(FINISHED.where(of(pod))),
                whole_node=True,
                text=f"pod {pod.name} is ended in its turn",
            )


@pods_are_ended_in_groups.clause("order", on=STOP)
def lesser_pods_go_first(m: Moment) -> Findings:
    """While pods of an earlier group run, and have time left, no pod of a later one is stopped."""
    ended, since_then = _ended_by_it(m), _going_down(m)
    if ended is None or since_then is None:
        return None
    pod, group = ended
    every = groups(m) or []
    others = [one for one in m.world.pods.values() if one is not pod and one.note(_Then).ran]
    of_groups = [(one, its) for one in others if (its := _group_of(one, every)) is not None]
    earlier = [(one, its) for one, its in of_groups if its.priority < group.priority]
    if since_then < group.begins - ROUNDING:
        for one, its in earlier:
            if one.termination is None and runs_containers(one) and _has_time_left(m, one, its):
                return broken(f"pod {one.name}, which has a lower priority than {pod.name}, still runs")
    return KEPT if earlier else None


def _has_time_left(m: Moment, pod: Pod, group: Group) -> bool:
    """Its group, which may have begun early, has not used up its time."""
    stops = (stop.call.t for container in pod.every_container() for stop in container.stops)
    return m.t - min(stops, default=m.t) < group.seconds - ROUNDING


@pods_are_ended_in_groups.clause("grace", on=STOP)
def time_of_the_group_is_the_grace(m: Moment, container: Container) -> Findings:
    """No pod gets more time than its group has, or than its own grace period."""
    ended = _ended_by_it(m)
    if ended is None or wait_before_stop(m).turns or container.spec is None:
        return None
    pod, group = ended
    if pod.spec is None or container.spec.lifecycle.pre_stop is not None:
        return None
    expected = max(min(int(group.seconds), pod.spec.grace_seconds), MINIMUM_GRACE)
    if OVERRIDES.get(m.kubernetes):
        expected = max(min(int(group.seconds), pod.spec.grace_seconds), 1)
    got = m.request(StopContainerRequest).timeout
    return KEPT if got == expected else broken(f"expected timeout {expected} for the shutdown, got {got}")


def _new(m: Moment) -> NewPod | None:
    """A new pod that comes while the node goes down."""
    pod, since_then = new_pod(m), _going_down(m)
    if pod is None or pod.source != "api" or since_then is None or since_then < ROUNDING:
        return None
    return None if api_is_away(m) or m.node.relisted_t is None else pod


def _is_refused(pod: NewPod) -> Pattern:
    def refuses(m: Moment) -> bool:
        return m.status is not None and m.status.reason == "NodeShutdown" and pod.is_about(m)

    return status().where(refuses)


@pods_are_ended_in_groups.clause("refuses", on=pod_set())
def no_new_pod_is_taken(m: Moment) -> Findings:
    """A new pod is refused with reason NodeShutdown."""
    pod = _new(m)
    if pod is None or not groups(m):
        return None
    return answered(
        by=_is_refused(pod),
        within=STATUS_BATCH + REACTION,
        unless=TERMINATION_ASKED.where(pod.is_about).either(FAULT),
        not_before=call("RunPodSandbox").where(pod.asked),
        whole_node=True,
        text=f"pod {pod.name} is refused, as the node shuts down",
    )


@observer(on=ANNOUNCED)
def _how_pods_are(m: Moment) -> None:
    """Record which pods run, and which have succeeded by themselves."""
    for pod in pressure.every_pod(m):
        then = pod.note(_Then)
        then.ran = then.ran or pressure.runs(pod)
        then.had_succeeded = _has_succeeded(m, pod)


def _has_succeeded(m: Moment, pod: Pod) -> bool:
    """Every app container has exited with 0 by itself, and the kubelet has had time to read that."""
    if pod.restart_policy == "Always" or pod.spec is None or pod.finished or not pod.born:
        return False
    newest = [pod.newest(one.name) for one in pod.spec.containers]
    ends = [one.exit if one is not None and one.state == "exited" else None for one in newest]
    return all(end is not None and end.code == 0 and m.t - end.t > REACTION for end in ends)


@contract("SHUT-02", on=FINISHED, needs=(CRI, PODS, EVERY_STATUS), versions=since("1.22"), clause="failed")
def shut_down_pod_is_failed(m: Moment, status: PodStatus) -> Findings:
    """A pod that a shutdown ends is Failed with reason Terminated, unless it had succeeded before."""
    ended = _ended_by_it(m)
    if ended is None:
        return None
    if (status.phase, status.reason) != ("Failed", "Terminated"):
        return broken(f"expected Failed (Terminated), got {status.phase} ({status.reason})")
    return KEPT if status.message else broken("its status has no message")


@shut_down_pod_is_failed.clause("succeeded", on=FINISHED)
def success_stays(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A pod that has succeeded stays Succeeded."""
    if pod.finished or not pod.note(_Then).had_succeeded or not groups(m):
        return None
    if pod.termination is not None or _going_down(m) is None:
        return None
    if status.phase != "Succeeded":
        return broken(f"expected Succeeded, got {status.phase} ({status.reason})")
    return KEPT


def _is_let_go(m: Moment) -> bool:
    return isinstance(m.record, Fault) and m.record.what == LET_GO


@shut_down_pod_is_failed.clause("reported", on=FAULT.where(_is_let_go))
def ends_are_reported_before_the_machine_goes(m: Moment) -> Iterator[Finding]:
    """The kubelet releases the shutdown when the API server has the final statuses of its pods, or the time
    is over.
    """
    every, since_then = groups(m), _going_down(m)
    if not every or since_then is None or since_then > every[-1].begins + every[-1].seconds - ROUNDING:
        return
    for pod in m.world.pods.values():
        if pod.note(_Then).ran and pod.termination is None and not pod.static and not _is_over(m, pod, every):
            yield KEPT if pod.finished else broken(f"no status says how pod {pod.name} ended", pod.status_seq)


def _is_over(m: Moment, pod: Pod, every: list[Group]) -> bool:
    """The time of the pod's group is used up, or that of its kill.

    The group's began earlier if those before it were quick.
    """
    group, stops = _group_of(pod, every), [one.stops[0] for one in pod.every_container() if one.stops]
    if group is None or not stops:
        return False
    first = min(stops, key=lambda stop: stop.call.t)
    return m.t - first.call.t > min(group.seconds, pressure.kill_timeout(first.timeout or 0)) - REACTION


_AWAITS_VOLUMES = since("1.32")
"""The next group waits until the volumes of the one before are gone as well."""
_DISK_FAILS = "the disk fails at "
_DISK_WORKS = "healed: the disk works at "


class _Volumes(Note):
    """The volumes of a pod that cannot be removed."""

    stuck_seq: int = 0
    """The fault that keeps them from being removed; 0 if there is none."""


@observer(on=FAULT)
def _volumes_are_stuck(m: Moment) -> None:
    """Record which pods have volumes that cannot be removed."""
    what = m.record.what if isinstance(m.record, Fault) else ""
    if not what.startswith((_DISK_FAILS, _DISK_WORKS)):
        return
    uid, _, rest = what.partition("/pods/")[2].partition("/")
    pod = m.world.pods.get(uid)
    if pod is not None and rest == "volumes":
        pod.note(_Volumes).stuck_seq = m.seq if what.startswith(_DISK_FAILS) else 0


def _stuck_seq(m: Moment, pod: Pod) -> int:
    """The fault that keeps volumes of the pod on the disk, where that counts."""
    has_some = pod.spec is not None and any("emptyDir" in one for one in pod.spec.volumes or ())
    return pod.note(_Volumes).stuck_seq if has_some and _AWAITS_VOLUMES.get(m.kubernetes) else 0


@contract("SHUT-03", on=done("StopPodSandbox"), needs=(CRI, PODS), versions=since("1.23"))
def next_group_does_not_wait(m: Moment) -> Findings:
    """As soon as all pods of a group are gone the next one begins; from 1.32 on it waits for their volumes,
    too, as long as the group has time.
    """
    every, since_then = groups(m), _going_down(m)
    if not every or since_then is None or m.pod is None or not m.pod.note(_Then).ran:
        return None
    every_other = [pod for pod in m.world.pods.values() if pod is not m.pod and pod.note(_Then).ran]
    if any(_stuck_seq(m, pod) for pod in (m.pod, *every_other)):
        return None
    left = [pod for pod in every_other if runs_containers(pod)]
    turns = [group for pod in left if (group := _group_of(pod, every)) is not None]
    own = _group_of(m.pod, every)
    turn = min(turns, key=lambda group: group.priority, default=None)
    if own is None or turn is None or turn.priority <= own.priority:
        return None
    if since_then > turn.begins - 2 * REACTION:
        return None
    if any(stop for pod in left for c in pod.every_container() for stop in c.stops):
        return None
    members = [pod for pod in left if _group_of(pod, every) is turn or _group_of(pod, every) == turn]
    return answered(
        by=_KILL.where(lambda n: n.pod in members),
        within=REACTION,
        unless=FAULT,
        whole_node=True,
        text=f"the pods from priority {turn.priority} on are ended",
    )


judges_waits(next_group_does_not_wait)


@next_group_does_not_wait.clause("volumes", on=STOP)
def next_group_waits_for_volumes(m: Moment) -> Findings:
    """From 1.32 on no pod is stopped while a volume of an earlier group is left, and that has time."""
    ended, since_then = _ended_by_it(m), _going_down(m)
    if ended is None or since_then is None:
        return None
    pod, group = ended
    every = groups(m) or []
    for one in m.world.pods.values():
        its, seq = _group_of(one, every), _stuck_seq(m, one)
        if seq and its is not None and its.priority < group.priority and one.note(_Then).ran:
            early = since_then < group.begins - ROUNDING
            text = f"pod {pod.name} is stopped, and volumes of {one.name}, of a lower priority, are left"
            return broken(text, seq) if early else KEPT
    return None


@contract("SHUT-04", on=ANNOUNCED, needs=(CRI, PODS, STATUS), clause="lives-on")
def shutdown_is_not_graceful_by_itself(m: Moment) -> Iterator[Finding]:
    """A kubelet that is configured with no shutdown time ends no pod for a shutdown, and continues to admit
    pods.
    """
    if groups(m) != [] or not m.node.kubelet_up:
        return
    for pod in m.world.pods.values():
        if pressure.runs(pod):
            ended = status().where(lambda n: n.status is not None and n.status.reason == "Terminated")
            yield answered(
                by=LIFE_ENDS.either(TERMINATION_ASKED.where(of(pod)), exited().where(_by_itself(pod))),
                not_before=ended.where(of(pod)).either(call("StopPodSandbox").where(of(pod))),
                whole_node=True,
                text=f"pod {pod.name} is left alone",
            )


def _by_itself(pod: Pod) -> Predicate:
    """A container of the pod has ended without being stopped: what follows has another reason."""
    return lambda m: m.pod is pod and m.exit is not None and not m.exit.commanded


@shutdown_is_not_graceful_by_itself.clause("admits", on=pod_set())
def new_pods_are_taken(m: Moment) -> Findings:
    """A new pod starts."""
    pod = _new(m)
    if pod is None or groups(m) != []:
        return None
    return answered(
        by=call("RunPodSandbox").where(pod.asked),
        unless=TERMINATION_ASKED.where(pod.is_about).either(FAULT),
        not_before=_is_refused(pod),
        whole_node=True,
        text=f"pod {pod.name} is not refused",
    )
