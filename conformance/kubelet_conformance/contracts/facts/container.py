"""Containers of a pod: which record counts, what its end means, and which container may be created next."""

from collections.abc import Iterator
from typing import Literal

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, Sandbox
from kubelet_conformance.contract.applicability import ByVersion
from kubelet_conformance.contract.definition import answered, observer
from kubelet_conformance.contract.patterns import (
    call,
    done,
    event,
    exited,
    failed,
    happened,
    pod_set,
    sandbox_died,
    status,
)
from kubelet_conformance.contracts.facts.kubelet import sees_a_ready_runtime, version_at
from kubelet_conformance.contracts.facts.pod import (
    FAULT,
    TERMINATION_ASKED,
    about,
    post_start_may_have_failed,
    to_run,
)
from kubelet_conformance.contracts.facts.sandbox import CONTAINER_EVENT, is_hidden_by_event
from kubelet_conformance.contracts.facts.timing import REACTION, RELIST, SAME_MOMENT
from kubelet_conformance.contracts.tables.container import APPS, INITS, AppSeen, InitSeen
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.labels import Annotation
from kubelet_conformance.trace.format.manifests import ContainerSpec, Kind, PodStatus
from kubelet_conformance.trace.format.records import Reply
from kubelet_conformance.trace.world.images import image_origin
from kubelet_conformance.trace.world.in_flight import since_when_at_work
from kubelet_conformance.trace.world.kubelet_view import receives_events
from kubelet_conformance.trace.world.runtime_reports import event_of


def _gave_up(m: Moment) -> bool:
    """Eviction, a deadline, preemption and a node's shutdown all write a terminal phase with a reason."""
    return m.status is not None and m.status.terminal and bool(m.status.reason)


CALLED_OFF: Pattern = TERMINATION_ASKED.either(
    sandbox_died(),
    call("PullImage"),
    event("ErrImageNeverPull"),
    failed("PodSandboxStatus", "ContainerStatus"),
    status().where(_gave_up),
)
"""After this a container need not be created soon: the pod is terminated, its sandbox died, an image takes
long or may not be pulled, or what became of it cannot be read (WORK-18).
"""


def _is_hook(m: Moment) -> bool:
    return m.request(bodies.ExecSyncRequest).timeout == 0


HELD_UP: Pattern = CALLED_OFF.either(call("StopContainer"), call("ExecSync").where(_is_hook))
"""What may keep the pod's worker for longer than a reaction takes, too: it does one thing after the other."""


def _is_init(m: Moment) -> bool:
    spec = m.pod.spec if m.pod is not None else None
    return spec is not None and spec.entries.get(asked(m).metadata.name, ("",))[0] == "init"


INIT_FIRST = call("CreateContainer").where(_is_init)
"""The pod starts again with its init containers, which may take any time."""


def _is_sidecar(m: Moment) -> bool:
    one = m.container
    return one is not None and (one.kind == "sidecar" or waits_for_sidecars(one))


SIDECAR_ENDS = exited().where(_is_sidecar)
"""Where no app container runs, the sidecars come first again (`waits_for_sidecars`)."""

_WORK = frozenset({"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer", "StopContainer"})


def worker_is_free(m: Moment, pod: Pod) -> bool:
    """Nothing of the pod is in progress but what is answered here."""
    if pod.work_unknown:
        return False
    own = m.call if isinstance(m.record, Reply) else None
    for call_open in pod.calls_open.values():
        if call_open is not own and call_open.rpc in _WORK:
            return False
    hooked = [one for one in pod.every_container() if one.hooks_open]
    if not hooked:
        return True
    return not any(h.call is not own and h.call.id in one.hooks_open for one in hooked for h in one.hooks)


def to_watch(m: Moment) -> bool:
    """A pod to run, on a node whose kubelet is up, sees the runtime and is not busy with it."""
    return to_run(m) and sees_a_ready_runtime(m) and m.pod is not None and worker_is_free(m, m.pod)


