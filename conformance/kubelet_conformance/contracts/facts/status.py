"""A written status, joined with the manifest and the records, and what the kubelet had read by then."""

import math

import msgspec

from kubelet_conformance.contract import Container, Moment, Note, Pattern, Pod
from kubelet_conformance.contract.applicability import RESTART_ALL_GATE, ByVersion, is_on
from kubelet_conformance.contract.definition import observer
from kubelet_conformance.contract.patterns import failed, kubelet, late, listed_all, pod_set, status
from kubelet_conformance.contracts.facts.timing import POLLED, REACTION, RELIST
from kubelet_conformance.contracts.tables.status import PHASES, Counts, count
from kubelet_conformance.contracts.tables.table import Row
from kubelet_conformance.trace.format.header import epoch_seconds
from kubelet_conformance.trace.format.manifests import ContainerSpec, ContainerStatus, Kind, PodStatus
from kubelet_conformance.trace.format.records import Call, Reply
from kubelet_conformance.trace.world.disruption import disruption_of
from kubelet_conformance.trace.world.in_flight import LISTS, since_when_at_work
from kubelet_conformance.trace.world.kubelet_view import kubelet_view
from kubelet_conformance.trace.world.mirror_pods import Mirror
from kubelet_conformance.trace.world.resolve import LATE_SECONDS

UNREADY_AS = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}
"""By terminal phase, the reason for which a pod and its containers are not ready any more."""
START_ERRORS = frozenset(
    {
        "CrashLoopBackOff",
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "PostStartHookError",
        "RunContainerError",
    },
)
"""Reasons for which a container could not be started."""
READY_TO_START = "PodReadyToStartContainers"
"""The condition that a sandbox with its network is there."""
REPORTED_AT_ONCE = ByVersion({"1.29..1.35": False, ">=1.36": True})
"""A sandbox that was created is reported at once, and not by the next sync (COND-07)."""
UNKNOWN_END = "ContainerStatusUnknown"
"""Reason given for the end of a container whose record is gone."""
FINAL_PHASES_SINCE = (1, 27)
"""From here on every deleted pod ends in a terminal phase."""

_CONTAINERS_REMEMBERED = 256
_NO_SPEC: tuple[Kind, None] = "unknown", None


def carries_on(m: Moment) -> bool:
    """A status carries on what the one before said: of initialization, and of records that are gone.

    From 1.36 on the gate that lets a container restart its whole pod does so for every pod.
    """
    return is_on(RESTART_ALL_GATE, m.header.feature_gates, m.kubernetes)


def is_reset(m: Moment, said: ContainerStatus) -> bool:
    """A container is shown as removed, with an end of that name, because its whole pod restarts."""
    waiting, last = said.state.waiting, said.last_state.terminated
    reasons = {waiting.reason if waiting else "", last.reason if last else ""}
    return reasons == {"RestartingAllContainers"} and carries_on(m)


def are_sampled(m: Moment) -> bool:
    """The trace may lack statuses that the kubelet had, and show others late by one poll."""
    return m.header.channels.api != "full"


def may_be_older(m: Moment, pod: Pod) -> bool:
    """The status was read so soon after a change of the pod that it may have been written before that."""
    changed_t = pod.spec_changed_t
    return are_sampled(m) and changed_t is not None and m.t - changed_t <= POLLED


def is_lost(said: ContainerStatus) -> bool:
    """A container is shown as ended though its record is not; until then it counts as restarted."""
    return said.state.terminated is not None and said.state.terminated.reason == UNKNOWN_END


def was_lost(shown: ContainerStatus) -> bool:
    """The same, or that end has become its last state, as the container could not be started."""
    last = shown.last_state.terminated
    return is_lost(shown) or (last is not None and last.reason == UNKNOWN_END)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What a status says of one container, and what it should be about."""

    status: ContainerStatus
    spec: ContainerSpec | None
    kind: Kind
    container: Container | None
    """The runtime's record that `containerID` names, if the trace knows it."""
    last: Container | None
    """The same of the record that lastState names."""
    before: ContainerStatus | None
    """What the last status said of it."""

    @property
    def without_record(self) -> bool:
        """The container is written as one that has never had a record."""
        said, before = self.status, self.before
        if said.container_id or said.last_state.terminated is not None:
            return False
        return before is None or not before.container_id


