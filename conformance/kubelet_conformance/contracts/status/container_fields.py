"""CSTAT, the other fields of a container status: counts, images, readiness and reasons."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pod, PodStatus
from kubelet_conformance.contract.applicability import STATUS, ByVersion
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, kept_if, observer
from kubelet_conformance.contract.patterns import call, done, read_as, status
from kubelet_conformance.contracts.facts.container import asked
from kubelet_conformance.contracts.facts.static_pod import is_forgotten, is_without_a_past
from kubelet_conformance.contracts.facts.status import (
    END_SHOWN,
    Entry,
    carries_on,
    is_held_up,
    is_late,
    is_lost,
    is_reset,
    kubelets_entries,
    record_with,
)
from kubelet_conformance.contracts.sandbox.config import never_updated
from kubelet_conformance.contracts.status.container_status import NEEDS
from kubelet_conformance.trace.format.bodies import CreateContainerReply
from kubelet_conformance.trace.format.labels import Annotation
from kubelet_conformance.trace.format.records import Status

STARTED_OF_INITS = ByVersion({"<=1.26": False, ">=1.28": True})
"""Whether init containers carry `started`."""


class _Counted(Note):
    """The restart counts of the last status, by name, and its seq; those of removed records, by id.

    `created` says how many containers of each name were created for the pod, `lost` which the runtime has
    lost track of, and `of_lost` what is found of these in this status.
    """

    counts: dict[str, int] = {}
    created: dict[str, int] = {}
    removed: dict[str, str] = {}
    lost: set[str] = set()
    of_lost: list[Finding] = []
    seq: int = 0


@contract("CSTAT-07", on=status(), needs=NEEDS)
def restart_count_is_that_of_the_record(m: Moment, pod: Pod) -> Iterator[Finding]:
    """RestartCount is the number that the newest record carries in its annotation.

    Without a record it does not fall. From 1.36 on it never falls, and the restarts whose records are gone
    may count too.
    """
    counted = pod.note(_Counted)
    for entry in kubelets_entries(m):
        said, container = entry.status, entry.container
        before, seq = counted.counts.get(said.name, 0), counted.seq
        counted.counts[said.name] = said.restart_count
        record = container.record if container else None
        noted = _number(container) if container else counted.removed.get(said.runtime_id, "")
        if not noted.isdecimal():
            is_new = is_forgotten(m, pod) or is_without_a_past(pod, said.name)
            if said.restart_count < before and not is_new:
                yield broken(f"restartCount of {said.name} falls from {before} to {said.restart_count}", seq)
            continue
        # A container that is lost while it runs counts as restarted before there is a new record.
        unknown = record is not None and record.state == "CONTAINER_UNKNOWN"
        lost = unknown or (said.name in counted.lost and is_lost(said))
        counts = _counts(m, pod, entry, int(noted), before)
        is_one_more = said.restart_count - 1 in counts and (lost or is_reset(m, said))
        made = container.create.seq if container and container.create else None
        text = f"restartCount of {said.name} is {said.restart_count}, its record says {noted}"
        found = kept_if(said.restart_count in counts or is_one_more, text, made)
        if said.name in counted.lost:
            counted.of_lost.append(found)
        else:
            yield found
    counted.seq = m.seq


@restart_count_is_that_of_the_record.clause("lost", on=status())
def lost_one_counts_once(_: Moment, pod: Pod) -> Iterator[Finding]:
    """A container that the runtime had lost track of counts like any other, once it is found or replaced."""
    counted = pod.note(_Counted)
    yield from counted.of_lost
    counted.of_lost.clear()


@observer(on=read_as("unknown"))
def _is_lost(_: Moment, pod: Pod, container: Container) -> None:
    pod.note(_Counted).lost.add(container.name)


@observer(on=done("CreateContainer"))
def _one_more(m: Moment, pod: Pod) -> None:
    """Count the containers of each name that were created for the pod."""
    created, name = pod.note(_Counted).created, asked(m).metadata.name
    created[name] = created.get(name, 0) + 1


def _counts(m: Moment, pod: Pod, entry: Entry, noted: int, before: int) -> range:
    """The restart counts that a status may say, by the number in the record and the count before."""
    if not carries_on(m):
        return range(noted, noted + 1)
    if is_forgotten(m, pod):
        before = 0
    elif entry.before is not None and is_lost(entry.before):
        before -= 1  # It may be there again.
    least = max(noted, before)
    # Of a pod that was there before the trace any number may have been created.
    created = pod.note(_Counted).created.get(entry.status.name, 0)
    return range(least, max(least + 1, created if pod.born else entry.status.restart_count + 1))


def _number(container: Container) -> str:
    """The restart count in a record's annotation; empty where it has none."""
    config = container.config or container.record
    return config.annotations.get(Annotation.RESTART_COUNT, "") if config else ""