def _ended_by_itself(m: Moment) -> bool:
    one = m.container
    is_newest = one is not None and m.pod is not None and one is m.pod.newest(one.name)
    return is_newest and m.exit is not None and not m.exit.commanded and to_watch(m)


OWN_END: Pattern = exited().where(_ended_by_itself)
"""A container ended that the kubelet did not stop, and the pod's worker is free to react. An instance that a
late start brought up behind a newer one ends unnoticed.
"""
FREE_CHANGE: Pattern = pod_set().where(to_watch)
"""A pod that runs was sent again, and the kubelet can take a change up at once."""


def put_off(m: Moment) -> bool:
    """The container is created in a later sync than the one that ran its sandbox, as far as the trace shows.

    The sync that runs a sandbox creates the first container at once, unless that must wait for its back-off.
    """
    sandbox, pod, name, life_t = m.sandbox, m.pod, asked(m).metadata.name, m.node.started_t or 0.0
    if sandbox is None or sandbox.ready_t is None or sandbox.ready_t < max(m.t - REACTION, life_t):
        return True
    if pod is None or (old := pod.newest(name)) is None:
        return False
    if old.removed_t is not None and sandbox.run is not None and sandbox.run.t - old.removed_t >= RELIST:
        return True  # Its record was removed when another sync tried to run a sandbox.
    was_tried = name in pod.create_failed and pod.create_failed[name].t >= sandbox.ready_t
    was_ended = old.exit is not None and (not old.exit.commanded or post_start_may_have_failed(old))
    has_failed = old.attempt > 0 or was_ended
    return was_tried or (has_failed and m.t - sandbox.ready_t > RELIST / 2)


def is_hidden(m: Moment, container: Container) -> bool:
    """The sync that creates the next instance may not know this one, of an older sandbox.

    It goes by an event of the new sandbox (`is_hidden_by_event`), unless it is the sync that ran it. What
    follows the pod's first init container is created by a later one.
    """
    if m.sandbox is container.sandbox or not is_hidden_by_event(container):
        return False
    inits = (m.pod.spec.init_containers or []) if m.pod is not None and m.pod.spec is not None else []
    return put_off(m) or (bool(inits) and asked(m).metadata.name != inits[0].name)


def asked(m: Moment) -> bodies.ContainerConfig:
    """The config of the container that a CreateContainer asks for."""
    body = m.call.request  # This is `m.request`, for which judges ask all the time.
    request: bodies.CreateContainerRequest = (
        body.parsed
        if body.parsed_as is bodies.CreateContainerRequest
        else body.view(bodies.CreateContainerRequest)
    )
    return request.config


def _made_before(m: Moment) -> bool:
    return m.pod is not None and m.pod.newest(asked(m).metadata.name) is not None


REMAKING: Pattern = call("CreateContainer").where(_made_before)
"""A CreateContainer for a container that has had an instance before."""


def creation_of(name: str) -> Pattern:
    """A CreateContainer for the container of this name."""
    return call("CreateContainer").where(lambda m: asked(m).metadata.name == name)


def start_of(name: str) -> Pattern:
    """The first step towards another instance of this name: a PullImage for it, or its CreateContainer."""

    def fits(m: Moment) -> bool:
        spec, image = m.pod.container_spec(name) if m.pod else None, m.request(bodies.PullImageRequest).image
        return spec is not None and spec.image in {image.image, image.user_specified_image}

    return creation_of(name).either(call("PullImage").where(fits))


def creation_of_kind(*kinds: Kind, besides: str = "") -> Pattern:
    """A CreateContainer for a container of one of these kinds, but not for `besides`."""

    def fits(m: Moment) -> bool:
        name = asked(m).metadata.name
        return m.pod is not None and name != besides and m.pod.kind_of(name) in kinds

    return call("CreateContainer").where(fits)