def waiting_reasons(m: Moment) -> list[str]:
    """What the containers of the status that is written wait for."""
    every = m.status.every_container if m.status is not None else ()
    return [one.state.waiting.reason for one in every if one.state.waiting is not None]


def _has_a_refused_container(m: Moment) -> bool:
    return not START_ERRORS.isdisjoint(waiting_reasons(m))


def _shows_an_end(m: Moment) -> bool:
    every = m.status.every_container if m.status is not None else ()
    return bool([one for one in every if one.state.terminated or one.last_state.terminated])


AGAIN: Pattern = status().where(lambda m: m.pod is not None and m.pod.status is not None)
"""A status that can be compared with the one before."""
REFUSED: Pattern = status().where(_has_a_refused_container)
"""A status in which a container waits for one of START_ERRORS."""
END_SHOWN: Pattern = status().where(_shows_an_end)
"""A status with the end of a container, in state or in lastState."""


class _Named(Note):
    """The containers that statuses have named, which may be removed by now."""

    containers: dict[str, Container] = {}


class _Looked:
    """What was found in the status of a moment, computed once for all contracts."""

    def __init__(self, m: Moment) -> None:
        self.entries: tuple[Entry, ...] = ()
        self.written: Written | None = None
        pod, status = m.pod, m.status
        if pod is not None and status is not None:
            found = _entries(m, pod, status)
            if status.conditions and not may_be_older(m, pod):
                self.entries = found
                self.written = None if _undoes_an_end(pod, status) else _written(m, pod, status)


def _undoes_an_end(pod: Pod, status: PodStatus) -> bool:
    """Exit codes of 0 have made a preempted pod Succeeded: ADMIT-08 judges that, and no table decides it."""
    ended = disruption_of(pod)
    return ended is not None and ended.reason == "Preempting" and status.phase == "Succeeded"


def record_with(m: Moment, container_id: str) -> Container | None:
    """The container that an id in a status means: recorded now, or named by an earlier status."""
    if m.pod is None or not container_id:
        return None
    named = m.pod.note(_Named).containers
    found = m.world.containers.get(container_id) or named.get(container_id)
    if found is None:
        found = next((c for c in m.pod.every_container() if c.id == container_id), None)
    if found is not None and named.get(container_id) is not found:
        named[container_id] = found
        if len(named) > _CONTAINERS_REMEMBERED:
            del named[next(iter(named))]
    return found


def kubelets_entries(m: Moment) -> tuple[Entry, ...]:
    """What a status that a kubelet wrote says of each container.

    The API server's first status, which has no conditions, is none.
    """
    looked: _Looked = m.memo or _looked(m)
    return looked.entries


@observer(on=status())
def take_names(m: Moment) -> None:
    """Remember which containers statuses name, once a moment for all judges."""
    kubelets_entries(m)


def _looked(m: Moment) -> _Looked:
    found = m.memo = _Looked(m)
    return found


def _entries(m: Moment, pod: Pod, status: PodStatus) -> tuple[Entry, ...]:
    before = pod.status.by_name if pod.status else {}
    found: list[Entry] = []
    for one in status.every_container:
        end = one.last_state.terminated
        last = record_with(m, end.runtime_id) if end is not None else None
        kind, spec = pod.entries.get(one.name, _NO_SPEC)
        found.append(Entry(one, spec, kind, record_with(m, one.runtime_id), last, before.get(one.name)))
    return tuple(found)


def is_late(before: ContainerStatus | None, now: ContainerStatus) -> bool:
    """The loop reported a probe's success after the sync that reported the container's end.

    That sync's status may have been left out.
    """
    if before is None or before.runtime_id != now.runtime_id:
        return False
    is_news = (now.ready and not before.ready) or (now.started and not before.started)
    return before.state == now.state or bool(is_news)


def shows_other_changes(m: Moment, name: str) -> bool:
    """Another container has changed: otherwise the first status of a kubelet's run is like the one before."""
    pod, now = m.pod, m.status
    if pod is None or pod.status is None or now is None:
        return False
    before = pod.status.by_name
    return any(one.name != name and one != before.get(one.name) for one in now.every_container)


