"""The pure rules of status writing: which statuses are accepted, and what of them the API server gets.

A status is written as a strategic merge patch, as a real kubelet sends it: what differs and nothing else.
Conditions merge by `type` and addresses by `ip`; every other list (the container statuses) is replaced whole;
null deletes a field.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import cast

import msgspec
from lightkube.models.core_v1 import ContainerState, ContainerStatus, Pod, PodCondition, PodStatus
from msgspec.structs import replace

from kubelet_reference.api import pods
from kubelet_reference.api.restart_policy import restarts_after
from kubelet_reference.status import conditions
from kubelet_reference.status.container_statuses import LOST_AT_THE_END, unknown_end
from kubelet_reference.status.phase import exit_code, may_begin_anew, was_up
from kubelet_reference.util.versions import Behaviour

MESSAGE_BYTES = 12 * 1024
"""Of the termination messages of one pod, shared evenly by its containers (STATUS-12)."""


def in_statuses(status: PodStatus, change: Callable[[ContainerStatus], ContainerStatus]) -> PodStatus:
    """The status with `change` applied to every container status."""

    def changed(found: list[ContainerStatus] | None) -> list[ContainerStatus] | None:
        return [change(one) for one in found] if found else found

    return replace(
        status,
        initContainerStatuses=changed(status.initContainerStatuses),
        containerStatuses=changed(status.containerStatuses),
        ephemeralContainerStatuses=changed(status.ephemeralContainerStatuses),
    )


def _every(status: PodStatus) -> list[ContainerStatus]:
    lists = (status.initContainerStatuses, status.containerStatuses, status.ephemeralContainerStatuses)
    return [one for found in lists for one in found or ()]


def illegal_transition(pod: Pod, before: PodStatus, new: PodStatus, behaviour: Behaviour) -> str | None:
    """The container that had ended for good and now is shown otherwise: such a status is false (STATUS-10).

    A container may come back after an end by its policy and rules, a sidecar always. Where some end restarts
    the whole pod any of them may.
    """
    if pods.restart_policy(pod) == pods.ALWAYS or may_begin_anew(pod, behaviour):
        return None
    specs = {one.name: one for one in (*pods.init_containers(pod), *pods.containers(pod))}
    after = {one.name: one for one in _lasting(new)}
    for one in _lasting(before):
        ended, now, spec = exit_code(one.state), after.get(one.name), specs.get(one.name)
        if ended is None or now is None or spec is None or exit_code(now.state) is not None:
            continue
        if not pods.is_sidecar(spec) and not restarts_after(pod, spec, ended, behaviour):
            return one.name
    return None


def _lasting(status: PodStatus) -> list[ContainerStatus]:
    return [*(status.initContainerStatuses or ()), *(status.containerStatuses or ())]


def dated(status: PodStatus, before: PodStatus, now: datetime) -> PodStatus:
    """The status with startTime as ever, and transition times by those before (STATUS-08, STATUS-09)."""
    return replace(
        status,
        startTime=before.startTime or status.startTime or now,
        conditions=conditions.with_transition_times(status.conditions or (), before.conditions, now),
    )


def with_limited_messages(status: PodStatus) -> PodStatus:
    """Termination messages cut to what the pod's containers have of the limit each (STATUS-12)."""
    every = _every(status)
    if not every:
        return status
    limit = MESSAGE_BYTES // len(every)
    return in_statuses(
        status,
        lambda one: replace(one, state=_cut(one.state, limit), lastState=_cut(one.lastState, limit)),
    )


def _cut(state: ContainerState | None, limit: int) -> ContainerState | None:
    if state is None or state.terminated is None:
        return state
    short = (state.terminated.message or "").encode()[:limit].decode(errors="ignore")
    return replace(state, terminated=replace(state.terminated, message=short or None))


def is_same(one: PodStatus, other: PodStatus) -> bool:
    """Whether two statuses agree in all that the kubelet sets: conditions of others do not count."""
    return _owned_part(one) == _owned_part(other)


def _owned_part(status: PodStatus) -> PodStatus:
    return replace(status, conditions=[c for c in status.conditions or () if conditions.is_owned(c.type)])


def merged(stored: PodStatus, new: PodStatus, *, could_run: bool, now: datetime) -> PodStatus:
    """What the stored status becomes when the kubelet writes `new` over it.

    Only the kubelet's own fields and conditions change (STATUS-06). A terminal phase is held back for as
    long as containers of the pod could run (TERM-15).
    """
    ends = pods.is_terminal_phase(new.phase) and not pods.is_terminal_phase(stored.phase)
    phase_from = stored if ends and could_run else new
    return replace(
        stored,
        phase=phase_from.phase,
        reason=phase_from.reason,
        message=phase_from.message,
        conditions=_merged_conditions(stored, new, now if ends and not could_run else None) or None,
        hostIP=new.hostIP,
        hostIPs=new.hostIPs,
        podIP=new.podIP,
        podIPs=new.podIPs,
        qosClass=new.qosClass,
        resize=new.resize,
        observedGeneration=new.observedGeneration or stored.observedGeneration,
        startTime=new.startTime,
        initContainerStatuses=new.initContainerStatuses,
        containerStatuses=new.containerStatuses,
        ephemeralContainerStatuses=new.ephemeralContainerStatuses,
    )