def stop_of(container: Container) -> Pattern:
    """A StopContainer for this container."""
    return call("StopContainer").where(about(container))


def given_up_with_its_pod(container: Container) -> Pattern:
    """The container's sandbox is stopped in a pod that has failed: its policy is Never, and no app runs."""

    def has_failed(m: Moment) -> bool:
        pod = m.pod
        if pod is None or m.sandbox is not container.sandbox or pod.restart_policy != "Never":
            return False
        apps = [pod.newest(spec.name) for spec in pod.spec.containers] if pod.spec else []
        ends = [one is not None and (one.state == "exited" or last_read_as(one, "UNKNOWN")) for one in apps]
        return all(ends)

    return call("StopPodSandbox").where(has_failed)


def last_read_as(container: Container, state: Literal["RUNNING", "EXITED", "UNKNOWN"]) -> bool:
    """The runtime last reported this state; where that is unknown it does not know whether it runs."""
    return container.record is not None and container.record.state == f"CONTAINER_{state}"


def decided_before_end(m: Moment, container: Container) -> bool:
    """What the pod's worker does now it may have decided before the kubelet read that this container ended.

    A sync goes on with the records that it began with. Where the kubelet receives events, it may begin with
    those from before an event that has just arrived: the worker waits for the cache as a whole, which is
    dated beside the events (pleg/evented.go updateGlobalCache).
    """
    read_t = container.end_read_t if container.end_read_t is not None else container.removed_t
    if container.pod is None or read_t is None:
        return True
    slack = SAME_MOMENT if receives_events(m) else 0.0
    return since_when_at_work(container.pod, m.t) < read_t + slack


def exit_of(container: Container) -> Pattern:
    """The container ends."""
    return exited().where(about(container))


def left_created_state(container: Container) -> Pattern:
    """The runtime says that a container whose start failed is in another state than created."""

    def fits(m: Moment) -> bool:
        reported = m.response(bodies.ContainerStatusReply).status
        return m.container is container and reported is not None and reported.state != "CONTAINER_CREATED"

    def is_recorded(m: Moment) -> bool:
        return _state_in_event(m, container) not in {"", "CONTAINER_CREATED"}

    return done("ContainerStatus").where(fits).either(CONTAINER_EVENT.where(is_recorded))


def _state_in_event(m: Moment, container: Container) -> str:
    """The state in which this container event has the container; "" where it is not in it."""
    event = event_of(m)
    records = event.containers_statuses if event is not None else ()
    return next((each.state for each in records if each.id == container.id), "")


def removal_of(container: Container) -> Pattern:
    """A RemoveContainer for this container."""
    return call("RemoveContainer").where(about(container))


def failing_start(m: Moment) -> str:
    """The container whose start fails with this reply, as far as the call names it; "" where it does not."""
    if m.call.rpc == "CreateContainer":
        return asked(m).metadata.name
    if m.call.rpc == "StartContainer":
        return m.container.name if m.container is not None else ""
    image = m.request(bodies.PullImageRequest).image
    names = {image.image, image.user_specified_image}
    found = [name for name, (_, spec) in m.pod.entries.items() if spec.image in names] if m.pod else []
    return found[0] if len(found) == 1 else ""


def recorded(pod: Pod, name: str) -> Container | None:
    """The newest instance of that name, if the runtime still has its record."""
    newest = pod.newest(name)
    return newest if newest is not None and newest.state != "removed" else None


def has_records(pod: Pod, name: str) -> bool:
    """The runtime has a record of that name: an older one gives the next number where the newest was lost."""
    return any(one.state != "removed" for one in pod.containers.get(name, ()))


