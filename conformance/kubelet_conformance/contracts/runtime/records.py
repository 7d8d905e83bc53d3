"""CRI: what the runtime reports of its sandboxes and containers: as requested, and consistent over time."""

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import asdict

from kubelet_conformance.contract import Container, Finding, Moment, Note, Sandbox
from kubelet_conformance.contract.applicability import since
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, observer
from kubelet_conformance.contract.patterns import done, exited, failed, happened, newly_reported
from kubelet_conformance.contracts.facts.pod import FAULT
from kubelet_conformance.contracts.runtime.expected import judges_expectations
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.labels import shown
from kubelet_conformance.trace.format.records import Call, Fault
from kubelet_conformance.trace.world.readings import ReportedContainer, ReportedSandbox

ID_SCHEME = "sha256:"
LEAST_NANOSECONDS = 10**17
"""1973: a smaller number is a time in a coarser unit."""


def newly_reported_records(m: Moment) -> Sequence[ReportedContainer | ReportedSandbox]:
    """What the runtime newly reports here: of containers, or else of sandboxes."""
    return m.containers_reported or m.sandboxes_reported


class _Birth(Note):
    """The creation time first reported for a record."""

    created_at: int = 0
    seq: int = 0


def _elder(known: Container | Sandbox) -> Container | Sandbox | None:
    """The container or sandbox before it of the same pod and, for containers, of the same name."""
    pod = known.pod
    if pod is None:
        return None
    name = getattr(known, "name", None)
    records: list[Container] | list[Sandbox] = pod.sandboxes if name is None else pod.containers.get(name, [])
    elders = [one for one in records[:-1] if one is not known and one.born]
    return elders[-1] if elders and records[-1] is known else None


@contract("CRI-10", on=newly_reported("container", "sandbox"))
def created_at_is_nanoseconds_and_orders_attempts(m: Moment) -> Iterator[Finding]:
    """Every record has created_at in nanoseconds, the same whenever it is read.

    A later attempt has a later created_at.
    """
    for one in newly_reported_records(m):
        record, known = one.record, one.known
        if record.created_at < LEAST_NANOSECONDS:
            yield broken(f"created_at of {record.id[:12]} is {record.created_at}, no nanoseconds since 1970")
            continue
        if known is None:
            continue
        birth = known.note(_Birth)
        if not birth.created_at:
            birth.created_at, birth.seq = record.created_at, m.seq
            elder = _elder(known)
            before = elder.note(_Birth) if elder and known.born else None
            if before and before.created_at >= record.created_at:
                yield broken(
                    f"{record.id[:12]} was created after the one before it, and created_at says otherwise",
                    before.seq,
                )
                continue
        elif birth.created_at != record.created_at:
            yield broken(
                f"created_at of {record.id[:12]} was {birth.created_at} and is {record.created_at}", birth.seq
            )
            continue
        yield KEPT


def _difference(what: str, asked: Mapping[str, object], said: Mapping[str, object]) -> str | None:
    if asked == said:
        return None
    keys = sorted(key for key in {*asked, *said} if asked.get(key) != said.get(key))
    key = keys[0]
    return f"{what} {key} was {shown(asked, key)} and is {shown(said, key)}"


@contract("CRI-18", on=newly_reported("container", "sandbox"))
def labels_and_annotations_come_back_unchanged(m: Moment) -> Iterator[Finding]:
    """Labels and annotations of a sandbox and of a container are returned exactly as they were given."""
    for one in newly_reported_records(m):
        record, known = one.record, one.known
        given = None if known is None else known.config or known.record
        if known is None or given is None:
            continue
        wrong = _difference("label", given.labels, record.labels)
        wrong = wrong or _difference("annotation", given.annotations, record.annotations)
        yield broken(f"{record.id[:12]}: {wrong}", _made(known)) if wrong else KEPT


def _made(known: Container | Sandbox) -> Call | None:
    """The call that made it."""
    return known.create if isinstance(known, Container) else known.run


def _lacks(record: bodies.ContainerRecord) -> list[str]:
    if record.id and record.created_at and record.image_ref and record.image.image and record.metadata.name:
        return []
    lacks = [name for name in ("id", "created_at", "image_ref") if not getattr(record, name)]
    lacks += [] if record.image.image else ["image"]
    return lacks if record.metadata.name else [*lacks, "metadata.name"]


