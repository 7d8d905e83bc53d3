"""Objects as rows of a table, which is what `kubectl get` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from kubelet_fakes.api.objects import EMPTY, FrozenDict, at, frozen
from kubelet_fakes.api.validation import is_sidecar
from kubelet_fakes.api_server.kinds import ServedKind

_SECOND = 1_000_000_000
_WIDE = 1
_UNKNOWN = "<unknown>"
_NONE = "<none>"
_STATUSES = ("containerStatuses", "initContainerStatuses")
_UNITS = (
    ("d", 86_400, "h", 3_600, 8 * 86_400),
    ("h", 3_600, "m", 60, 8 * 3_600),
    ("m", 60, "s", 1, 10 * 60),
)
"""A unit with its seconds, the next finer one with its, and up to where that is shown too."""

Cells = Callable[[FrozenDict, int], list[Any]]
"""The cells of an object's row after its name, at a time in nanoseconds."""


_OF_LISTS = ("resourceVersion", "continue", "remainingItemCount")
"""Metadata of a list that its table has too."""


def as_table(kind: ServedKind, thing: FrozenDict, now_ns: int, include: str) -> FrozenDict:
    """The table of an object or of a list; `include` says how much of each object goes with its row."""
    columns, cells = _TABLES.get(kind.resource.name, _PLAIN)
    rows = thing.get("items", [thing])
    definitions = [
        {"name": name, "type": "string", "format": "name" if name == "Name" else "", "priority": priority}
        for name, priority in columns
    ]
    names_itself = columns[0][0] == "Name"
    table: FrozenDict = frozen(
        {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {key: thing["metadata"][key] for key in _OF_LISTS if key in thing["metadata"]},
            "columnDefinitions": definitions,
            "rows": [
                {
                    "cells": [*([each["metadata"]["name"]] if names_itself else []), *cells(each, now_ns)],
                    "object": _included(each, include),
                }
                for each in rows
            ],
        }
    )
    return table


def _included(thing: FrozenDict, include: str) -> FrozenDict | None:
    if include == "Object":
        return thing
    if include == "None":
        return None
    return FrozenDict(kind="PartialObjectMetadata", apiVersion="meta.k8s.io/v1", metadata=thing["metadata"])