def end_is_read(container: Container) -> Pattern:
    """The kubelet reads or receives that this container has ended, or its record is gone."""

    def shows(m: Moment) -> bool:
        record = m.response(bodies.ContainerStatusReply).status
        return record is None or record.state == "CONTAINER_EXITED"

    def reports(m: Moment) -> bool:
        return _state_in_event(m, container) == "CONTAINER_EXITED"

    read = done("ContainerStatus").where(about(container)).where(shows)
    return read.either(CONTAINER_EVENT.where(reports), happened("removed").where(about(container)))


def has_failed_init(pod: Pod) -> bool:
    """An init container has failed, and by the restart policy it is not run again: the pod ends."""
    return _ends_pod_by_failure(pod.restart_policy) and any(
        failed_run(one) for one in pod.of_kind("init") if one is recorded(pod, one.name)
    )


def _ends_pod_by_failure(policy: str) -> bool:
    """An init container that fails is not run again under this policy."""
    return INITS.decide(InitSeen("exited", policy, failed=True)) == "end the pod"


def _fails_for_good(m: Moment) -> bool:
    container = m.container
    if m.pod is None or m.exit is None or container is None or container.kind != "init":
        return False
    return m.exit.code not in {0, None} and _ends_pod_by_failure(m.pod.restart_policy)


INIT_FAILS: Pattern = exited().where(_fails_for_good)
"""An init container fails and is not run again: the pod is over, whatever its sidecars are to do."""


def failed_run(container: Container) -> bool:
    """The container failed: a code other than 0, or OOM killed whatever the code."""
    ended = container.exit
    if ended is None:
        return False
    reasons = {ended.reason, container.record.reason if container.record else ""}
    return ended.code not in {0, None} or "OOMKilled" in reasons


def completed(container: Container) -> bool:
    """The container ran to its end, and no record shows that it failed."""
    return container.ended and container.exit is not None and not failed_run(container)


def finished_t(container: Container) -> float | None:
    """When the container ended on the trace's clock; by the runtime's stamps where no record shows it."""
    ended, record = container.exit, container.record
    if ended is None:
        return None
    if record is None or not record.finished_at or container.created_t is None:
        return ended.t
    return min(ended.t, container.created_t + (record.finished_at - record.created_at) / 1e9)


def unread_end(m: Moment, container: Container) -> bool:
    """The container ended by itself, and no list or status has shown it: the kubelet takes it to run."""
    return not container.listed_exited and uninspected_end(m, container)


def uninspected_end(m: Moment, container: Container) -> bool:
    """The container ended by itself, and no status of it shows that; a kubelet need not go by lists."""
    if not container.born or (end := container.exit) is None or end.commanded or container.state != "exited":
        return False
    reported = last_read_as(container, "EXITED") or any(stop.is_done for stop in container.stops)
    return not reported and not receives_events(m)


def wants_restart(pod: Pod, container: Container) -> bool | None:
    """Whether the pod's restart policy restarts an app container after this end; None where unknown."""
    spec = container.spec
    if container.exit is None or container.exit.code is None or (spec is not None and spec.restart_policy):
        return None
    return APPS.decide(AppSeen("exited", pod.restart_policy, container.exit.code)) == "start"


def in_place(container: Container) -> bool:
    """The container's sandbox is ready and is not being stopped."""
    sandbox = container.sandbox
    return sandbox is not None and sandbox.state == "ready" and not sandbox.stops


def waits_for_sidecars(container: Container) -> bool:
    """An app container has ended, and no other one is there: the pod counts as not initialized.

    Its sidecars have to have started before it is created again (computeInitContainerActions).
    """
    pod = container.pod
    if pod is None or container.kind != "app":
        return False
    others = (one for one in pod.of_kind("app") if one is not container)
    if any(one.sandbox is container.sandbox and one.state in {"created", "running"} for one in others):
        return False
    newest = ((spec, pod.newest(spec.name)) for spec in sidecars(pod))
    return any(one is None or one.state != "running" or spec.startup_probe for spec, one in newest)


