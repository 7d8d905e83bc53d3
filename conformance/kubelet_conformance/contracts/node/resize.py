"""RESIZE: what happens to a running pod whose resources are changed in its spec."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, Predicate
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, deleted, done, failed, pod_set, status
from kubelet_conformance.contracts.facts import resources
from kubelet_conformance.contracts.facts.kubelet import is_informed
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, about, of, to_run, worker_is_busy
from kubelet_conformance.contracts.facts.timing import REACTION, RESYNC
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.bodies import ContainerStatsReply, CreateContainerRequest
from kubelet_conformance.trace.format.manifests import ContainerSpec, Manifest, PodSpec

_UPDATE = call("UpdateContainerResources")
_UPDATED = done("UpdateContainerResources")
_UPDATE_FAILED = failed("UpdateContainerResources", "ContainerStats")
_IN_PLACE = since("1.27")


def _resized(m: Moment) -> Iterator[tuple[Container, ContainerSpec, list[str]]]:
    """The running containers whose resources this manifest changes, each with the resources that change."""
    pod, manifest = m.pod, m.manifest
    if pod is None or manifest is None or pod.spec is None or pod.static or not to_run(m):
        return
    if manifest.metadata.deletion_timestamp is not None or worker_is_busy(pod) or not is_informed(m):
        return
    for spec in manifest.spec.containers:
        old, container = pod.container_spec(spec.name), pod.newest(spec.name)
        has = resources.has_now(container) if container is not None and _runs(container) else None
        if container is None or has is None or old is None or old.image != spec.image:
            continue
        wanted = resources.wants(spec)
        shrinks = bool(wanted.memory) and (not has.memory or wanted.memory < has.memory)
        # Memory that a container uses is not taken from it, and how much that is may be unknown.
        if resources.wants(old) != wanted and not shrinks and (what := resources.changed(has, wanted)):
            yield container, spec, what


def _runs(container: Container) -> bool:
    reported = container.record
    return container.state == "running" and reported is not None and reported.state == "CONTAINER_RUNNING"


def _says_pending(m: Moment) -> bool:
    now = m.status
    condition = now.condition("PodResizePending") if now is not None else None
    return now is not None and (condition is not None or now.resize in {"Infeasible", "Deferred"})


_CALLED_OFF: Pattern = TERMINATION_ASKED.either(status().where(_says_pending), _UPDATE_FAILED, pod_set())


@contract("RESIZE-01", on=pod_set(), needs=(CRI, PODS, STATUS), versions=_IN_PLACE, gate=resources.GATE)
def container_is_resized_while_it_runs(m: Moment) -> Iterator[Finding]:
    """A container whose CPU changes, or that gets more memory, is updated while it runs and is not
    stopped.
    """
    for container, spec, what in _resized(m):
        if resources.restarts(spec, what):
            continue
        yield answered(
            by=_UPDATE.where(about(container)),
            not_before=call("StopContainer").where(about(container)),
            within=REACTION,
            unless=_CALLED_OFF,
            text=f"{container.name} is given other resources",
        )


@contract("RESIZE-03", on=pod_set(), needs=(CRI, PODS, STATUS), versions=_IN_PLACE, gate=resources.GATE)
def container_is_made_anew_where_its_policy_says(m: Moment) -> Iterator[Finding]:
    """A container is stopped for its resize, and made again at once, where its resize policy says so."""
    for container, spec, what in _resized(m):
        stopped, changes = call("StopContainer", "ExecSync"), _UPDATE
        anew = resources.restarts(spec, what)
        yield answered(
            by=(stopped if anew else changes).where(about(container)),
            not_before=(changes if anew else stopped).where(about(container)),
            within=REACTION,
            unless=_CALLED_OFF,
            text=f"{container.name} is {'stopped, to be made anew' if anew else 'changed as it runs'}",
        )


class _Anew(Note):
    """The containers that are stopped to be resized."""

    names: dict[str, resources.Caps] = {}


@observer(on=pod_set())
def _(m: Moment) -> None:
    for container, spec, what in _resized(m):
        if resources.restarts(spec, what) and m.pod is not None:
            m.pod.note(_Anew).names[container.id] = resources.wants(spec)


@container_is_made_anew_where_its_policy_says.clause("again", on=done("StopContainer"))
def resized_container_comes_again(m: Moment, pod: Pod, container: Container) -> Findings:
    """A container that was stopped for its resize is made again in the same sync, with the new resources."""
    if container.id not in pod.note(_Anew).names or not to_run(m):
        return None
    wanted = pod.note(_Anew).names.pop(container.id)
    return answered(
        by=call("CreateContainer").where(_makes(container.name, wanted)),
        within=REACTION,
        unless=TERMINATION_ASKED.either(failed("ImageStatus", "PullImage"), pod_set()),
        text=f"{container.name} is made again, with other resources",
    )


def _makes(name: str, wanted: resources.Caps) -> Predicate:
    def makes(m: Moment) -> bool:
        config = m.request(CreateContainerRequest).config
        given = config.linux.resources
        return config.metadata.name == name and given is not None and resources.caps_of(given) == wanted

    return makes


@contract("RESIZE-02", on=pod_set(), needs=(CRI, PODS, STATUS), versions=_IN_PLACE, gate=resources.GATE)
def impossible_resize_is_refused(m: Moment, manifest: Manifest) -> Findings:
    """A resize that no node could grant is called infeasible, and one that is called pending is not made."""
    if not resources.asks_the_impossible(manifest.spec) or not any(_resized(m)):
        return None
    return answered(
        by=status().where(_says_infeasible),
        not_before=call("UpdateContainerResources", "StopContainer"),
        within=REACTION,
        unless=TERMINATION_ASKED,
        text="the resize is called infeasible",
    )


judges_waits(impossible_resize_is_refused)


def _says_infeasible(m: Moment) -> bool:
    now = m.status
    condition = now.condition("PodResizePending") if now is not None else None
    reason = condition.reason if condition is not None else now.resize if now is not None else ""
    return reason == "Infeasible"


@impossible_resize_is_refused.clause("pending", on=_UPDATE)
def pending_resize_is_not_made(m: Moment, pod: Pod, container: Container) -> Findings:
    """Resources that are pending by the pod's own status are not given to its containers."""
    if resources.pending(pod) != "Infeasible" or worker_is_busy(pod):
        return None
    spec, has = container.spec, resources.has_now(container)
    if spec is None or has is None or pod.spec_changed_t is None or pod.status_t is None:
        return None
    if pod.spec_changed_t > pod.status_t:
        return None
    new = resources.updated(m)
    grows = any(has.grows_to(new, what) for what in resources.changed(has, new))
    return broken(f"{container.name} is given what is infeasible", pod.status_seq) if grows else None