_REMOVED_REMEMBERED = 16


@observer(on=call("RemoveContainer"))
def _number_goes(m: Moment) -> None:
    """The status of the sync that removes a record comes later, and shows that record."""
    record = m.container.record if m.container is not None else None
    is_lost = record is not None and record.state == "CONTAINER_UNKNOWN"
    if m.pod is not None and m.container is not None and not is_lost:
        removed = m.pod.note(_Counted).removed
        removed[m.container.id] = _number(m.container)
        if len(removed) > _REMOVED_REMEMBERED:
            del removed[next(iter(removed))]


@contract("CSTAT-08", on=status(), needs=NEEDS)
def image_is_that_of_the_record(m: Moment) -> Iterator[Finding]:
    """The image, imageID and containerID are the runtime's: image name, image_ref, and id after a scheme.

    A container without a record has the image of its spec and neither id.
    """
    for entry in kubelets_entries(m):
        said, container = entry.status, entry.container
        record = container.record if container else None
        if record is not None:
            scheme = said.container_id.partition("://")[0]
            right = said.image == record.image.image and said.image_id.endswith(record.image_ref)
            yield kept_if(
                bool(right and scheme),
                f"{said.name} has image {said.image} ({said.image_id}), the runtime says "
                f"{record.image.image} ({record.image_ref})",
            )
        elif entry.without_record and said.state.waiting and entry.spec and m.pod and never_updated(m.pod):
            right = said.image == entry.spec.image and not said.image_id
            yield kept_if(
                bool(right), f"{said.name} has no record and image {said.image}, expected {entry.spec.image}"
            )


class _Made(Note):
    """The ids of containers that were created for the pod; the oldest are forgotten."""

    ids: dict[str, None] = {}


_MADE_REMEMBERED = 1_000


@observer(on=done("CreateContainer"))
def _made(m: Moment, pod: Pod) -> None:
    ids = pod.note(_Made).ids
    ids[m.response(CreateContainerReply).container_id] = None
    if len(ids) > _MADE_REMEMBERED:
        del ids[next(iter(ids))]


@observer(on=call("RemoveContainer"))
def _removed(_: Moment, pod: Pod, container: Container) -> None:
    """The kubelet may not know of its creation, and the status of the sync that removes it comes later."""
    pod.note(_Made).ids[container.id] = None


@image_is_that_of_the_record.clause("id", on=status())
def ids_are_of_containers_of_the_pod(m: Moment, pod: Pod) -> Iterator[Finding]:
    """Every containerID in a status is of a container that was created for the pod."""
    if not pod.born:
        return
    ids = pod.note(_Made).ids
    for entry in kubelets_entries(m) if not is_held_up(m) else ():
        said = entry.status
        named = [said.container_id]
        for end in (said.state.terminated, said.last_state.terminated):
            if end is not None and end.container_id not in named:
                named.append(end.container_id)
        for full in named:
            if full:
                one_id = full.rpartition("://")[2]
                found = m.world.containers.get(one_id)
                if found is not None and found.pod is pod:
                    ids[one_id] = None  # It may come of a creation whose answer was lost.
                yield kept_if(
                    one_id in ids, f"{said.name} has containerID {full}, which was not created for the pod"
                )


def _no_probes(entry: Entry) -> bool:
    spec = entry.spec
    return spec is not None and spec.startup_probe is None and spec.readiness_probe is None


