"""CRI: the runtime's lists: they match their filter, have every record that exists, and no removed one."""

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from msgspec import field

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, Sandbox
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, observer
from kubelet_conformance.contract.patterns import done, failed, listed_all, newly_reported
from kubelet_conformance.contracts.runtime.calls import refusal
from kubelet_conformance.contracts.runtime.expected import judges_expectations
from kubelet_conformance.contracts.runtime.records import newly_reported_records
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.labels import Label

OUTSIDE = Pattern(frozenset({"fault", "kubelet:ended", "kubelet:killed", "kubelet:stopped"}))
"""What may take records away, or leave some that no answered call explains."""

_REMOVED_REMEMBERED = 10_000
_REMOVALS = frozenset({"RemoveContainer", "RemovePodSandbox"})
_OF_EVERYTHING = listed_all("ListContainers", "ListPodSandbox").keys


def _listed(m: Moment) -> Sequence[bodies.ContainerRecord | bodies.SandboxRecord]:
    if m.call.rpc == "ListContainers":
        return m.response(bodies.ListContainersReply).containers
    return m.response(bodies.ListPodSandboxReply).items


def _request(m: Moment) -> bodies.ListContainersRequest | bodies.ListPodSandboxRequest:
    if m.call.rpc == "ListContainers":
        return m.request(bodies.ListContainersRequest)
    return m.request(bodies.ListPodSandboxRequest)


def _misfit(
    record: bodies.ContainerRecord | bodies.SandboxRecord,
    asked: bodies.ContainerFilter | bodies.SandboxFilter,
) -> str | None:
    """Which part of the filter a record does not meet."""
    if asked.id and record.id != asked.id:
        return f"id {asked.id[:12]}"
    if asked.state is not None:
        zero = "CONTAINER_CREATED" if isinstance(record, bodies.ContainerRecord) else "SANDBOX_READY"
        if record.state != (asked.state.state or zero):
            return f"state {asked.state.state or zero}"
    for key, value in asked.label_selector.items():
        if record.labels.get(key) != value:
            return f"label {key}={value}"
    # isinstance() is slow where it says no: these are msgspec's structs.
    sandbox = asked.pod_sandbox_id if type(asked) is bodies.ContainerFilter else ""
    if sandbox and type(record) is bodies.ContainerRecord and record.pod_sandbox_id != sandbox:
        return f"sandbox {sandbox[:12]}"
    return None


def _existed(one: Container | Sandbox, m: Moment) -> bool:
    """The record existed from the begin of the listing to its end."""
    made_t = getattr(one, "created_t", None) or getattr(one, "ready_t", None)
    if one.note(_MayBeGone).is_so or _being_removed(one):
        return False
    return made_t is None or made_t < m.call.t


class _MayBeGone(Note):
    """A removal of it failed, and may have taken place all the same."""

    is_so: bool = False


def _being_removed(one: Container | Sandbox) -> bool:
    """A removal of it, or of its sandbox, has begun and not been answered."""
    pod, sandbox = one.pod, getattr(one, "sandbox", None)
    ids = {one.id, sandbox.id if sandbox is not None else one.id}
    removals = [c for c in pod.calls_open.values() if c.rpc in _REMOVALS] if pod is not None else []
    return any(
        call.request.view(bodies.ContainerRequest).container_id in ids
        if call.rpc == "RemoveContainer"
        else call.request.view(bodies.SandboxRequest).pod_sandbox_id in ids
        for call in removals
    )


def _of_pod(m: Moment, pod: Pod) -> Sequence[Container | Sandbox]:
    """What the pod has at the runtime."""
    if m.call.rpc == "ListContainers":
        return [c for c in pod.every_container() if c.state != "removed"]
    return [s for s in pod.sandboxes if s.state != "removed"]


def _asks_or_answers_anew(m: Moment) -> bool:
    """A reply like the last one obeys its filter like the last one, but may lack what was made since."""
    return not m.reply.same or bool(_request(m).filter.label_selector)


@contract("CRI-09", on=newly_reported("list").where(_asks_or_answers_anew))
def filters_are_obeyed(m: Moment) -> Findings:
    """A list holds the records that meet every part of its filter, each once, and no others."""
    records, request = _listed(m), _request(m)
    listed = {record.id for record in records}
    if len(listed) != len(records):
        return broken("a record is listed twice")
    if request.everything:
        return KEPT if records else None
    asked = request.filter
    for record in records:
        misfit = _misfit(record, asked)
        if misfit is not None:
            return broken(f"{record.id[:12]} is listed and does not meet {misfit}")
    pod = m.world.pods.get(asked.label_selector.get(Label.POD_UID, ""))
    if pod is None or len(asked.label_selector) > 1 or _narrowed(asked):
        return KEPT if records else None
    for one in _of_pod(m, pod):
        if one.id not in listed and one.born and _existed(one, m) and not _outside(m):
            return broken(f"{one.id[:12]} of the pod asked for is not listed")
    return KEPT if records else None


