"""The pods that two lists of the runtime show, with as little work as there is news in the lists.

Equal lists give the very same pods. Otherwise only what differs from the last lists is read, and a pod of
which nothing differs is the same object as before: comparing it with itself costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Generic, TypeVar

import msgspec
from cri_api.v1 import api_pb2 as cri

from kubelet_reference import names
from kubelet_reference.records import ContainerState, ListedPod, ListedRecord

Item = TypeVar("Item", cri.PodSandbox, cri.Container)

_STATES: dict[int, ContainerState] = {
    cri.CONTAINER_CREATED: ContainerState.CREATED,
    cri.CONTAINER_RUNNING: ContainerState.RUNNING,
    cri.CONTAINER_EXITED: ContainerState.EXITED,
}


class _Seen(msgspec.Struct, frozen=True):
    """One item of a list, read; `uid` is "" where it carries no pod's labels."""

    uid: str
    name: str
    namespace: str
    record: ListedRecord
    is_sandbox: bool


class Listing:
    """Remembers the last two lists and the pods in them."""

    def __init__(self) -> None:
        self._sandboxes = cri.ListPodSandboxResponse()
        self._containers = cri.ListContainersResponse()
        self._read_sandboxes = _Reader[cri.PodSandbox](_sandbox)
        self._read_containers = _Reader[cri.Container](_container)
        self._by_uid: dict[str, tuple[list[_Seen], ListedPod]] = {}
        self._pods: tuple[ListedPod, ...] = ()

    def pods(
        self, sandboxes: cri.ListPodSandboxResponse, containers: cri.ListContainersResponse
    ) -> tuple[ListedPod, ...]:
        """The pods of the lists, matched by their labels; what carries none is nobody's (PLEG-04)."""
        if not (_same(sandboxes, self._sandboxes) and _same(containers, self._containers)):
            seen = chain(
                self._read_sandboxes.read(sandboxes.items), self._read_containers.read(containers.containers)
            )
            self._pods = self._gathered(seen)
        self._sandboxes, self._containers = sandboxes, containers
        return self._pods

    def _gathered(self, everything: Iterable[_Seen]) -> tuple[ListedPod, ...]:
        gathered: dict[str, list[_Seen]] = {}
        for one in everything:
            gathered.setdefault(one.uid, []).append(one)
        gathered.pop("", None)
        self._by_uid = {uid: self._pod(uid, seen) for uid, seen in gathered.items()}
        return tuple(pod for _, pod in self._by_uid.values())

    def _pod(self, uid: str, seen: list[_Seen]) -> tuple[list[_Seen], ListedPod]:
        """The pod as it was if it consists of what it was, else anew."""
        last = self._by_uid.get(uid)
        if last is not None and last[0] == seen:
            return last
        sandboxes = _newest_first(one.record for one in seen if one.is_sandbox)
        containers = _newest_first(one.record for one in seen if not one.is_sandbox)
        return seen, ListedPod(uid, seen[0].name, seen[0].namespace, sandboxes, containers)


class _Reader(Generic[Item]):
    """Reads the items of one list; what equals the item of the last list with its id is not read again."""

    def __init__(self, read: Callable[[Item], _Seen]) -> None:
        self._read: Callable[[Item], _Seen] = read
        self._last: dict[str, tuple[Item, _Seen]] = {}

    def read(self, items: Iterable[Item]) -> list[_Seen]:
        last, self._last = self._last, {}
        for item in items:
            key = item.id
            known = last.get(key)
            # The newest item is kept even if it is equal: the old one would keep all of its list alive.
            self._last[key] = (item, known[1] if known is not None and known[0] == item else self._read(item))
        return [seen for _, seen in self._last.values()]


def _same(new: object, old: object) -> bool:
    """Whether two replies say the same; a runtime in process may give the very same object."""
    return new is old or new == old


def _sandbox(item: cri.PodSandbox) -> _Seen:
    state = ContainerState.RUNNING if item.state == cri.SANDBOX_READY else ContainerState.EXITED
    return _of(
        item.labels, ListedRecord(item.id, item.metadata.name, state, item.created_at), is_sandbox=True
    )


def _container(item: cri.Container) -> _Seen:
    record = ListedRecord(
        item.id,
        item.labels.get(names.CONTAINER_NAME, ""),
        _STATES.get(item.state, ContainerState.UNKNOWN),
        item.created_at,
        item.annotations.get(names.CONTAINER_HASH, ""),
    )
    return _of(item.labels, record, is_sandbox=False)


def _of(labels: Mapping[str, str], record: ListedRecord, *, is_sandbox: bool) -> _Seen:
    uid = labels.get(names.POD_UID, "")
    return _Seen(uid, labels.get(names.POD_NAME, ""), labels.get(names.POD_NAMESPACE, ""), record, is_sandbox)


def _newest_first(records: Iterable[ListedRecord]) -> tuple[ListedRecord, ...]:
    """By the time they were made, not by attempt or list order (SANDBOX-03, PLEG-12)."""
    return tuple(sorted(records, key=_created_at, reverse=True))


def _created_at(record: ListedRecord) -> int:
    return record.created_at