def _merged_conditions(stored: PodStatus, new: PodStatus, ended: datetime | None) -> list[PodCondition]:
    """Those of others as stored, then the kubelet's; DisruptionTarget goes with the end only (STATUS-07)."""
    theirs = [one for one in stored.conditions or () if not conditions.is_owned(one.type)]
    disruption = conditions.condition(new.conditions, conditions.DISRUPTION_TARGET)
    if disruption is not None and ended is not None:
        theirs = conditions.put(theirs, replace(disruption, lastTransitionTime=ended))
    return [*theirs, *(one for one in new.conditions or () if conditions.is_owned(one.type))]


def runs_nothing(status: PodStatus) -> bool:
    """Whether no container is shown as running."""
    return not any(one.state and one.state.running for one in _every(status))


def with_final_states(pod: Pod, status: PodStatus) -> PodStatus:
    """Every container that must have run is shown as ended, with an unknown end if none was seen (TERM-17).

    App containers have run if the pod was initialized; of the init containers those up to the last that shows
    a trace of a start, the first at least.
    """
    inits, apps = status.initContainerStatuses or [], status.containerStatuses or []
    traces = [index for index, one in enumerate(inits) if _was_started(one)]
    ran = max(traces, default=0) + 1
    if _was_initialized(pod, status):
        apps = _ended(apps)
    return replace(
        status,
        initContainerStatuses=[*_ended(inits[:ran]), *inits[ran:]] or None,
        containerStatuses=apps or None,
    )


def _was_started(status: ContainerStatus) -> bool:
    return was_up(status) or exit_code(status.lastState) is not None


def _was_initialized(pod: Pod, status: PodStatus) -> bool:
    inits = status.initContainerStatuses
    if not pods.init_containers(pod) or any(_was_started(one) for one in status.containerStatuses or ()):
        return True
    if inits and pods.is_sidecar(pods.init_containers(pod)[-1]):
        return bool(inits[-1].started)
    states = (inits[-1].state, inits[-1].lastState) if inits else ()
    return any(exit_code(state) == 0 for state in states)


def _ended(statuses: Iterable[ContainerStatus]) -> list[ContainerStatus]:
    end = unknown_end(LOST_AT_THE_END)
    return [one if exit_code(one.state) is not None else replace(one, state=end) for one in statuses]


_MERGE_KEYS = {"conditions": "type", "podIPs": "ip", "hostIPs": "ip"}
"""The lists of a PodStatus whose elements are merged, with the field that identifies one."""


def status_patch(uid: str, old: PodStatus, new: PodStatus) -> dict[str, object] | None:
    """The patch from `old` to `new`, None if nothing differs; the UID in it is a precondition (STATUS-01)."""
    changes = dict(_changes(old, new))
    if not changes:
        return None
    return {"metadata": {"uid": uid}, "status": dict(sorted(changes.items()))}


def _changes(old: PodStatus, new: PodStatus) -> Iterator[tuple[str, object]]:
    for name in new.__struct_fields__:
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        if after is not None and name in _MERGE_KEYS:
            yield from _list_changes(name, _elements(before), _elements(after))
        else:
            yield name, msgspec.to_builtins(after)


def _elements(value: object) -> list[dict[str, object]]:
    return cast("list[dict[str, object]] | None", msgspec.to_builtins(value)) or []


def _list_changes(
    name: str, old: list[dict[str, object]], new: list[dict[str, object]]
) -> Iterator[tuple[str, object]]:
    """The elements that differ; where the list was not empty, the order of the new one goes before them.

    The order of conditions alone is no difference.
    """
    key = _MERGE_KEYS[name]
    before = {element[key]: element for element in old}
    after = [element[key] for element in new]
    changed = [
        change for element in new if (change := _element_change(name, before.get(element[key]), element))
    ]
    gone: list[dict[str, object]] = [
        {"$patch": "delete", key: value} for value in before if value not in after
    ]
    if not (changed or gone) and name == "conditions":
        return
    if old:
        yield f"$setElementOrder/{name}", [{key: value} for value in after]
    if changed or gone:
        yield name, [*changed, *gone]


def _element_change(
    name: str, old: dict[str, object] | None, new: dict[str, object]
) -> dict[str, object] | None:
    """A new element whole; of a known one what differs, with its key; None if nothing does."""
    if old is None:
        # The API's conditions always have this field, if only as null.
        return {"lastProbeTime": None, **new} if name == "conditions" else new
    if old == new:
        return None
    changes: dict[str, object] = {field: None for field in old if field not in new}
    changes |= {field: value for field, value in new.items() if old.get(field) != value}
    return {**changes, _MERGE_KEYS[name]: new[_MERGE_KEYS[name]]}
