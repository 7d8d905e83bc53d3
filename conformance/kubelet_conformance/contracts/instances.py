"""Containers of a pod by name: which record counts, what its end means, and who may come next."""

from __future__ import annotations

from collections.abc import Iterator

from kubelet_conformance.contract.words import (
    Pattern,
    call,
    done,
    exited,
    failed,
    pod_set,
    sandbox_died,
    status,
)
from kubelet_conformance.contracts.sandboxes import EVENT_TOLD
from kubelet_conformance.contracts.situations import TERMINATION_ASKED, about, to_run
from kubelet_conformance.contracts.tables.container import APPS, AppSeen
from kubelet_conformance.contracts.timing import REACTION, RELIST
from kubelet_conformance.trace.bodies import (
    ContainerConfig,
    ContainerStatusReply,
    CreateContainerRequest,
    ExecSyncRequest,
    PullImageRequest,
)
from kubelet_conformance.trace.container_specs import ContainerSpec
from kubelet_conformance.trace.manifests import Kind
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import Reply
from kubelet_conformance.trace.streaming import event_of
from kubelet_conformance.trace.views import Container, Pod, Sandbox


def _gave_up(m: Moment) -> bool:
    """Eviction, a deadline, preemption and a node's shutdown all write a terminal phase with a reason."""
    return m.status is not None and m.status.terminal and bool(m.status.reason)


CALLED_OFF: Pattern = TERMINATION_ASKED.either(
    sandbox_died(),
    call("PullImage"),
    failed("PodSandboxStatus", "ContainerStatus"),
    status().where(_gave_up),
)
"""What ends the hope for a container soon: the pod is to go, its sandbox died, an image takes its time, or
what became of it cannot be read (WORK-18).
"""


def _is_hook(m: Moment) -> bool:
    return m.request(ExecSyncRequest).timeout == 0


HELD_UP: Pattern = CALLED_OFF.either(call("StopContainer"), call("ExecSync").where(_is_hook))
"""What may keep the pod's worker for longer than a reaction takes, too: it does one thing after the other."""


def _is_init(m: Moment) -> bool:
    spec = m.pod.spec if m.pod is not None else None
    return spec is not None and spec.entries.get(asked(m).metadata.name, ("",))[0] == "init"


INIT_FIRST = call("CreateContainer").where(_is_init)
"""The pod begins anew with its init containers, which take their time."""


def _is_sidecar(m: Moment) -> bool:
    one = m.container
    return one is not None and (one.kind == "sidecar" or waits_for_sidecars(one))


SIDECAR_ENDS = exited().where(_is_sidecar)
"""Where no app container runs, the sidecars come first again (`waits_for_sidecars`)."""

_WORK = frozenset({"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer", "StopContainer"})


def _worker_free(m: Moment, pod: Pod) -> bool:
    """Nothing of the pod is under way but what is answered here."""
    own = m.call if isinstance(m.record, Reply) else None
    for call_open in pod.calls_open.values():
        if call_open is not own and call_open.rpc in _WORK:
            return False
    hooked = [one for one in pod.every_container() if one.hooks_open]
    if not hooked:
        return True
    return not any(h.call is not own and h.call.id in one.hooks_open for one in hooked for h in one.hooks)


def awake(m: Moment) -> bool:
    """The kubelet is up and sees the runtime, so that it can notice what happens."""
    node = m.node
    return node.kubelet_up and node.relisted_t is not None and not node.listing_failed and node.runtime_ready


def to_watch(m: Moment) -> bool:
    """A pod to run, on a node whose kubelet is there to notice and has its hands free."""
    return to_run(m) and awake(m) and m.pod is not None and _worker_free(m, m.pod)


def _ends_by_itself(m: Moment) -> bool:
    return m.exit is not None and not m.exit.commanded and to_watch(m)


OWN_END: Pattern = exited().where(_ends_by_itself)
"""A container ended that nobody stopped, and the kubelet has its hands free to react."""
FREE_CHANGE: Pattern = pod_set().where(to_watch)
"""A pod that runs was sent again, and the kubelet can take a change up at once."""


def put_off(m: Moment) -> bool:
    """The container is made in a later sync than the one that ran its sandbox, for all one can tell.

    The sync that runs a sandbox makes the first container right then, unless that must wait for its back-off.
    """
    sandbox, pod, name, life_t = m.sandbox, m.pod, asked(m).metadata.name, m.node.started_t or 0.0
    if sandbox is None or sandbox.ready_t is None or sandbox.ready_t < max(m.t - REACTION, life_t):
        return True
    if pod is None or (old := pod.newest(name)) is None:
        return False
    if old.removed_t is not None and sandbox.run is not None and sandbox.run.t - old.removed_t >= RELIST:
        return True  # Its record went when another sync tried to run a sandbox.
    was_tried = name in pod.create_failed and pod.create_failed[name].t >= sandbox.ready_t
    has_failed = old.attempt > 0 or (old.exit is not None and not old.exit.commanded)
    return was_tried or (has_failed and m.t - sandbox.ready_t > RELIST / 2)