@contract("CRI-34", on=newly_reported("container"))
def records_are_whole_and_of_what_was_asked(m: Moment) -> Iterator[Finding]:
    """Every record has an id, the metadata it was made with and created_at, a container image and image_ref.

    A status has the id that was asked for.
    """
    asked = m.container.id if m.container else None
    for one in m.containers_reported:
        record, known = one.record, one.known
        lacks = _lacks(record)
        if lacks:
            yield broken(f"container record {record.id[:12]} lacks {', '.join(lacks)}")
        elif asked is not None and record.id != asked:
            yield broken(f"the status asked for is of {asked[:12]}, the answer of {record.id[:12]}")
        elif known is not None and known.config and known.config.metadata != record.metadata:
            given, said = known.config.metadata, record.metadata
            yield broken(
                f"{record.id[:12]} was created as {given.name} attempt {given.attempt}, "
                f"and is {said.name} attempt {said.attempt}",
                _made(known),
            )
        else:
            yield KEPT


@records_are_whole_and_of_what_was_asked.clause("sandbox", on=newly_reported("sandbox"))
def sandbox_records_are_whole(m: Moment) -> Iterator[Finding]:
    """Every sandbox record has an id, the metadata it was run with and created_at."""
    asked = m.sandbox.id if m.sandbox else None
    for one in m.sandboxes_reported:
        record, known = one.record, one.known
        meta = record.metadata
        if not (record.id and record.created_at and meta.name and meta.namespace and meta.uid):
            yield broken(f"sandbox record {record.id[:12]} lacks its id, metadata or created_at")
        elif asked is not None and record.id != asked:
            yield broken(f"the status asked for is of {asked[:12]}, the answer of {record.id[:12]}")
        elif known is not None and known.config and known.config.metadata != meta:
            wrong = _difference("metadata", asdict(known.config.metadata), asdict(meta))
            yield broken(f"sandbox {record.id[:12]}: {wrong}", _made(known))
        else:
            yield KEPT


@records_are_whole_and_of_what_was_asked.clause("image", on=newly_reported("container"))
def image_ref_is_of_the_image_asked_for(m: Moment) -> Iterator[Finding]:
    """An image_ref that is an image id is the id that the container was created with."""
    for one in m.containers_reported:
        config = one.known.config if one.known else None
        said, asked = one.record.image_ref, config.image.image if config else ""
        if one.known is None or not (said.startswith(ID_SCHEME) and asked.startswith(ID_SCHEME)):
            continue
        if said == asked:
            yield KEPT
        else:
            yield broken(f"{one.known.name} was created from {asked}, image_ref is {said}", _made(one.known))


@records_are_whole_and_of_what_was_asked.clause("status", on=done("ContainerStatus", "PodSandboxStatus"))
def answer_has_a_status(m: Moment) -> Findings:
    """An answer to ContainerStatus or PodSandboxStatus contains a status."""
    if m.call.rpc == "ContainerStatus":
        status: object = m.response(bodies.ContainerStatusReply).status
    else:
        status = m.response(bodies.PodSandboxStatusReply).status
    return None if status is not None else broken(f"{m.call.rpc} is answered without a status")


@contract("CRI-19", on=newly_reported("container"))
def container_states_never_go_back(m: Moment) -> Iterator[Finding]:
    """A container goes from CREATED to RUNNING to EXITED and never back."""
    for one in m.containers_reported:
        known, state = one.known, one.record.state
        if known is None or one.state not in {"running", "exited"}:
            continue
        since_seq = known.exit.seq if known.exit else known.started_seq
        if one.state == "exited" and known.started_seq and state != "CONTAINER_EXITED":
            yield broken(f"{known.name} {known.id[:12]} had exited and is {state} again", since_seq)
        elif one.state == "running" and state == "CONTAINER_CREATED":
            yield broken(f"{known.name} {known.id[:12]} had been started and is {state}", since_seq)
        else:
            yield KEPT


judges_expectations(container_states_never_go_back)


@contract("CRI-14", on=newly_reported("container"))
def stopped_container_has_exited(m: Moment) -> Iterator[Finding]:
    """Once StopContainer was answered without an error, the container is EXITED and has finished_at."""
    for one in m.containers_reported:
        known, record = one.known, one.record
        if known is None or not known.started_seq or not known.stops:
            continue
        stop = next((s for s in known.stops if s.succeeded and s.end_seq < m.call.seq), None)
        if stop is None:
            continue
        if record.state != "CONTAINER_EXITED":
            yield broken(f"{known.name} was stopped and is {record.state}", stop.end_seq)
        elif one.whole and not record.finished_at:
            yield broken(f"{known.name} was stopped and has no finished_at", stop.end_seq)
        else:
            yield KEPT


