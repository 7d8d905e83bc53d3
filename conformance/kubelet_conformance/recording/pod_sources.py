"""Pods as they were found at one look, and what has changed since the look before."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import msgspec

from kubelet_conformance.trace.format.json_values import (
    Json,
    is_list,
    is_object,
    items_of,
    object_of,
    text_of,
)
from kubelet_conformance.trace.format.manifests import Manifest, PodStatus

_ENDED = frozenset({"Succeeded", "Failed"})


class PodsReadError(Exception):
    """The pods could not be read this time; `hopeless` if what is there can never be a list of pods."""

    def __init__(self, problem: str, *, hopeless: bool = False) -> None:
        self.hopeless = hopeless
        super().__init__(problem)


class PodKey(NamedTuple):
    """Which pod: `name` is its full name, that of a static pod with the node's; `uid` is empty if unknown."""

    source: str
    namespace: str
    name: str
    uid: str

    def fits(self, namespace: str, name: str, uid: str) -> bool:
        """A sandbox of this identity is the pod's."""
        return self.uid == uid if self.uid and uid else (self.namespace, self.name) == (namespace, name)


@dataclass(frozen=True, slots=True)
class DesiredPod:
    """One pod: its manifest, and its status where the source knows one."""

    key: PodKey
    pod: Json
    status: Json | None = None

    @property
    def deletion(self) -> str:
        """Its deletion time stamp, empty where it has none."""
        return text_of(object_of(self.pod, "metadata"), "deletionTimestamp")


@dataclass(frozen=True, slots=True)
class Look:
    """What was there; `problems` are parts that could not be read."""

    pods: tuple[DesiredPod, ...]
    problems: tuple[str, ...] = ()


class PodsSource(Protocol):
    """Where desired pods can be read."""

    gives_status: bool
    """Whether it knows statuses, and when pods are finally gone."""

    def look(self) -> Look:
        """Read them now; raises `PodsReadError`."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """The records of one change, as kind and fields; `what` says which calls must come after them.

    `new`: all calls about the pod. `changed`: the stop, or the new container, that it brings about.
    `going`: the stop. `status`: none, it was so when it was read.
    """

    key: PodKey
    what: str
    records: tuple[tuple[str, Json], ...]
    known: frozenset[str] = field(default_factory=frozenset[str])
    """The containers of the manifest before, where it has changed."""


class Watch:
    """Remembers the last look, and returns the changes."""

    def __init__(self, *, gives_status: bool) -> None:
        self.is_alone = False
        """The kubelet has no API server: its statuses are stored nowhere."""
        self._gives_status = gives_status
        self._pods: dict[PodKey, DesiredPod] = {}

    def changes(self, look: Look) -> list[Change]:
        """What has changed since the last one; a pod that has gone comes before one that takes its place."""
        now = {pod.key: pod for pod in look.pods}
        self.is_alone = self.is_alone or is_alone(look)
        gone = [self._gone(pod) for key, pod in self._pods.items() if key not in now]
        found = [change for pod in now.values() for change in self._seen(pod, self._pods.get(pod.key))]
        self._pods = now
        return gone + found

    def _gone(self, pod: DesiredPod) -> Change:
        key = pod.key
        if self._gives_status and key.source == "api":
            # Whether it was removed by force or in order is not known, if its deletion was not observed.
            return Change(key, "status" if pod.deletion else "going", (("deleted", {"uid": key.uid}),))
        whom = {"namespace": key.namespace, "name": _manifest_name(pod), "uid": key.uid or None}
        return Change(key, "going", (("pod", {"op": "remove", "source": key.source, **whom}),))

    def _seen(self, pod: DesiredPod, before: DesiredPod | None) -> Iterator[Change]:
        fields = {"op": "set", "source": pod.key.source, "pod": pod.pod}
        if before is None:
            yield Change(pod.key, "new", (("pod", fields),))
        elif before.pod != pod.pod:
            what = "going" if pod.deletion and not before.deletion else "changed"
            yield Change(pod.key, what, (("pod", fields),), _containers(before.pod))
        known = None if before is None else before.status
        # Until the kubelet has written a status there is only what the API server made up.
        is_written = pod.status is not None and bool(pod.status.get("startTime")) and not self.is_alone
        if is_written and pod.status != known:
            whom = {"uid": _status_uid(pod.key), "namespace": pod.key.namespace, "name": pod.key.name}
            status = {**whom, "status": pod.status, "deletion": pod.deletion or None}
            yield Change(pod.key, "status", (("status", status),))


def is_alone(look: Look) -> bool:
    """Its statuses show that the kubelet has no API server: only then do they lack the host's IP.

    A pod that was refused has none either, but a reason (kubelet_pods.go generateAPIPodStatus).
    """
    written = [pod.status for pod in look.pods if pod.status is not None and pod.status.get("startTime")]
    ran = [status for status in written if not status.get("reason")]
    return bool(ran) and not any(status.get("hostIP") for status in ran)


def _status_uid(key: PodKey) -> str:
    """Under which UID its status is stored: that of a mirror pod is not reported, so this makes one up."""
    return key.uid if key.source == "api" else f"mirror-of-{key.uid}"


def _manifest_name(pod: DesiredPod) -> str:
    return text_of(object_of(pod.pod, "metadata"), "name")


def _containers(pod: Json) -> frozenset[str]:
    """The names of its containers of every kind."""
    spec = msgspec.convert(pod, Manifest).spec
    return frozenset(spec.entries)


def is_pod(value: Any) -> bool:  # noqa: ANN401 - what a source holds
    """A kubelet could take it for a pod: it has a name and a spec, and its fields have the right types."""
    if not is_object(value) or not is_object(value.get("spec")):
        return False
    try:
        pod = msgspec.convert(value, Manifest)
        msgspec.convert(value.get("status") or {}, PodStatus)
    except msgspec.ValidationError:
        return False
    return bool(pod.metadata.name)


def kept_status(pod: Json) -> Json | None:
    """What of a status belongs to what the kubelet is sent: that the pod has ended, and its gates."""
    status, gates = object_of(pod, "status"), object_of(pod, "spec").get("readinessGates")
    if status.get("phase") in _ENDED:
        return {"phase": status["phase"]}
    if not is_list(gates):
        return None
    wanted = {text_of(gate, "conditionType") for gate in gates if is_object(gate)}
    return {"conditions": [one for one in items_of(status, "conditions") if one.get("type") in wanted]}