def asked(m: Moment) -> ContainerConfig:
    """The config of the container that a CreateContainer asks for."""
    body = m.call.request  # This is `m.request`, for which judges ask all the time.
    request: CreateContainerRequest = (
        body.parsed if body.parsed_as is CreateContainerRequest else body.view(CreateContainerRequest)
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
        spec, image = m.pod.container_spec(name) if m.pod else None, m.request(PullImageRequest).image
        return spec is not None and spec.image in {image.image, image.user_specified_image}

    return creation_of(name).either(call("PullImage").where(fits))


def creation_of_kind(*kinds: Kind, besides: str = "") -> Pattern:
    """A CreateContainer for a container of one of these kinds, but not for `besides`."""

    def fits(m: Moment) -> bool:
        name = asked(m).metadata.name
        return m.pod is not None and name != besides and m.pod.kind_of(name) in kinds

    return call("CreateContainer").where(fits)


def stop_of(container: Container) -> Pattern:
    """A StopContainer for this one."""
    return call("StopContainer").where(about(container))


def given_up_with_its_pod(container: Container) -> Pattern:
    """The sandbox of this one is stopped, in a pod that has failed: of policy Never, and no app runs."""

    def has_failed(m: Moment) -> bool:
        pod = m.pod
        if pod is None or m.sandbox is not container.sandbox or pod.restart_policy != "Never":
            return False
        apps = [pod.newest(spec.name) for spec in pod.spec.containers] if pod.spec else []
        return all(one is not None and (one.state == "exited" or _is_lost(one)) for one in apps)

    return call("StopPodSandbox").where(has_failed)


def _is_lost(container: Container) -> bool:
    """The runtime does not know whether it runs."""
    return container.record is not None and container.record.state == "CONTAINER_UNKNOWN"


def exit_of(container: Container) -> Pattern:
    """The end of this one."""
    return exited().where(about(container))


def told_otherwise(container: Container) -> Pattern:
    """The runtime says that a container whose start failed is in another state than created."""

    def fits(m: Moment) -> bool:
        told = m.response(ContainerStatusReply).status
        return m.container is container and told is not None and told.state != "CONTAINER_CREATED"

    def heard(m: Moment) -> bool:
        event = event_of(m)
        states = {one.id: one.state for one in event.containers_statuses} if event is not None else {}
        return states.get(container.id, "CONTAINER_CREATED") != "CONTAINER_CREATED"

    return done("ContainerStatus").where(fits).either(EVENT_TOLD.where(heard))


def removal_of(container: Container) -> Pattern:
    """A RemoveContainer for this one."""
    return call("RemoveContainer").where(about(container))


def failing_start(m: Moment) -> str:
    """The container whose start fails with this reply, as far as the call tells; "" where it does not."""
    if m.call.rpc == "CreateContainer":
        return asked(m).metadata.name
    if m.call.rpc == "StartContainer":
        return m.container.name if m.container is not None else ""
    image = m.request(PullImageRequest).image
    names = {image.image, image.user_specified_image}
    found = [name for name, (_, spec) in m.pod.entries.items() if spec.image in names] if m.pod else []
    return found[0] if len(found) == 1 else ""


def recorded(pod: Pod, name: str) -> Container | None:
    """The newest instance of that name, if the runtime still has its record."""
    newest = pod.newest(name)
    return newest if newest is not None and newest.state != "removed" else None


def failed_run(container: Container) -> bool:
    """It ended badly: a code other than 0, or killed for want of memory whatever the code."""
    ended = container.exit
    if ended is None:
        return False
    reasons = {ended.reason, container.record.reason if container.record else ""}
    return ended.code not in {0, None} or "OOMKilled" in reasons


def completed(container: Container) -> bool:
    """It ran to its end, and nothing tells that it failed."""
    return container.ended and container.exit is not None and not failed_run(container)


def finished_t(container: Container) -> float | None:
    """When it ended on the trace's clock; the runtime's own time stamps tell it where no record does."""
    ended, record = container.exit, container.record
    if ended is None:
        return None
    if record is None or not record.finished_at or container.created_t is None:
        return ended.t
    return min(ended.t, container.created_t + (record.finished_at - record.created_at) / 1e9)


def unread_end(m: Moment, container: Container) -> bool:
    """It ended by itself, and the kubelet has not been told: to its knowledge it runs."""
    if not container.born or (end := container.exit) is None or end.commanded or container.state != "exited":
        return False
    told = container.record is not None and container.record.state == "CONTAINER_EXITED"
    told = told or any(stop.succeeded for stop in container.stops)
    return not told and not m.header.feature_gates.get("EventedPLEG")


def wants_restart(pod: Pod, container: Container) -> bool | None:
    """Whether the pod's restart policy wants an app container again after this end; None where unknown."""
    spec = container.spec
    if container.exit is None or container.exit.code is None or (spec is not None and spec.restart_policy):
        return None
    return APPS.decide(AppSeen("exited", pod.restart_policy, container.exit.code)) == "start"


def in_place(container: Container) -> bool:
    """Its sandbox is ready and nobody stops it."""
    sandbox = container.sandbox
    return sandbox is not None and sandbox.state == "ready" and not sandbox.stops


def waits_for_sidecars(container: Container) -> bool:
    """It is an app container that has ended, and no other one is there: the pod counts as not initialized.

    Its sidecars have to have started before it is made again (computeInitContainerActions).
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
    """The newest instances in this state whose image a FREE_CHANGE changes, app containers only."""
    pod, manifest = m.pod, m.manifest
    if pod is None or manifest is None or manifest.metadata.deletion_timestamp:
        return
    for new in manifest.spec.containers:
        newest, old = pod.newest(new.name), pod.container_spec(new.name)
        if newest is not None and old is not None and newest.state == state and old.image != new.image:
            yield newest


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
    """The newest instance of that name, if it was made in this sandbox."""
    newest = pod.newest(name)
    return newest if newest is not None and newest.sandbox is sandbox else None


def first_missing(pod: Pod, name: str, sandbox: Sandbox) -> str | None:
    """The next container after this init container, if nothing after it has been made in the sandbox."""
    rest = following(pod, name)
    if any(made_in(pod, spec.name, sandbox) for spec in rest):
        return None
    if rest and pod.kind_of(rest[0].name) != "app":
        return rest[0].name
    old = ((spec.name, recorded(pod, spec.name)) for spec in rest)
    return next((one for one, record in old if record is None or wants_restart(pod, record)), None)