def _wrong_end(one: ReportedContainer) -> str | None:
    """What is wrong with the exit data of an exited container."""
    record, known = one.record, one.known
    if not record.finished_at or (record.started_at and record.finished_at < record.started_at):
        return f"finished_at is {record.finished_at}, started_at {record.started_at}"
    ended = known.exit if known else None
    if ended is not None and ended.code is not None and ended.code != record.exit_code:
        return f"exit_code is {record.exit_code}, it exited with {ended.code}"
    oom = ended is not None and ended.reason == "OOMKilled"
    if oom and record.reason != "OOMKilled":
        return f"reason is {record.reason!r} after an out-of-memory kill"
    if record.reason == "Completed" and record.exit_code != 0:
        return f"reason is Completed with exit_code {record.exit_code}"
    if record.reason == "Error" and record.exit_code == 0:
        return "reason is Error with exit_code 0"
    return None


@contract("CRI-16", on=newly_reported("container"))
def exit_data_is_whole_and_true(m: Moment) -> Iterator[Finding]:
    """The status of an exited container has finished_at and the exit code the process ended with.

    Its reason is OOMKilled after an out-of-memory kill; Completed goes with 0 and Error with another code.
    """
    for one in m.containers_reported:
        known, record = one.known, one.record
        if one.whole and record.state == "CONTAINER_EXITED" and (known is None or known.started_seq):
            wrong = _wrong_end(one)
            because = known.exit.seq if known and known.exit else None
            yield broken(f"container {record.id[:12]}: {wrong}", because) if wrong else KEPT


@exit_data_is_whole_and_true.clause("exit", on=happened("exited").either(exited()))
def exit_agrees_with_status(m: Moment, container: Container) -> Findings:
    """An exit reported after a status has the same code."""
    code = getattr(m.record, "exit_code", None)
    if container.exit is None or container.exit.code is None or code is None:
        return None
    if code != container.exit.code:
        return broken(f"{container.name} exits with {code}, before it was {container.exit.code}")
    return KEPT


class _Times(Note):
    """When a container has started and ended, as first read, with the seqs of these readings."""

    first: dict[str, tuple[int, int]] = {}


@exit_data_is_whole_and_true.clause("times", on=newly_reported("container"))
def times_stay(m: Moment) -> Iterator[Finding]:
    """When a container has started and ended is the same whenever it is read."""
    for one in m.containers_reported:
        if one.known is None or not one.whole:
            continue
        first = one.known.note(_Times).first
        for what in ("started_at", "finished_at"):
            said = getattr(one.record, what)
            was, seq = first.setdefault(what, (said, m.seq)) if said else (said, m.seq)
            if said != was:
                yield broken(f"{what} of {one.known.name} was {was} and is {said}", seq)


judges_expectations(exit_data_is_whole_and_true)


class _Stood(Note):
    """Which answer first said that a sandbox is not ready."""

    notready_seq: int = 0


@contract("CRI-20", on=newly_reported("sandbox"))
def notready_is_final(m: Moment) -> Iterator[Finding]:
    """A sandbox that was reported NOTREADY is never READY again."""
    for one in m.sandboxes_reported:
        if one.known is None:
            continue
        stood = one.known.note(_Stood)
        ready = one.record.state != "SANDBOX_NOTREADY"
        if stood.notready_seq and stood.notready_seq < m.call.seq:
            reported_before = stood.notready_seq
            yield broken(f"sandbox {one.record.id[:12]} is READY again", reported_before) if ready else KEPT
        elif not ready and not stood.notready_seq:
            stood.notready_seq = m.seq


class _Addresses(Note):
    """Until when a fault gave wrong addresses to sandboxes."""

    broken_until: float = -math.inf


def _made_t(sandbox: Sandbox) -> float:
    """When it was made, or is to be made by a call that is not answered; never, if no call shows it."""
    if sandbox.ready_t is not None:
        return sandbox.ready_t
    return sandbox.run.t if sandbox.run is not None else math.inf