def _narrowed(asked: bodies.ContainerFilter | bodies.SandboxFilter) -> bool:
    in_sandbox = asked.pod_sandbox_id if type(asked) is bodies.ContainerFilter else ""
    return bool(asked.id or asked.state is not None or in_sandbox)


class _Outside:
    """Something outside the CRI changed the runtime's records after the last full list of this kind."""

    def __init__(self) -> None:
        self.happened = {"ListContainers": False, "ListPodSandbox": False}
        self.ever = False


def _outside(m: Moment) -> bool:
    return m.node.note(_Outside).happened[m.call.rpc]


@observer(on=OUTSIDE)
def _remember_outside(m: Moment) -> None:
    outside = m.node.note(_Outside)
    outside.happened = dict.fromkeys(outside.happened, True)
    outside.ever = True


judges_expectations(filters_are_obeyed)


def _asks_for_everything(m: Moment) -> bool:
    return not _OF_EVERYTHING.isdisjoint(m.keys)


_DEAD = ("CONTAINER_EXITED", "SANDBOX_NOTREADY")


@contract("CRI-17", on=newly_reported("list").where(_asks_for_everything))
def records_stay_until_removed(m: Moment) -> Findings:
    """A list without a filter holds all that was made and not removed, dead records included."""
    outside, rpc = m.node.note(_Outside), m.call.rpc
    excused, outside.happened[rpc] = outside.happened[rpc], False
    world = m.world
    views: dict[str, Container] | dict[str, Sandbox]
    views = world.containers if rpc == "ListContainers" else world.sandboxes
    missing = views.keys() - {record.id for record in _listed(m)}
    if missing and not excused:
        lost = [one for one in (views[i] for i in sorted(missing)) if _existed(one, m)]
        if lost:
            return [broken(f"{one.id[:12]} was never removed and is not listed any more") for one in lost]
    return KEPT if any(news.record.state in _DEAD for news in newly_reported_records(m)) else None


@records_stay_until_removed.clause("status", on=failed("ContainerStatus", "PodSandboxStatus"))
def status_of_what_stands(m: Moment) -> Findings:
    """The status of a record that was made and not removed is found."""
    one = m.container or m.sandbox
    if one is None or m.reply.error is None or m.reply.error.code != "NOT_FOUND" or not one.born:
        return None
    if one.state == "removed" or not _existed(one, m) or any(m.node.note(_Outside).happened.values()):
        return None
    return broken(f"{one.id[:12]} was never removed and is not found")


@contract("CRI-43", on=failed("ContainerStatus", "PodSandboxStatus"))
def what_stands_has_a_status(m: Moment) -> Findings:
    """The status of a container or sandbox that was not removed is no error, also after it has ended."""
    one, code = m.container or m.sandbox, refusal(m)
    # What was removed, or lost, is not found; a runtime that was down has not read its records yet.
    if one is None or code in {None, "NOT_FOUND"} or m.node.cut_off_until == math.inf:
        return None
    return broken(f"{m.call.rpc} of {one.id[:12]}, which was not removed, is answered by {code}")


@what_stands_has_a_status.clause("answered", on=done("ContainerStatus", "PodSandboxStatus"))
def what_has_ended_has_a_status(m: Moment) -> Findings:
    """What has ended has a status as well."""
    if m.container is not None:
        return KEPT if m.container.state == "exited" else None
    return KEPT if m.sandbox is not None and (m.sandbox.stopped or m.sandbox.died_t is not None) else None


@observer(on=failed(*_REMOVALS))
def _removal_failed(m: Moment) -> None:
    """Remember what is no longer known to be there."""
    if not m.reply.effect:
        return
    if m.container is not None:
        m.container.note(_MayBeGone).is_so = True
    elif m.sandbox is not None:
        m.sandbox.note(_MayBeGone).is_so = True
        for container in m.sandbox.containers.values():
            container.note(_MayBeGone).is_so = True


class _Removed(Note):
    """What was removed, by id, with the seq of the reply; the oldest are forgotten."""

    seq_of: OrderedDict[str, int] = field(default_factory=OrderedDict[str, int])

    def add(self, one_id: str, seq: int) -> None:
        self.seq_of[one_id] = seq
        if len(self.seq_of) > _REMOVED_REMEMBERED:
            self.seq_of.popitem(last=False)

    def before(self, one_id: str, reading_seq: int) -> int | None:
        """The seq of its removal, if it was over when the reading began."""
        seq = self.seq_of.get(one_id)
        return seq if seq is not None and seq < reading_seq else None