def newly_imaged(m: Moment, state: str) -> Iterator[Container]:
    """The newest instances in this state whose image a FREE_CHANGE changes, app containers only.

    One that is sent with the image that it has, after a change that nobody saw, is not changed.
    """
    pod, manifest = m.pod, m.manifest
    if pod is None or manifest is None or manifest.metadata.deletion_timestamp:
        return
    for new in manifest.spec.containers:
        newest, old = pod.newest(new.name), pod.container_spec(new.name)
        if newest is None or old is None or newest.state != state or old.image == new.image:
            continue
        if image_origin(newest) != new.image:
            yield newest


def image_is_back(container: Container) -> Pattern:
    """The pod is sent with the image that the container was made of: its definition has not changed."""

    def is_back(m: Moment) -> bool:
        specs = m.manifest.spec.containers if m.manifest is not None else ()
        return any(one.name == container.name and one.image == image_origin(container) for one in specs)

    return pod_set().where(is_back)


def regular_inits(pod: Pod) -> tuple[ContainerSpec, ...]:
    """The init containers that run to their end, in spec order."""
    return pod.manifest.spec.regular_inits if pod.manifest is not None else ()


def sidecars(pod: Pod) -> tuple[ContainerSpec, ...]:
    """The restartable init containers, in spec order."""
    return pod.manifest.spec.sidecars if pod.manifest is not None else ()


def following(pod: Pod, name: str) -> list[ContainerSpec]:
    """What the pod runs after this init container, in the order of its start."""
    if pod.spec is None:
        return []
    order = [*(pod.spec.init_containers or ()), *pod.spec.containers]
    places = [place for place, spec in enumerate(order) if spec.name == name]
    return order[places[0] + 1 :] if places else []


def made_in(pod: Pod, name: str, sandbox: Sandbox | None) -> Container | None:
    """The newest instance of that name, if it was created in this sandbox."""
    newest = pod.newest(name)
    return newest if newest is not None and newest.sandbox is sandbox else None


def first_missing(pod: Pod, name: str, sandbox: Sandbox) -> str | None:
    """The next container after this init container, if nothing after it has been created in the sandbox."""
    rest = following(pod, name)
    if any(made_in(pod, spec.name, sandbox) for spec in rest):
        return None
    if rest and pod.kind_of(rest[0].name) != "app":
        return rest[0].name
    old = ((spec.name, recorded(pod, spec.name)) for spec in rest)
    return next((one for one, record in old if record is None or wants_restart(pod, record)), None)


def changed(container: Container, config: bodies.ContainerConfig | None = None) -> bool:
    """The container's definition has changed: the image in the spec, or the hash in the request."""
    old, spec = container.config or container.record, container.spec
    if old is None:
        return False
    if config is not None:
        return old.annotations.get(Annotation.HASH) != config.annotations.get(Annotation.HASH)
    image = image_origin(container)
    return bool(spec and spec.image and image and spec.image != image)


HASHED = ByVersion({"<=1.30": "definition", ">=1.31": "name and image"})
"""What the hash of a container covers (kubernetes/kubernetes#124220)."""


def is_hashed_otherwise(m: Moment, container: Container) -> bool:
    """A kubelet of another version has made the container, and the hash of this one covers something else.

    It finds that the definition has changed, and restarts the container.
    """
    created = container.create.seq if container.create is not None else 0
    made_by = version_at(m, created)
    return made_by is not None and HASHED.get(made_by) != HASHED.get(m.kubernetes)


def stop_to_remake(container: Container) -> Pattern:
    """The container has ended by itself, and a sync that did not know stops it to make it again.

    That sync creates it again whatever its code (computePodActions).
    """

    def fits(m: Moment) -> bool:
        spec = container.spec
        probed = spec is not None and bool(spec.liveness_probe or spec.startup_probe)
        return m.container is container and (
            probed or changed(container) or is_hashed_otherwise(m, container)
        )

    return call("StopContainer").where(fits)