class Written(msgspec.Struct, frozen=True, gc=False):
    """A status that a kubelet wrote, and the phase that its containers amount to."""

    pod: Pod
    status: PodStatus
    before: PodStatus | None
    counts: Counts
    row: Row[Counts, str]
    phases: tuple[str, ...]
    """Those that its containers amount to, in order: several where it may or may not be the last status."""
    allowed: frozenset[str]
    """These, and the phase that was held back from the end."""
    lost: tuple[ContainerStatus, ...]
    """What it says of each init and app container that `is_lost`."""

    @property
    def statuses(self) -> dict[str, ContainerStatus]:
        """What the status says of each init and app container."""
        return self.status.lasting_by_name


def written(m: Moment) -> Written | None:
    """The status of this moment; None for what no kubelet wrote, or which no table decides.

    The API server's first status has no conditions, and a reason shows that a handler (eviction, deadline)
    or admission has set the phase.
    """
    looked: _Looked = m.memo or _looked(m)
    return looked.written


_ACTIVE_SANDBOX_DECIDES = (1, 36)
"""Since when only an app container of the newest sandbox proves to the phase that a pod is initialized."""


def _begins_with_sidecars(m: Moment, pod: Pod) -> bool:
    """The newest sandbox has no app container yet, and a sidecar that was not yet shown as started.

    The phase is computed before a status says that (kubelet_pods.go generateAPIPodStatus).
    """
    if m.kubernetes is None or m.kubernetes < _ACTIVE_SANDBOX_DECIDES:
        return False
    if not any(one.state == "running" for one in pod.of_kind("sidecar")):
        return False
    return not any(one.sandbox is pod.sandbox for one in pod.of_kind("app"))


def is_written_back(pod: Pod, status: PodStatus) -> bool:
    """The kubelet writes its last status once more, over the terminal phase that a client has written since.

    Its status manager reconciles what it finds before the worker has taken the phase over
    (status_manager.go needsReconcile).
    """
    sent = pod.sent_status
    if sent is None or not sent.terminal or pod.status_t is None or pod.changed_t is None:
        return False
    return pod.status_t <= pod.changed_t and status == pod.status


def _written(m: Moment, pod: Pod, status: PodStatus) -> Written | None:
    if pod.spec is None or status.reason or is_written_back(pod, status):
        return None
    counts = count(pod.spec, status)
    row = PHASES.row(counts)
    sent = pod.sent_status
    generated = frozenset((sent.phase if sent and sent.terminal else row.then,))
    if phase_of_another(pod):
        # The worker keeps to what it was sent, whatever was written back since.
        generated |= {phase_of_another(pod)}
    if _is_past_its_deadline(m, pod, status) or disruption_of(pod) is not None:
        generated |= {"Failed"}
    if _begins_with_sidecars(m, pod):
        anew = msgspec.structs.replace(counts, app_was_up=False, pending_sidecar=1)
        generated |= {PHASES.decide(anew)}
    if _may_be_final(m, pod):
        generated |= {PHASES.decide(msgspec.structs.replace(counts, final=True))}
        if counts.running == 0:
            generated |= {"Failed"}
    if pod.status is not None and pod.status.terminal and status.phase == pod.status.phase:
        generated |= {status.phase}  # A pod that has ended stays so, whatever its records say by now.
    allowed = generated
    if "Succeeded" in generated or "Failed" in generated or _ends_unwritten(m, pod):
        allowed |= _held(pod, m)
    if pod.status is not None and _shows_probe_results(m, pod, pod.status, status):
        allowed |= {pod.status.phase}
    phases = tuple(generated) if len(generated) == 1 else tuple(sorted(generated))
    lost = tuple([one for one in status.lasting_containers if is_lost(one)])
    return Written(pod, status, pod.status, counts, row, phases, allowed, lost)


def _shows_probe_results(m: Moment, pod: Pod, before: PodStatus, now: PodStatus) -> bool:
    """The results of probes are reported at once, and the phase follows with the next sync, soon."""
    old, new = before.every_container, now.every_container
    if m.t - (pod.status_t or 0.0) > REACTION or old == new:
        return False
    if [one.state for one in old] != [one.state for one in new]:
        return False
    return [(one.name, one.runtime_id) for one in old] == [(one.name, one.runtime_id) for one in new]