def _age(text: object, now_ns: int) -> str:
    """How long ago that was, in the two coarsest units."""
    if not isinstance(text, str):
        return _UNKNOWN
    seconds = max(0, now_ns // _SECOND - int(datetime.fromisoformat(text).timestamp()))
    for unit, length, finer, shorter, limit in _UNITS:
        if seconds >= 2 * length:
            rest = seconds % length // shorter
            return f"{seconds // length}{unit}" + (f"{rest}{finer}" if rest and seconds < limit else "")
    return f"{seconds}s"


def _created(thing: FrozenDict, now_ns: int) -> list[Any]:
    return [_age(at(thing, "metadata", "creationTimestamp"), now_ns)]


def _pod(pod: FrozenDict, now_ns: int) -> list[Any]:
    sidecars = _sidecars(pod)
    containers, initial = (at(pod, "status", each) or () for each in _STATUSES)
    meant_to_stay = [*containers, *(each for each in initial if each["name"] in sidecars)]
    ready = sum(1 for each in meant_to_stay if each.get("ready"))
    gates = at(pod, "spec", "readinessGates") or ()
    conditions = _conditions(pod)
    met = sum(1 for each in gates if conditions.get(each["conditionType"]) == "True")
    return [
        f"{ready}/{len(pod['spec']['containers']) + len(sidecars)}",
        _pod_status(pod),
        str(sum(each.get("restartCount", 0) for each in (*containers, *initial))),
        *_created(pod, now_ns),
        at(pod, "status", "podIP") or _NONE,
        at(pod, "spec", "nodeName") or _NONE,
        at(pod, "status", "nominatedNodeName") or _NONE,
        f"{met}/{len(gates)}" if gates else _NONE,
    ]


def _sidecars(pod: FrozenDict) -> set[str]:
    return {each["name"] for each in at(pod, "spec", "initContainers") or () if is_sidecar(each)}


def _conditions(thing: FrozenDict) -> dict[str, str]:
    return {each["type"]: each.get("status", "") for each in at(thing, "status", "conditions") or ()}


def _pod_status(pod: FrozenDict) -> str:
    """One word for a pod: what its containers say, or its own reason or phase."""
    if at(pod, "metadata", "deletionTimestamp") is not None:
        return "Terminating"
    containers, _ = (at(pod, "status", each) or () for each in _STATUSES)
    words = [_of_container(each) for each in containers]
    running = any(each.get("ready") and not word for each, word in zip(containers, words, strict=True))
    word = _initializing(pod) or next((each for each in words if each), "")
    if word == "Completed" and running:
        return "Running"
    return word or at(pod, "status", "reason") or at(pod, "status", "phase") or "Unknown"


def _initializing(pod: FrozenDict) -> str:
    """How far the init containers are; "" once they are through."""
    sidecars = _sidecars(pod)
    for index, each in enumerate(at(pod, "status", "initContainerStatuses") or ()):
        word = _of_container(each)
        through = word == "Completed" or at(each, "state", "terminated", "exitCode") == 0
        if through or (each["name"] in sidecars and each.get("started")):
            continue
        total = len(pod["spec"].get("initContainers") or ())
        return f"Init:{index}/{total}" if word in {"", "PodInitializing"} else f"Init:{word}"
    return ""


def _of_container(status: FrozenDict) -> str:
    """Why a container waits or how it ended; "" while it runs."""
    waiting, ended = at(status, "state", "waiting"), at(status, "state", "terminated")
    if waiting is not None:
        reason: str = waiting.get("reason", "")
        return reason
    if ended is None:
        return ""
    return ended.get("reason") or (
        f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"
    )


def _node(node: FrozenDict, now_ns: int) -> list[Any]:
    word = {"True": "Ready", None: "Unknown"}.get(_conditions(node).get("Ready"), "NotReady")
    if at(node, "spec", "unschedulable"):
        word += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    labels = at(node, "metadata", "labels") or EMPTY
    roles = sorted(each.removeprefix(prefix) for each in labels if each.startswith(prefix))
    addresses = {each["type"]: each["address"] for each in at(node, "status", "addresses") or ()}
    info = at(node, "status", "nodeInfo") or EMPTY
    return [
        word,
        ",".join(roles) or _NONE,
        *_created(node, now_ns),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        *(info.get(each, _UNKNOWN) for each in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def _event(event: FrozenDict, now_ns: int) -> list[Any]:
    about = event.get("involvedObject") or event.get("regarding") or EMPTY
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or event.get("eventTime")
    return [
        _age(last, now_ns),
        event.get("type", ""),
        event.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        event.get("message") or event.get("note") or "",
    ]


def _columns(text: str, wide: str = "") -> list[tuple[str, int]]:
    return [(name, 0) for name in text.split(", ")] + [(name, _WIDE) for name in wide.split(", ") if name]


def _counted(*fields: str) -> Cells:
    def cells(thing: FrozenDict, now_ns: int) -> list[Any]:
        return [str(sum(len(thing.get(field) or ()) for field in fields)), *_created(thing, now_ns)]

    return cells


def _texts(*paths: Iterable[str]) -> Cells:
    def cells(thing: FrozenDict, now_ns: int) -> list[Any]:
        return [*(str(at(thing, *path) or _NONE) for path in paths), *_created(thing, now_ns)]

    return cells


_PLAIN: tuple[list[tuple[str, int]], Cells] = (_columns("Name, Age"), _created)
_TABLES: dict[str, tuple[list[tuple[str, int]], Cells]] = {
    "pods": (
        _columns("Name, Ready, Status, Restarts, Age", "IP, Node, Nominated Node, Readiness Gates"),
        _pod,
    ),
    "nodes": (
        _columns(
            "Name, Status, Roles, Age, Version",
            "Internal-IP, External-IP, OS-Image, Kernel-Version, Container-Runtime",
        ),
        _node,
    ),
    "events": (_columns("Last Seen, Type, Reason, Object, Message"), _event),
    "configmaps": (_columns("Name, Data, Age"), _counted("data", "binaryData")),
    "leases": (_columns("Name, Holder, Age"), _texts(("spec", "holderIdentity"))),
    "services": (
        _columns("Name, Type, Cluster-IP, Age"),
        _texts(("spec", "type"), ("spec", "clusterIP")),
    ),
    "namespaces": (_columns("Name, Status, Age"), _texts(("status", "phase"))),
}
