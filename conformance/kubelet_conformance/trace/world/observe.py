"""Update the world from a record, after the judges have seen it."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import filterfalse

from kubelet_conformance.trace.format.bodies import (
    ContainerStatusReply,
    CreateContainerReply,
    CreateContainerRequest,
    PodSandboxStatusReply,
    RunPodSandboxReply,
    RunPodSandboxRequest,
    StopContainerRequest,
)
from kubelet_conformance.trace.format.manifests import Manifest
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import PodChange, Record, RuntimeEvent
from kubelet_conformance.trace.world import missed_updates
from kubelet_conformance.trace.world.disruption import (
    REFUSALS,
    disruption_is_reported,
    pod_goes_on,
    shutdown_is_announced,
)
from kubelet_conformance.trace.world.images import (
    image_asked,
    image_is_known_by_its_id,
    image_pulled,
    pull_failed,
    pull_is_due,
)
from kubelet_conformance.trace.world.in_flight import (
    LISTS,
    WORK,
    call_begins,
    call_ends,
    drop_calls_in_flight,
    execution_begins,
    execution_ends,
    listing_failed,
    runtime_is_unreachable,
    status_is_reported,
)
from kubelet_conformance.trace.world.kubelet_view import OBSERVED, kubelet_view
from kubelet_conformance.trace.world.mirror_pods import mirror_is_made
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.pod_cgroups import cgroup_changes
from kubelet_conformance.trace.world.previous_specs import spec_is_sent
from kubelet_conformance.trace.world.resolve import commanded, full_name, key_of, moment_of, reported_exit
from kubelet_conformance.trace.world.runtime_reports import (
    CONTAINER_STATES,
    containers_are_reported,
    containers_listed,
    news_of_containers,
    records_are_reported,
    sandboxes_listed,
)
from kubelet_conformance.trace.world.views import Container, Exit, Pod, Stop, Termination
from kubelet_conformance.trace.world.world import World

Update = Callable[[Moment], object]


def update_world(moment: Moment) -> None:
    """Bring the views up to date with the record."""
    for update in _UPDATES.get(moment.keys[0], ()):
        update(moment)


def moments(reader: Reader, passes: Callable[[Record], bool] | None = None) -> Iterator[Moment]:
    """Each record of a trace in its context; the world is updated from it before the next one.

    Records of which `passes` is true are left out: none that say something new of pods may be.
    """
    world = World(reader.header)
    for record in reader if passes is None else filterfalse(passes, reader):
        moment = moment_of(world, record, key_of(record))
        yield moment
        update_world(moment)


def _records_change(moment: Moment) -> None:
    """What is known of sandboxes and containers changes with this record."""
    moment.world.changed_seq = moment.seq


def _start_begins(moment: Moment) -> None:
    if moment.container is not None:
        moment.container.start = moment.call


def _stop_begins(moment: Moment) -> None:
    if moment.container is not None:
        timeout = moment.request(StopContainerRequest).timeout
        moment.container.stops.append(Stop(moment.call, timeout))


def _sandbox_stop_begins(moment: Moment) -> None:
    if moment.sandbox is not None:
        moment.sandbox.stops.append(Stop(moment.call))


def _sandbox_runs(moment: Moment) -> None:
    sandbox, config = moment.sandbox, moment.request(RunPodSandboxRequest).config
    if sandbox is None:
        sandbox_id = moment.response(RunPodSandboxReply).pod_sandbox_id
        sandbox = moment.world.add_sandbox(sandbox_id, moment.pod, born=True)
    elif sandbox.run is not moment.call:
        return
    sandbox.attempt = config.metadata.attempt
    sandbox.config = config
    sandbox.run = moment.call
    sandbox.ready_t = moment.t
    sandbox.state = "ready"


def _container_created(moment: Moment) -> None:
    container, config = moment.container, moment.request(CreateContainerRequest).config
    if container is None:
        name, container_id = config.metadata.name, moment.response(CreateContainerReply).container_id
        container = moment.world.add_container(container_id, name, moment.sandbox, moment.pod, born=True)
    elif container.create is not moment.call:
        return
    container.attempt = config.metadata.attempt
    container.config, container.create = config, moment.call
    container.created_t, container.state = moment.t, "created"
    image_is_known_by_its_id(moment, container)


def _container_started(moment: Moment) -> None:
    container = moment.container
    if container is not None:
        container.started_t, container.started_seq = moment.t, moment.seq
        if container.exit is None:
            container.state = "running"


def _start_failed(moment: Moment) -> None:
    if moment.container is not None:
        moment.container.start_failed = True


def _run_failed(moment: Moment) -> None:
    for sandbox in moment.pod.sandboxes if moment.pod is not None else ():
        if sandbox.run is moment.call:  # It was found meanwhile, and another call has made it.
            sandbox.run = sandbox.config = None
            sandbox.born = False


def _stop_ends(moment: Moment) -> None:
    container = moment.container
    if container is None:
        return
    _close(container.stops, moment)
    if moment.reply.error is None and container.state in {"running", "created", "unknown", "unseen"}:
        _exit(container, Exit(moment.t, moment.seq, code=None, commanded=True))


def _sandbox_stop_ends(moment: Moment) -> None:
    sandbox = moment.sandbox
    if sandbox is None:
        return
    _close(sandbox.stops, moment)
    if moment.reply.error is not None or sandbox.state == "removed":
        return
    sandbox.state = "notready"
    for container in sandbox.containers.values():
        if container.state == "running":
            _exit(container, Exit(moment.t, moment.seq, code=None, commanded=True))


def _close(stops: deque[Stop], moment: Moment) -> None:
    for stop in stops:
        if stop.call is moment.call:
            stop.end_t, stop.end_seq = moment.t, moment.seq
            stop.failed = moment.reply.error is not None
            stop.not_found = moment.reply.error is not None and moment.reply.error.code == "NOT_FOUND"


def _exit(container: Container, ended: Exit) -> None:
    container.state = "exited"
    if container.exit is None:
        container.exit = ended
    elif container.exit.code is None:
        container.exit.code = ended.code
        container.exit.reason = container.exit.reason or ended.reason


def _container_removed(moment: Moment) -> None:
    if moment.container is not None:
        moment.world.drop_container(moment.container, moment.t)


def _sandbox_removed(moment: Moment) -> None:
    if moment.sandbox is not None:
        moment.world.drop_sandbox(moment.sandbox, moment.t)


def _sandbox_status(moment: Moment) -> None:
    record = moment.response(PodSandboxStatusReply).status
    if record is None or not record.id or moment.world.went_since(record.id, moment.call.t):
        return
    sandbox = moment.world.found_sandbox(record)
    sandbox.record = record
    sandbox.status_t, sandbox.status_seq = moment.t, moment.call.seq
    if record.network is not None and record.network.ip:
        sandbox.ip = record.network.ip
    if record.state == "SANDBOX_NOTREADY":
        if "fact:sandbox-died" in moment.keys:
            _records_change(moment)
            sandbox.died_t = moment.t
        sandbox.state = "notready"
    elif sandbox.state == "unseen":
        sandbox.state = "ready"


def _container_status(moment: Moment) -> None:
    record = moment.response(ContainerStatusReply).status
    if record is None or not record.id or moment.world.went_since(record.id, moment.call.t):
        return
    container = moment.world.found_container(record)
    container.record = record
    if moment.exit is not None:
        _records_change(moment)
    if record.state == "CONTAINER_EXITED":
        _end_is_read(container, moment.exit or reported_exit(moment, container, record), moment)
        return
    if record.state == "CONTAINER_RUNNING":
        container.seen_running = True
    if container.state == "unseen" or record.state == "CONTAINER_UNKNOWN":
        container.state = CONTAINER_STATES.get(record.state, "unknown")  # type: ignore[assignment]


def _events_reported(moment: Moment) -> None:
    for container, record in news_of_containers(moment):
        _records_change(moment)
        container.record = record
        container.seen_running = container.seen_running or record.state == "CONTAINER_RUNNING"
        if record.state == "CONTAINER_EXITED":
            _end_is_read(container, reported_exit(moment, container, record), moment)


def _end_is_read(container: Container, ended: Exit, moment: Moment) -> None:
    _exit(container, ended)
    if container.end_read_t is None:
        container.end_read_t, container.end_read_seq = moment.t, moment.seq


def _container_exited(moment: Moment) -> None:
    record, container = moment.record, moment.container
    if container is not None and isinstance(record, RuntimeEvent):
        by_stop = commanded(container, moment.t)
        ended = moment.exit or Exit(moment.t, moment.seq, code=record.exit_code, commanded=by_stop)
        _exit(container, ended)


def _state_unknown(moment: Moment) -> None:
    if moment.container is not None and moment.container.state == "running":
        moment.container.state = "unknown"


def _sandbox_died(moment: Moment) -> None:
    if moment.sandbox is not None:
        moment.sandbox.state = "notready"
        moment.sandbox.died_t = moment.t


def _vanished(moment: Moment) -> None:
    if moment.container is not None:
        moment.world.drop_container(moment.container, moment.t, vanished=True)
    elif moment.sandbox is not None:
        moment.world.drop_sandbox(moment.sandbox, moment.t, vanished=True)


def _pod_removed(moment: Moment) -> None:
    if moment.pod is not None:
        _remove(moment.pod, moment, "removed")


def _pod_set(moment: Moment) -> None:
    record, manifest = moment.record, moment.manifest
    if manifest is None or not isinstance(record, PodChange) or manifest.metadata.is_mirror:
        return
    if moment.replaced is not None:
        _remove(moment.replaced, moment, "removed")
    pod = moment.pod or _new_pod(moment, record.source, manifest)
    if pod.manifest is not None and not pod.wanted:
        pod.back_t, pod.former_end, pod.former_phase = moment.t, pod.termination, pod.finished
    if pod.static and not pod.wanted:
        pod.termination, pod.born, pod.finished, pod.status = None, pod.born and not pod.uid, "", None
        moment.world.names[pod.namespace, pod.name] = pod
    if pod.manifest is not None and pod.manifest.spec != manifest.spec:
        pod.spec_changed_t, pod.spec_changed_seq = moment.t, moment.seq
    pod.take(record.source, manifest)
    pod.wanted, pod.changed_t, pod.changed_seq = True, moment.t, moment.seq
    is_first = pod.set_t is None
    if pod.set_t is None:
        pod.set_t, pod.set_seq = moment.t if record.since is None else record.since, moment.seq
    if manifest.metadata.deletion_timestamp:
        _terminate(pod, moment, "deleted", manifest.metadata.deletion_grace_period_seconds)
        if pod.termination is not None and is_first:
            pod.termination.seen = pod.born


def _new_pod(moment: Moment, source: str, manifest: Manifest) -> Pod:
    world, meta = moment.world, manifest.metadata
    name = full_name(world, source, meta.name)
    # A pod first seen on its way out was there before, unless the trace begins with the kubelet.
    born = world.past_known and (world.header.from_start or meta.deletion_timestamp is None)
    return world.new_pod(meta.uid, meta.namespace or "default", name, born=born)


def _remove(pod: Pod, moment: Moment, cause: str) -> None:
    _terminate(pod, moment, cause, None)
    pod.wanted = False
    if not pod.uid:
        moment.world.may_yet_run(pod)
    moment.world.forget_if_gone(pod)


def _terminate(pod: Pod, moment: Moment, cause: str, grace: int | None) -> None:
    if pod.termination is None:
        pod.termination = Termination(moment.t, moment.seq, cause, grace)
    elif grace is not None:
        known = pod.termination.grace
        pod.termination.grace = grace if known is None else min(grace, known)


def _status(moment: Moment) -> None:
    pod, status = moment.pod, moment.status
    if pod is None or status is None:
        return
    pod.status, pod.status_t, pod.status_seq = status, moment.t, moment.seq
    if status.terminal:
        pod.finished = status.phase


def _deleted(moment: Moment) -> None:
    pod = moment.pod
    if pod is None or pod.static:
        return
    pod.deleted_t = moment.t
    _remove(pod, moment, "forced")


def _kubelet_starts(moment: Moment) -> None:
    node = moment.world.node
    if moment.world.is_renewed:
        _renew_static_pods(moment)
    node.lives += 1
    node.kubelet_up = True
    node.started_t, node.started_seq = moment.t, moment.seq
    node.relisted_t = None
    moment.world.edited.clear()
    for pod in moment.world.pods.values():
        pod.work_unknown = False
    if moment.header.channels.api == "served":
        _forget_statuses(moment)


def _renew_static_pods(moment: Moment) -> None:
    """To a kubelet of another version a manifest without a UID of its own is another pod (applyDefaults)."""
    for pod in list(moment.world.names.values()):
        manifest = pod.manifest
        if manifest is None or not pod.static or not pod.wanted or manifest.metadata.uid:
            continue
        _remove(pod, moment, "removed")
        new = _new_pod(moment, pod.source, manifest)
        new.take(pod.source, manifest)
        new.wanted, new.changed_t, new.changed_seq = True, moment.t, moment.seq
        new.set_t, new.set_seq = moment.t, moment.seq
        if pod.mirror_uid:
            new.mirror_uid, pod.mirror_uid = pod.mirror_uid, ""
            moment.world.mirrors[new.mirror_uid] = new


def _forget_statuses(moment: Moment) -> None:
    """Drop statuses that were only read from the kubelet itself: the next instance cannot know them."""
    for pod in moment.world.pods.values():
        pod.status, pod.status_t, pod.status_seq, pod.finished = None, None, 0, ""


def _kubelet_goes(moment: Moment) -> None:
    node = moment.world.node
    node.kubelet_up = False
    node.down_t = moment.t
    drop_calls_in_flight(moment.world)


_UPDATES: dict[str, tuple[Update, ...]] = {
    **{f"call:{rpc}": (call_begins,) for rpc in WORK},
    **{f"done:{rpc}": (call_ends,) for rpc in WORK},
    **{f"failed:{rpc}": (call_ends,) for rpc in WORK},
    **{f"failed:{rpc}": (listing_failed, missed_updates.relist_fails) for rpc in LISTS},
    "api": (mirror_is_made,),
    "disk": (cgroup_changes,),
    **{f"call:{rpc}": (call_begins, pod_goes_on) for rpc in ("RunPodSandbox", "CreateContainer")},
    "call:StartContainer": (call_begins, pod_goes_on, _start_begins),
    "call:StopContainer": (call_begins, _stop_begins),
    "call:StopPodSandbox": (call_begins, _sandbox_stop_begins),
    "call:ExecSync": (call_begins, execution_begins),
    "done:RunPodSandbox": (call_ends, _sandbox_runs),
    **{f"{how}:StopPodSandbox": (call_ends, _sandbox_stop_ends) for how in ("done", "failed")},
    "done:RemovePodSandbox": (call_ends, _sandbox_removed),
    "done:PodSandboxStatus": (_sandbox_status,),
    "done:CreateContainer": (call_ends, _container_created),
    "done:StartContainer": (call_ends, _container_started),
    "done:StopContainer": (call_ends, _stop_ends),
    "done:RemoveContainer": (call_ends, _container_removed),
    "done:ContainerStatus": (_container_status,),
    "done:ExecSync": (call_ends, execution_ends),
    "done:Status": (status_is_reported,),
    "done:ListContainers": (containers_listed,),
    "done:ListPodSandbox": (sandboxes_listed,),
    "done:ImageStatus": (image_asked,),
    "done:PullImage": (call_ends, image_pulled),
    "failed:RunPodSandbox": (call_ends, _run_failed),
    "failed:StartContainer": (call_ends, _start_failed),
    "failed:StopContainer": (call_ends, _stop_ends),
    "failed:ExecSync": (call_ends, execution_ends),
    "failed:ImageStatus": (image_asked,),
    "failed:PullImage": (call_ends, pull_failed),
    **{f"runtime:{op}": (_container_exited,) for op in ("exited", "oom")},
    "runtime:unknown": (_state_unknown,),
    "runtime:sandbox-died": (_sandbox_died,),
    "runtime:removed": (_vanished,),
    "message": (containers_are_reported, _events_reported, records_are_reported),
    "pod:set": (spec_is_sent, _pod_set, missed_updates.change_is_missed),
    "pod:remove": (_pod_removed, missed_updates.change_is_missed),
    "status": (_status,),
    "deleted": (_deleted,),
    "http": (missed_updates.url_answers,),
    "fault": (
        runtime_is_unreachable,
        shutdown_is_announced,
        missed_updates.events_are_withheld,
        missed_updates.watch_changes,
    ),
    "event:Pulling": (pull_is_due,),
    **{f"event:{reason}": (disruption_is_reported,) for reason in (*sorted(REFUSALS), "Preempting")},
    "call:GetContainerEvents": (missed_updates.stream_opens,),
    "failed:GetContainerEvents": (missed_updates.stream_breaks,),
    "kubelet:started": (_kubelet_starts, missed_updates.relisted),
    **{f"kubelet:{op}": (_kubelet_goes,) for op in ("ended", "killed", "stopped")},
}
"""The functions that update the world, by the keys of their records."""
for _key in OBSERVED:
    _UPDATES[_key] = (*_UPDATES.get(_key, ()), kubelet_view)
UPDATE_KEYS = frozenset(_UPDATES)
"""The keys of the records that update the views."""
_CHANGES = frozenset(
    {"call:StartContainer", *(key for key in _UPDATES if key.startswith("runtime:"))}
    | {f"done:{rpc}" for rpc in WORK},
)
"""The records that always change what is known of sandboxes and containers."""
_UPDATES.update({key: (_records_change, *_UPDATES[key]) for key in _CHANGES})
