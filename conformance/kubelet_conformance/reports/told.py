"""What the records of a trace that are no calls tell, in words."""

from __future__ import annotations

from collections.abc import Iterator

from kubelet_conformance.reports.safe import safe
from kubelet_conformance.trace.manifests import Condition, ContainerStatus, Manifest, PodStatus
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import (
    ApiWrite,
    Body,
    Deleted,
    Event,
    Expect,
    Fault,
    Kubelet,
    PodChange,
    Probe,
    RuntimeEvent,
    Status,
)

_OK = range(200, 300)
_STATUS_CHARS = 2000
_COMMAND_CHARS = 60
_ORDER = "init", "sidecar", "app", "ephemeral", "unknown"


def told(moment: Moment, shown: dict[str, str]) -> tuple[str, str, str] | None:
    """The kind of a record, whom it is about, and what it says; None where it says nothing new.

    `shown` holds what was last said of each pod's status.
    """
    record = moment.record
    match record:
        case Status():
            return _status(moment, record, shown)
        case ApiWrite():
            return _write(moment, record)
        case _:
            return _words(moment)


def _words(moment: Moment) -> tuple[str, str, str] | None:
    words: tuple[str, str, str] | None
    match moment.record:
        case PodChange() as record:
            words = "pod", *_change(moment, record)
        case Event() as record:
            container = (record.container or "").rpartition("{")[2].rstrip("}")
            whom = _pod(moment, record.uid) + (f"/{safe(container)}" if container else "")
            words = (
                "event",
                whom,
                safe(record.reason if record.type == "Normal" else f"{record.type} {record.reason}"),
            )
        case Deleted() as record:
            words = "deleted", _pod(moment, record.uid), ""
        case RuntimeEvent() as record:
            words = "runtime", *_by_itself(moment, record)
        case Fault() as record:
            words = "fault", safe(record.what), _amounts(moment, record)
        case Probe() as record:
            words = "probe", safe(record.handler), f"-> {safe(record.outcome)}"
        case Kubelet() as record:
            words = "kubelet", safe(record.op), ""
        case Expect() as record:
            words = "awaited", safe(record.awaited), "came" if record.met else "in vain"
        case _:
            words = None
    return words


def _amounts(moment: Moment, record: Fault) -> str:
    whom = [_pod(moment, record.uid)] if record.uid else []
    named = (text if name in record.what else f"{name} {text}" for name, text in record.values.items())
    return ", ".join([*whom, *map(safe, named)])


def _pod(moment: Moment, uid: str = "") -> str:
    pod = moment.pod or moment.world.pod_of_object(uid)
    return safe(pod.name) if pod is not None else "?"


def _write(moment: Moment, record: ApiWrite) -> tuple[str, str, str] | None:
    """A write to the API server; of statuses only what was refused, for what was stored is told anyway."""
    refused = record.code is not None and record.code not in _OK
    if record.subresource == "status" and not refused:
        return None
    grace = "" if record.grace is None else f"grace {record.grace}"
    outcome = f"-> {record.code}" if refused else ""
    what = "/".join(filter(None, (record.resource, record.subresource)))
    name = _created(record) or _pod(moment, record.uid)
    return "api", safe(f"{record.verb} {what} {name}"), " ".join(filter(None, (grace, outcome)))


def _created(record: ApiWrite) -> str:
    """The name of what is created; nothing else tells that of a new mirror pod."""
    if record.verb != "create" or not record.body:
        return ""
    return Body(record.body).view(Manifest).metadata.name


def _change(moment: Moment, record: PodChange) -> tuple[str, str]:
    if moment.manifest is None:
        return safe(record.name or _pod(moment)), f"removed from {record.source}"
    manifest = moment.manifest
    metadata = manifest.metadata
    if metadata.deletion_timestamp:
        return safe(metadata.name), f"to be deleted, grace {metadata.deletion_grace_period_seconds}"
    before = moment.pod.manifest if moment.pod is not None else None
    if before is None:
        return safe(metadata.name), safe(f"wanted from {record.source}: {', '.join(_containers(manifest))}")
    new = [each for each in _containers(manifest) if each not in list(_containers(before))]
    return safe(metadata.name), safe(f"changed{': ' if new else ''}{', '.join(new)}")


def _containers(manifest: Manifest) -> Iterator[str]:
    """Its containers in a few words each: all that is usual goes without saying."""
    entries = manifest.spec.entries.items()
    for name, (kind, spec) in sorted(entries, key=lambda entry: _ORDER.index(entry[1][0])):
        of_kind = "" if kind == "app" else f" ({kind})"
        command = safe(" ".join(spec.command or ()), _COMMAND_CHARS)
        yield f"{name}{of_kind} {spec.image} `{command}`"
    if manifest.spec.restart_policy != "Always":
        yield f"restart {manifest.spec.restart_policy}"


def _by_itself(moment: Moment, record: RuntimeEvent) -> tuple[str, str]:
    code = "" if record.exit_code is None else f" with {record.exit_code}"
    said = safe(f"{record.op}{code}")
    if moment.container is not None:
        return safe(f"{_pod(moment)}/{moment.container.name}#{moment.container.attempt}"), said
    if moment.sandbox is not None:
        return f"{_pod(moment)}#{moment.sandbox.attempt}", said
    return safe(record.name), said


def _status(moment: Moment, record: Status, shown: dict[str, str]) -> tuple[str, str, str] | None:
    """A status without times: phase, containers, and all conditions behind a bar."""
    status = moment.status
    if status is None:
        return None
    conditions = " ".join(sorted(_condition(each) for each in status.conditions or ()))
    text = f"{_states(status)} | {safe(conditions, _STATUS_CHARS)}"
    if shown.get(record.uid) == text:
        return None
    shown[record.uid] = text
    return "status", safe(record.name) or _pod(moment, record.uid), text


def _condition(condition: Condition) -> str:
    reason = f":{condition.reason}" if condition.reason else ""
    return f"{condition.type}={condition.status}{reason}"


def _states(status: PodStatus) -> str:
    why = f" {status.reason}" if status.reason else ""
    states = ", ".join(_state(one) for one in status.every_container)
    return "; ".join(filter(None, (safe(f"{status.phase}{why}"), states)))


def _state(status: ContainerStatus) -> str:
    state = status.state
    if state.terminated is not None:
        now = f"terminated {state.terminated.exit_code} {state.terminated.reason}"
    elif state.running is not None:
        now = "ready" if status.ready else "running"
    else:
        now = f"waiting {state.waiting.reason if state.waiting else ''}".rstrip()
    return safe(f"{status.name}#{status.restart_count} {now}", 200)