class _Stop(Note):
    """Whether its definition had changed when it was stopped, its pod was to go, or its state was unknown."""

    changed: bool = False
    going: bool = False
    unknown: bool = False


@observer(on=call("StopContainer"))
def take_in_stop(m: Moment) -> None:
    """Record what `was_changed`, `was_going` and `was_unknown` return."""
    container, pod = m.container, m.pod
    if container is not None and last_read_as(container, "UNKNOWN"):
        container.note(_Stop).unknown = True
    if container is not None and changed(container):
        container.note(_Stop).changed = True
    if container is not None and pod is not None and pod.termination is not None:
        container.note(_Stop).going = True


def was_changed(container: Container) -> bool:
    """The container was stopped for another definition, though the spec may have its former one again."""
    return container.note(_Stop).changed


def was_going(container: Container) -> bool:
    """The container was stopped as its pod was terminated; the file of a static pod may be back since."""
    return container.note(_Stop).going


def was_unknown(container: Container) -> bool:
    """The runtime did not know the state of the container when it was stopped; it may know it since."""
    return container.note(_Stop).unknown


PURGES: Pattern = failed("RemoveContainer", "ContainerStatus").either(call("RunPodSandbox"))


class _Removal(Note):
    """Whether the removal of a container was tried and failed."""

    tried: bool = False


class _Beside(Note):
    """The latest RunPodSandbox of a pod with records of init containers that could not be removed."""

    run_seq: int = 0


@observer(on=PURGES)
def take_purges(m: Moment) -> None:
    """Record which removals fail, and which sandboxes are run in spite of that."""
    pod, container = m.pod, m.container
    if m.call.rpc == "RunPodSandbox":
        if pod is not None and any(_stands(one) for one in pod.of_kind("init", "sidecar")):
            pod.note(_Beside).run_seq = m.seq
    elif container is not None and (m.call.rpc == "RemoveContainer" or _was_stopped(m)):
        container.note(_Removal).tried = True


def _was_stopped(m: Moment) -> bool:
    """Where its record cannot be read its log is not found, and it is not removed (removeContainerLog)."""
    stops = m.sandbox.stops if m.sandbox is not None else ()
    return any(stop.end_t is not None and stop.end_t <= m.call.t for stop in stops)


def _stands(container: Container) -> bool:
    return container.state != "removed" and was_tried(container)


def was_tried(container: Container) -> bool:
    """The removal of the container was tried and failed."""
    return container.note(_Removal).tried


def sees_stale_init_record(pod: Pod, sandbox: Sandbox | None) -> bool:
    """A record of an init container stood when this sandbox was run, as it could not be removed."""
    run = sandbox.run if sandbox is not None else None
    return run is not None and run.seq == pod.note(_Beside).run_seq


def may_have_started(pod: Pod, now: PodStatus) -> dict[str, str]:
    """The sidecars, by name with their ids, whose `started` is still false though a probe may have succeeded.

    They run, and Initialized does not name them.
    """
    initialized = now.condition("Initialized")
    named = initialized.message.strip("]").replace("[", " ").split() if initialized is not None else ()
    probed = {one.name for one in sidecars(pod) if one.startup_probe is not None and one.name not in named}
    return {
        one.name: one.runtime_id
        for one in now.init_container_statuses or ()
        if one.name in probed and one.state.running is not None and not one.started
    }


def starts_are_reported(late: dict[str, str]) -> Finding:
    """A status soon shows the sidecars in `late` as started."""

    def shows(m: Moment) -> bool:
        shown = m.status.by_name if m.status is not None else {}
        reported = [one for name in late if (one := shown.get(name)) is not None]
        return all(one.started or one.runtime_id != late[one.name] for one in reported)

    return answered(
        by=status().where(shows),
        within=REACTION,
        unless=exited().either(TERMINATION_ASKED, FAULT),
        text=f"sidecars {' and '.join(late)}, by which the pod is initialized, are shown as started",
    )