def _may_be_final(m: Moment, pod: Pod) -> bool:
    """The pod may be in its last sync, which ends every pod that is not static in a terminal phase."""
    if pod.termination is None or pod.static:
        return False
    return m.kubernetes is None or m.kubernetes >= FINAL_PHASES_SINCE


def _is_past_its_deadline(m: Moment, pod: Pod, status: PodStatus) -> bool:
    """The pod's deadline has passed, or it is not known whether it has."""
    spec = pod.spec
    if spec is None or spec.active_deadline_seconds is None:
        return False
    begun, origin = seconds(status.start_time), epoch_seconds(m.header.started or "")
    return begun is None or origin is None or begun - origin + spec.active_deadline_seconds <= m.t


def _ends_unwritten(m: Moment, pod: Pod) -> bool:
    """The kubelet itself ends the pod, and a status that it wrote before may not have been stored."""
    return disruption_of(pod) is not None and kubelet_view(m).api_was_faulty(pod.status_t or 0.0)


def _held(pod: Pod, m: Moment) -> set[str]:
    """A terminal phase is held back, at the last one written, until all is stopped.

    A mirror that was created since is Pending.
    """
    last = pod.status.phase if pod.status is not None else "Pending"
    ran = not pod.born or any(one.start is not None for one in pod.of_kind("app"))
    missed = last == "Pending" and ran and (pod.status is None or m.header.channels.api != "full")
    held = {last, "Running"} if missed else {last}
    return held | {"Pending"} if pod.static and pod.note(Mirror).seq > (pod.status_seq or 0) else held


def has_ended_for_good(pod: Pod, shown: ContainerStatus) -> bool:
    """The container is shown as ended, and the policy never restarts it: no status shows it otherwise."""
    ended = shown.state.terminated
    if ended is None or pod.kind_of(shown.name) == "sidecar" or pod.restart_policy == "Always":
        return False
    return pod.restart_policy == "Never" or ended.exit_code == 0


def seconds(stamp: str | None) -> int | None:
    """A time of the API's as whole seconds since the epoch; None where it is absent or no time."""
    found = epoch_seconds(stamp or "")
    return None if found is None else int(found)


def shows_probes_only(m: Moment) -> bool:
    """Whether the last status was written again for what a probe has found, and not built from records."""
    before = m.pod.status if m.pod is not None else None
    if m.status is None or before is None:
        return False
    old = {one.name: one for one in before.every_container}
    new = {one.name: one for one in m.status.every_container}
    if old.keys() != new.keys() or old == new:
        return False
    set_back = msgspec.structs.replace
    alike = (set_back(one, ready=old[name].ready, started=old[name].started) for name, one in new.items())
    return all(one == old[one.name] for one in alike)


def shows_its_sandbox_only(m: Moment) -> bool:
    """Whether the last status was written again as soon as a sandbox ran, and not built from records."""
    before, now = m.pod.status if m.pod is not None else None, m.status
    if now is None or before is None or not REPORTED_AT_ONCE.get(m.kubernetes):
        return False
    was, said = before.condition(READY_TO_START), now.condition(READY_TO_START)
    is_news = said is not None and said.status == "True" and (was is None or was.status != "True")
    return is_news and list(before.every_container) == list(now.every_container)


_INSPECTIONS = frozenset({"PodSandboxStatus", "ContainerStatus"})
_IMAGES = "ImageStatus"
"""This call names no pod. It keeps a worker waiting, and it is not known whose."""
_READING = LISTS | _INSPECTIONS | {_IMAGES}
READS: Pattern = failed(*sorted(_READING)).either(
    late(*sorted(_READING)), kubelet("ended", "killed", "stopped")
)


class Reads(Note):
    """When a call that reads last failed.

    It is not known whose sync it was of: one relist follows another, and each reads one pod after another.
    """

    bad_t: float = -math.inf
    """When such a call last gave no answer about what it reads, or gave it late."""
    held_up_t: float = -math.inf
    """When a relist last had its answer late, or got none."""
    ended_seq: int = 0
    """Where the last run of the kubelet ended, which waits for no answer any more."""


class WholeList(Note):
    """When all containers were last listed, and in which record."""

    t: float = -math.inf
    seq: int = 0


@observer(on=listed_all("ListContainers"))
def take_whole_list(m: Moment) -> None:
    """All containers are listed."""
    last = m.node.note(WholeList)
    last.t, last.seq = m.t, m.seq


