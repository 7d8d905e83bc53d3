"""Which pod an event in a kubelet's log is about: the log names it by namespace and name only.

The UIDs of a name come from the record: from the manifests that state one, and from each sandbox that is run
and each status that is shown. Static pods of one name run one after another, so an event about a container is
about the pod whose sandbox was run last. Where several pods are possible, none is named.
"""

from __future__ import annotations

import re
from typing import Any

from kubelet_conformance.trace.format.recorder import Item, RecordedCall, Recorder, Seen

Json = dict[str, Any]
_CONTAINER = re.compile(r"\{(.+)\}$")
_PENDING = ""
"""Stands for the UID of a manifest that states none: its kubelet has not shown yet which it gave."""


class PodUids:
    """The UIDs that each name has had so far; `node` is what kubelets add to the names of static pods."""

    def __init__(self, recorder: Recorder, node: str) -> None:
        self._suffix = f"-{node.lower()}"
        self._names: dict[tuple[str, str], _Name] = {}
        recorder.listeners.append(self._observe)

    def of_event(self, namespace: str, name: str, field_path: str) -> str:
        """The UID of the pod that an event is about, "" where it is not certain."""
        found = self._names.get((namespace, name))
        return "" if found is None else found.meant(_container(field_path))

    def _observe(self, seen: Seen) -> None:
        match seen:
            case RecordedCall(rpc="RunPodSandbox"):
                request: Any = seen.request
                metadata = request.config.metadata
                self._name(metadata.namespace, metadata.name).run(metadata.uid)
            case Item(kind="pod", fields={"op": "set", "pod": pod}):
                self._set(pod)
            case Item(kind="status", fields=fields):
                self._name(fields["namespace"], fields["name"]).show(fields["uid"])
            case _:
                pass

    def _set(self, pod: Json) -> None:
        metadata: Json = pod["metadata"]
        spec: Json = pod.get("spec") or {}
        name = self._name(metadata.get("namespace") or "default", metadata["name"] + self._suffix)
        name.want(metadata.get("uid") or _PENDING, _containers(spec))

    def _name(self, namespace: str, name: str) -> _Name:
        return self._names.setdefault((namespace, name), _Name())


class _Name:
    """The UIDs of one name in the order in which they became known, each with the names of its containers."""

    def __init__(self) -> None:
        self._containers: dict[str, set[str]] = {}
        """No names where they are not known."""
        self._latest_run = ""

    def want(self, uid: str, containers: set[str]) -> None:
        """A manifest states this UID; one that was changed has the containers of all its versions."""
        self._containers.setdefault(uid, set()).update(containers)

    def show(self, uid: str) -> None:
        """The kubelet has a pod of this UID: the manifest without one, if it is new."""
        if uid in self._containers:
            return
        self._containers[uid] = self._containers.pop(_PENDING, set())

    def run(self, uid: str) -> None:
        """A sandbox is run for this UID; whatever manifest there was is known by it."""
        self.show(uid)
        self._containers.pop(_PENDING, None)
        self._latest_run = uid

    def meant(self, container: str) -> str:
        """The UID that an event is about, and about this container of it if not "" ."""
        possible = [
            uid for uid, names in self._containers.items() if not (container and names) or container in names
        ]
        if len(possible) == 1:
            return possible[0]
        order = list(self._containers)
        is_newest = self._latest_run == order[-1] if order else False
        return self._latest_run if self._latest_run in possible and (container or is_newest) else ""


def _containers(spec: Json) -> set[str]:
    kinds = "initContainers", "containers", "ephemeralContainers"
    lists: list[list[Json]] = [spec.get(each) or [] for each in kinds]
    return {str(each.get("name", "")) for one in lists for each in one}


def _container(field_path: str) -> str:
    """The container in a field path such as `spec.containers{web}`, "" for the pod itself."""
    found = _CONTAINER.search(field_path)
    return "" if found is None else found[1]