@contract("CRI-21", on=newly_reported("sandbox"))
def ready_sandbox_has_its_address(m: Moment) -> Iterator[Finding]:
    """A READY sandbox with a network of its own has an IP, if the runtime reports a network, and keeps it."""
    broken_until = m.node.note(_Addresses).broken_until
    for one in m.sandboxes_reported:
        record, known = one.record, one.known
        if known is not None and _made_t(known) <= broken_until:
            continue
        if not one.whole or known is None or known.config is None or record.state != "SANDBOX_READY":
            continue
        mode = known.config.linux.security_context.namespace_options.network
        if mode != "POD" or record.network is None:
            continue
        if not record.network.ip:
            yield broken(f"sandbox {record.id[:12]} is READY and has no IP", _made(known))
        elif known.ip and known.ip != record.network.ip:
            yield broken(f"sandbox {record.id[:12]} had IP {known.ip} and has {record.network.ip}")
        else:
            yield KEPT


@observer(on=FAULT)
def _(m: Moment) -> None:
    if isinstance(m.record, Fault) and "addresses" in m.record.what:
        m.node.note(_Addresses).broken_until = m.t if m.record.is_healed else math.inf


@contract("CRI-22", on=newly_reported("sandbox"))
def namespace_modes_come_back(m: Moment) -> Iterator[Finding]:
    """PodSandboxStatus gives back the namespace modes the sandbox was run with."""
    for one in m.sandboxes_reported:
        known = one.known
        if not one.whole or known is None or known.config is None:
            continue
        asked = known.config.linux.security_context.namespace_options
        said = one.record.linux.namespaces.options
        if (asked.network, asked.pid, asked.ipc) == (said.network, said.pid, said.ipc):
            yield KEPT
        else:
            yield broken(
                f"sandbox {known.id[:12]} was run with network {asked.network}, pid {asked.pid}, "
                f"ipc {asked.ipc}, and has {said.network}, {said.pid}, {said.ipc}",
                _made(known),
            )


@contract("CRI-39", on=newly_reported("container"), versions=since("1.30"))
def image_id_is_that_of_the_image_asked_for(m: Moment) -> Iterator[Finding]:
    """A container's image_id is the id of the image it was created from."""
    for one in m.containers_reported:
        known, record = one.known, one.record
        asked = known.config.image.image if known and known.config else ""
        if known is None or not asked.startswith(ID_SCHEME) or not record.image_id:
            continue
        if record.image_id != asked:
            yield broken(
                f"{known.name} was created from image {asked}, image_id is {record.image_id}", _made(known)
            )
        else:
            yield KEPT


@contract("CRI-35", on=newly_reported("sandbox"))
def runtime_handler_is_the_one_asked_for(m: Moment) -> Iterator[Finding]:
    """A sandbox that was run with a runtime handler reports that handler."""
    for one in m.sandboxes_reported:
        known = one.known
        if known is None or known.run is None:
            continue
        asked = known.run.request.view(bodies.RunPodSandboxRequest).runtime_handler
        if asked and asked != one.record.runtime_handler:
            yield broken(
                f"handler {asked!r} was asked for, the sandbox has {one.record.runtime_handler!r}",
                known.run.seq,
            )
        elif asked:
            yield KEPT


class _Handlers(Note):
    """The handlers that the runtime's last Status listed; empty if it listed none, so that they are
    unknown.
    """

    names: frozenset[str] = frozenset()


@runtime_handler_is_the_one_asked_for.clause(
    "unknown", on=done("RunPodSandbox").either(failed("RunPodSandbox"))
)
def unknown_handler_is_refused(m: Moment) -> Findings:
    """RunPodSandbox with a handler that Status does not list is an error."""
    asked, listed = m.request(bodies.RunPodSandboxRequest).runtime_handler, m.node.note(_Handlers).names
    if not asked or not listed or asked in listed:
        return None
    return KEPT if m.keys[0].startswith("failed") else broken(f"handler {asked!r} is none of the runtime's")


judges_expectations(runtime_handler_is_the_one_asked_for)


@observer(on=done("Status"))
def _listed_handlers(m: Moment) -> None:
    """Record the runtime handlers that Status lists."""
    if not m.reply.same:
        names = (handler.name for handler in m.response(bodies.StatusReply).runtime_handlers)
        m.node.note(_Handlers).names = frozenset(names)