def being_read(m: Moment) -> list[Call]:
    """The calls that read and wait for their answers."""
    return [one for one in m.world.calls_open.values() if one.rpc in _READING]


def is_held_up(m: Moment) -> bool:
    """A reading takes, or took till just now, so long that the kubelet goes by what it read before."""
    just_now = m.t - m.node.note(Reads).held_up_t <= 2 * RELIST
    return just_now or any(m.t - one.t > 2 * RELIST for one in being_read(m))


@observer(on=READS)
def take_in_reads(m: Moment) -> None:
    """Record failed and late readings of the runtime, and the end of a kubelet."""
    reads, record = m.node.note(Reads), m.record
    if type(record) is Reply:
        _take_in_trouble(reads, record)
    else:
        reads.ended_seq = m.seq


def _take_in_trouble(reads: Reads, reply: Reply) -> None:
    """Record an answer that is an error or comes late, if a running kubelet waits for it."""
    call, rpc, error = reply.call, reply.call.rpc, reply.error
    is_answer = error is None or rpc == _IMAGES or (error.code == "NOT_FOUND" and rpc in _INSPECTIONS)
    is_late = reply.t - call.t > LATE_SECONDS and call.seq > reads.ended_seq
    if not is_answer or is_late:
        reads.bad_t = reply.t
    if rpc != _IMAGES:
        reads.held_up_t = reply.t


def is_unseen(m: Moment, entry: Entry, t: float) -> bool:
    """No sync can have looked since `t`: the kubelet was down or blind, or the pod's worker busy ever since.

    A result of a probe that is reported meanwhile changes `ready` or `started` in the status before, no
    state.
    """
    is_same = entry.before is not None and entry.before.state == entry.status.state
    # A static pod's first status may have waited for its mirror, since the sync began (STATIC-16).
    is_same = is_same or (entry.before is None and m.pod is not None and m.pod.static)
    return shows_its_sandbox_only(m) or may_be_old(m, t, is_same=is_same)


def may_be_old(m: Moment, t: float, *, is_same: bool) -> bool:
    """A part of the status may be outdated; `is_same` if the status before said the same of it."""
    if _was_down(m, t) or _was_blind(m, t) or kubelet_view(m).api_was_faulty(t):
        return True
    return is_same and m.pod is not None and _at_work_since(m, m.pod) <= t + REACTION


def _at_work_since(m: Moment, pod: Pod) -> float:
    """Since when the pod's worker has been busy, or was until just now; else now."""
    since = since_when_at_work(pod, m.t)
    if since < m.t:
        return since
    called = [m.world.called.get(one.id) for one in pod.calls_open.values() if one.rpc == "RemoveContainer"]
    makes_room = any(one is not None and one.kind != "app" for one in called)
    return pod.at_work_t if makes_room or m.t - pod.worked_t <= REACTION else m.t


def _was_blind(m: Moment, t: float) -> bool:
    """The call that could show the kubelet the state at `t` is not answered, or only was just now.

    Nor can a worker that waits for an ImageStatus read anything else.
    """
    reads = m.node.note(Reads)
    if reads.bad_t > t and m.t - reads.bad_t <= REACTION:
        return True
    return any(m.t - one.t > LATE_SECONDS for one in being_read(m))


def _was_down(m: Moment, t: float) -> bool:
    """The kubelet that writes the status was not up at `t`, or has just started."""
    relisted = m.node.relisted_t
    return relisted is None or relisted + REACTION > m.t or (m.node.down_t is not None and m.node.down_t > t)


def terminal_phase_sent(pod: Pod) -> str:
    """The phase of the object that the kubelet was sent, "" if another client has not ended it."""
    sent = pod.sent_status
    return sent.phase if sent is not None and sent.terminal else ""


class _OfAnother(Note):
    """The terminal phase that another client has written."""

    phase: str = ""


@observer(on=pod_set())
def _take_phase(_: Moment, pod: Pod) -> None:
    sent = terminal_phase_sent(pod)
    if sent and not pod.finished:
        pod.note(_OfAnother).phase = sent


def phase_of_another(pod: Pod) -> str:
    """The terminal phase that another client has written before the kubelet wrote one, "" for none."""
    return pod.note(_OfAnother).phase