@contract("CSTAT-09", on=status(), needs=NEEDS, versions=STARTED_OF_INITS)
def started_is_running_past_its_startup_probe(m: Moment) -> Iterator[Finding]:
    """A running container without a startup probe is started, one that does not run is not.

    Init containers carry it from 1.28 on, ephemeral ones never.
    """
    lacking = {"ephemeral"} if STARTED_OF_INITS.at(m.kubernetes) else {"ephemeral", "init", "sidecar"}
    for entry in kubelets_entries(m):
        said = entry.status
        if entry.spec is None:
            continue
        if entry.kind in lacking:
            absent = said.started is None
            yield KEPT if absent else broken(f"{entry.kind} container {said.name} has started")
        elif said.started is None:
            yield broken(f"started of {said.name} is missing")
        elif said.state.running is None:
            if said.started and entry.spec.startup_probe is not None and is_late(entry.before, said):
                continue
            yield broken(f"{said.name} does not run and is started") if said.started else KEPT
        elif entry.spec.startup_probe is None:
            yield KEPT if said.started else broken(f"{said.name} runs and is not started")


@contract("CSTAT-10", on=status(), needs=NEEDS)
def ready_follows_the_state(m: Moment) -> Iterator[Finding]:
    """A container that does not run is not ready; an init container is ready exactly when it ended with 0.

    A running container without readiness and startup probes is ready.
    """
    for entry in kubelets_entries(m):
        said, state = entry.status, entry.status.state
        if entry.spec is None or (entry.kind == "init" and state.waiting is not None):
            continue
        if entry.kind == "init":
            right = state.terminated is not None and state.terminated.exit_code == 0
        elif entry.kind == "ephemeral" or state.running is None:
            right = False
            if said.ready and entry.spec.readiness_probe is not None and is_late(entry.before, said):
                continue
        elif _no_probes(entry):
            right = True
        else:
            continue
        yield KEPT if said.ready == right else broken(f"ready of {said.name} is {said.ready}")


@ready_follows_the_state.clause("init-waits", on=status())
def waiting_init_is_not_ready(m: Moment) -> Iterator[Finding]:
    """An init container that waits is not ready, though it was before it had to run again."""
    for entry in kubelets_entries(m):
        if entry.kind == "init" and entry.spec is not None and entry.status.state.waiting is not None:
            yield kept_if(not entry.status.ready, f"{entry.status.name} waits and is ready")


@contract("CSTAT-11", on=END_SHOWN, needs=NEEDS)
def end_reason_is_the_runtimes(m: Moment) -> Iterator[Finding]:
    """The reason of a terminated state is the one the runtime gave."""
    for entry in kubelets_entries(m):
        ended = entry.status.state.terminated
        of_state = record_with(m, ended.runtime_id) if ended else None
        for said, container in ((ended, of_state), (entry.status.last_state.terminated, entry.last)):
            record = container.record if container else None
            if said is None or record is None or record.state != "CONTAINER_EXITED":
                continue
            if said.reason == record.reason:
                yield KEPT
            else:
                yield broken(f"{entry.status.name} ended with reason {said.reason!r}, not {record.reason!r}")


@contract("CSTAT-12", on=status(), needs=(STATUS,), versions=ByVersion({"<=1.32": True}))
def resources_need_the_resize_feature(m: Moment) -> Findings:
    """Without in-place resize no container status has resources or allocatedResources."""
    if m.header.feature_gates.get("InPlacePodVerticalScaling", False) or type(m.record) is not Status:
        return None
    raw = bytes(m.record.status)
    if b'esources":' not in raw:  # The end of both names: most statuses are searched but once.
        return KEPT
    found = [name for name in (b'"allocatedResources":', b'"resources":') if name in raw]
    return broken(f"a container status has {found[0].decode()}") if found else KEPT


@contract("CSTAT-13", on=status(), needs=NEEDS)
def only_containers_of_the_spec_have_a_status(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A status names the containers of the spec, each in its list and once, and no others."""
    spec = pod.spec
    if spec is None or not kubelets_entries(m):
        return None
    for statuses, containers in (
        (status.init_container_statuses, spec.init_containers),
        (status.container_statuses, spec.containers),
        (status.ephemeral_container_statuses, spec.ephemeral_containers),
    ):
        if not statuses:
            continue
        named, wanted = {s.name for s in statuses}, {c.name for c in containers or ()}
        if not named <= wanted:
            return broken(f"{min(named - wanted)} has a status and is not in the spec")
        if len(named) != len(statuses):
            return broken("a container has two statuses")
    return KEPT