@contract("CRI-15", on=done("RemoveContainer"))
def removed_container_is_gone(m: Moment) -> Findings:
    """RemoveContainer also succeeds for a container that is gone already.

    A removed container is in no list and has no status.
    """
    if m.container is None:
        return KEPT
    m.node.note(_Removed).add(m.container.id, m.seq)
    return None


@removed_container_is_gone.clause("idempotent", on=failed("RemoveContainer"))
def removing_twice_is_no_error(m: Moment) -> Findings:
    """Removing a container that is gone already is no error."""
    code = refusal(m)
    if m.container is None and m.world.past_known and code is not None:
        return broken(f"RemoveContainer of a container that is gone is answered by {code}")
    return None


@removed_container_is_gone.clause("lists", on=newly_reported("list"))
def removed_container_is_not_listed(m: Moment) -> Findings:
    """A removed container is in no later list."""
    return _none_reappeared(m, m.node.note(_Removed)) if m.call.rpc == "ListContainers" else None


def _none_reappeared(m: Moment, removed: _Removed) -> Findings:
    if not removed.seq_of:
        return None
    for news in m.containers_reported or m.sandboxes_reported:
        seq = removed.before(news.record.id, m.call.seq)
        if seq is not None:
            return broken(f"{news.record.id[:12]} was removed and is listed again", seq)
    return KEPT


@removed_container_is_gone.clause("status", on=done("ContainerStatus").either(failed("ContainerStatus")))
def removed_container_has_no_status(m: Moment) -> Findings:
    """The status of a removed container is not found."""
    seq = m.node.note(_Removed).before(m.request(bodies.ContainerRequest).container_id, m.call.seq)
    if seq is None:
        return None
    return KEPT if m.reply.error else broken("a removed container has a status", seq)


class _RemovedSandboxes(_Removed):
    """The removed sandboxes, and the containers that went with them."""


@contract("CRI-06", on=done("RemovePodSandbox"))
def removed_sandbox_is_gone(m: Moment) -> Findings:
    """RemovePodSandbox also succeeds for a sandbox that is gone already.

    The sandbox and its containers are in no list afterwards.
    """
    if m.sandbox is None:
        return KEPT
    removed = m.node.note(_RemovedSandboxes)
    for one_id in (m.sandbox.id, *m.sandbox.containers):
        removed.add(one_id, m.seq)
    return None


@removed_sandbox_is_gone.clause("idempotent", on=failed("RemovePodSandbox"))
def removing_a_sandbox_twice_is_no_error(m: Moment) -> Findings:
    """Removing a sandbox that is gone already is no error."""
    code = refusal(m)
    if m.sandbox is None and m.world.past_known and code is not None:
        return broken(f"RemovePodSandbox of a sandbox that is gone is answered by {code}")
    return None


@removed_sandbox_is_gone.clause("lists", on=newly_reported("list"))
def removed_sandbox_is_not_listed(m: Moment) -> Findings:
    """A removed sandbox is in no later list, nor are its containers."""
    return _none_reappeared(m, m.node.note(_RemovedSandboxes))


class _Attempted(Note):
    """The pod has had a call that may have left a record without naming it."""

    unclear: bool = False


@filters_are_obeyed.clause("nothing else", on=newly_reported("container", "sandbox"))
def nothing_is_listed_that_nobody_made(m: Moment) -> Iterator[Finding]:
    """The runtime reports no record that no call has made."""
    if not (m.header.from_start and m.node.listed) or m.node.note(_Outside).ever:
        return
    for news in newly_reported_records(m):
        record = news.record
        pod = m.world.pods.get(record.labels.get(Label.POD_UID, ""))
        if news.known is not None or m.world.went_since(record.id, m.call.t):
            continue
        if pod is not None and _may_have_been_made(pod):
            continue
        yield broken(f"{record.id[:12]} ({record.metadata.name}) is reported, and no call has made it")


def _may_have_been_made(pod: Pod) -> bool:
    if pod.note(_Attempted).unclear:
        return True
    return any(c.rpc in {"CreateContainer", "RunPodSandbox"} for c in pod.calls_open.values())


@observer(on=failed("CreateContainer", "RunPodSandbox"))
def _may_leave_something(m: Moment, pod: Pod) -> None:
    """A call that failed may have left a record behind."""
    if m.reply.effect:
        pod.note(_Attempted).unclear = True