@impossible_resize_is_refused.clause("retried", on=deleted())
def deferred_resize_is_tried_again(m: Moment) -> Iterator[Finding]:
    """A resize that is deferred is made once another pod has gone that took as much as was lacking."""
    gone = m.pod
    if gone is None or gone.spec is None or gone.static:
        return
    freed = _asked(gone.spec)
    for pod in list(m.world.pods.values()):
        if pod is gone or resources.pending(pod) != "Deferred" or pod.spec is None:
            continue
        if pod.termination is not None:
            continue
        lack = [want - have for want, have in zip(_asked(pod.spec), _had(pod), strict=True)]
        if all(free >= more for free, more in zip(freed, lack, strict=True)):
            yield answered(
                by=call("UpdateContainerResources", "StopContainer").where(of(pod)),
                within=RESYNC,
                unless=TERMINATION_ASKED.either(pod_set(), _UPDATE_FAILED),
                whole_node=True,
                text=f"{pod.name} is resized, for which there is room now",
            )


def _asked(spec: PodSpec) -> tuple[int, int]:
    """The CPU and the memory that a pod's containers request together."""
    every = [resources.wants(one) for one in spec.containers]
    return sum(one.shares for one in every), sum(one.memory for one in every)


def _had(pod: Pod) -> tuple[int, int]:
    """The CPU and the memory that a pod's containers have together."""
    newest = [pod.newest(one.name) for one in pod.spec.containers] if pod.spec else []
    every = [has for one in newest if one is not None and (has := resources.has_now(one)) is not None]
    return sum(one.shares for one in every), sum(one.memory for one in every)


@contract("RESIZE-05", on=done("ContainerStats"), needs=(CRI, PODS), versions=_IN_PLACE, gate=resources.GATE)
def memory_in_use_is_not_taken(m: Moment, container: Container) -> Findings:
    """A memory limit below what the container uses is not set, however often that is tried."""
    pod, reported = m.pod, m.response(ContainerStatsReply).stats.memory
    used = (
        reported.working_set_bytes.value
        if reported is not None and reported.working_set_bytes is not None
        else 0
    )
    spec = container.spec
    if pod is None or spec is None or not to_run(m) or not used:
        return None
    has, wanted = resources.has_now(container), resources.wants(spec)
    if has is None or not wanted.memory or wanted.memory >= min(has.memory or used, used):
        return None
    return answered(
        by=call("ContainerStats").where(about(container)),
        not_before=_UPDATE.where(about(container)).where(_sets_memory),
        unless=TERMINATION_ASKED.either(pod_set()),
        text=f"the memory of {container.name} is looked at again before any of it is taken",
    )


def _sets_memory(m: Moment) -> bool:
    container = m.container
    has = resources.has_now(container) if container is not None else None
    return has is not None and resources.MEMORY in resources.changed(has, resources.updated(m))


class _Pending(Note):
    """What a pod's containers had when its resize was first called pending."""

    seq: int = 0
    reported: dict[str, resources.Caps] = {}


@contract(
    "RESIZE-07",
    on=call("CreateContainer"),
    needs=(CRI, PODS, STATUS),
    versions=_IN_PLACE,
    gate=resources.GATE,
)
def what_is_allocated_counts(m: Moment, pod: Pod) -> Findings:
    """As long as a resize is pending, containers are made with the resources that they had."""
    config = m.request(CreateContainerRequest).config
    old = pod.newest(config.metadata.name)
    spec = pod.container_spec(config.metadata.name)
    if old is None or spec is None or config.linux.resources is None or not resources.pending(pod):
        return None
    was, made = pod.note(_Pending).reported.get(spec.name), resources.caps_of(config.linux.resources)
    if was is None or was == resources.wants(spec):
        return None
    if made == resources.wants(spec):
        return broken(f"{spec.name} is made with resources that are pending", pod.status_seq)
    return KEPT


@observer(on=status().where(_says_pending))
def _(_: Moment, pod: Pod, spec: PodSpec) -> None:
    if pod.note(_Pending).seq == pod.spec_changed_seq:
        return
    noted = pod.note(_Pending)
    newest = {one.name: pod.newest(one.name) for one in spec.containers}
    noted.seq = pod.spec_changed_seq
    noted.reported = {
        name: has for name, one in newest.items() if one is not None and (has := resources.reported_caps(one))
    }
