"""A written status, joined with the manifest, with the runtime's records, and with the phase it amounts to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from kubelet_conformance.contracts.tables import PhaseRow, count, phase_of

if TYPE_CHECKING:
    from kubelet_conformance.contracts.tables import Counts
    from kubelet_conformance.trace.manifests import ContainerSpec, ContainerStatus, PodStatus
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Container, Kind, Pod

__all__ = (
    "START_ERRORS",
    "UNKNOWN_END",
    "Entry",
    "Written",
    "entries",
    "record_with",
    "seconds",
    "written",
)

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
UNKNOWN_END = "ContainerStatusUnknown"
"""Reason given for the end of a container whose record is gone."""
FINAL_PHASES_SINCE = (1, 27)
"""From here on every deleted pod ends in a terminal phase."""

_CONTAINERS_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Entry:
    """What a status says of one container, and what it should be about."""

    status: ContainerStatus
    spec: ContainerSpec | None
    kind: Kind
    container: Container | None
    """The runtime's record that `containerID` names, if the trace knows it."""


class _Named:
    """The containers that statuses have named, which may be removed by now; and the last status' entries."""

    def __init__(self) -> None:
        self.containers: dict[str, Container] = {}
        self.seq = 0
        self.entries: tuple[Entry, ...] = ()


def record_with(m: Moment, container_id: str) -> Container | None:
    """The container that an id in a status means: recorded now, or named by an earlier status."""
    if m.pod is None or not container_id:
        return None
    named = m.pod.note(_Named).containers
    found = m.world.containers.get(container_id) or named.get(container_id)
    if found is None:
        found = next((c for c in m.pod.every_container() if c.id == container_id), None)
    if found is not None:
        named[container_id] = found
        if len(named) > _CONTAINERS_REMEMBERED:
            del named[next(iter(named))]
    return found


def entries(m: Moment) -> tuple[Entry, ...]:
    """What the status of this moment says of each container."""
    if m.pod is None or m.status is None:
        return ()
    named = m.pod.note(_Named)
    if named.seq != m.seq:
        named.seq = m.seq
        named.entries = tuple(_entry(m, m.pod, status) for status in _statuses(m.status))
    return named.entries


def _statuses(status: PodStatus) -> list[ContainerStatus]:
    return [
        *(status.init_container_statuses or ()),
        *(status.container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    ]


def _entry(m: Moment, pod: Pod, status: ContainerStatus) -> Entry:
    last = status.last_state.terminated
    if last is not None:
        record_with(m, last.container_id.rpartition("://")[2])
    record = record_with(m, status.runtime_id)
    return Entry(status, pod.container_spec(status.name), pod.kind_of(status.name), record)


@dataclass(frozen=True, slots=True)
class Written:
    """A status of a kubelet's, and what its containers amount to."""

    pod: Pod
    status: PodStatus
    before: PodStatus | None
    counts: Counts
    row: PhaseRow
    generated: frozenset[str]
    """The phases that its containers amount to: two where the trace does not tell whether it is the last one."""
    allowed: frozenset[str]
    """These, and the phase that was held back from the end."""


def written(m: Moment) -> Written | None:
    """The status of this moment; None for what no kubelet wrote, or which no table decides.

    The API server's first status has no conditions, and a reason tells that a handler (eviction, deadline)
    or admission has set the phase.
    """
    pod, status = m.pod, m.status
    if pod is None or status is None or pod.spec is None or not status.conditions or status.reason:
        return None
    counts = count(pod.spec, status)
    row = phase_of(counts)
    generated = {row.phase}
    if _may_be_final(m, pod):
        generated.add(phase_of(replace(counts, final=True)).phase)
        if counts.running == 0:
            generated.add("Failed")
    allowed = set(generated)
    if generated & {"Succeeded", "Failed"}:
        allowed |= _held(pod, m)
    return Written(pod, status, pod.status, counts, row, frozenset(generated), frozenset(allowed))


def _may_be_final(m: Moment, pod: Pod) -> bool:
    """The pod may be in its last sync, which ends every pod that is not static in a terminal phase."""
    if pod.termination is None or pod.static:
        return False
    return m.kubernetes is None or m.kubernetes >= FINAL_PHASES_SINCE


def _held(pod: Pod, m: Moment) -> set[str]:
    """A terminal phase is held back, at the last one written, until all is stopped."""
    if pod.status is None:
        return {"Pending", "Running"}
    sampled = m.header.channels.api != "full"
    return {"Pending", "Running"} if sampled and not pod.status.terminal else {pod.status.phase}


def seconds(stamp: str | None) -> int | None:
    """A time of the API's as whole seconds since the epoch; None where it is absent or no time."""
    if not stamp:
        return None
    try:
        return int(datetime.fromisoformat(stamp).timestamp())
    except ValueError:
        return None
