"""What each scenario sees of a shared node: the records about its own pods, and those about no pod."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from kubelet_conformance.targets.live.namespaces import scope_of
from kubelet_conformance.trace.format.recorder import (
    Failed,
    Item,
    RecordedCall,
    RecordedReply,
    Recorder,
    Seen,
)

Json = dict[str, Any]
_WHOSE = {"pod": "pod", "api": "body", "message": "pod_sandbox_status"}
"""The field of a record that has the metadata of the pod that it is about."""


class View(Recorder):
    """The record as one scenario sees it. What it records goes onto the record of the whole node."""

    def __init__(self, scope: str, router: Router) -> None:
        super().__init__(router.whole.now)
        self.scope = scope
        self._router = router
        self._open: set[str] = set()

    def record(self, kind: str, **fields: Any) -> None:  # noqa: ANN401 - JSON values of any type
        """Put something of this scenario onto the record."""
        with self._router.recorded_by(self):
            self._router.whole.record(kind, **fields)

    def insert(self, place: int, kind: str, **fields: Any) -> None:  # noqa: ANN401 - as `record`
        """Put something of this scenario before the one of its records at that place."""
        whole, before = self._router.whole.records, self.records[place]
        there = next(at for at in reversed(range(len(whole))) if whole[at] is before)
        self._router.insert(there, self, kind, **fields)
        super().insert(place, kind, **fields)

    @property
    def mark(self) -> int:
        """The place of the next record of the whole node, for `record_removal`."""
        return len(self._router.whole.records)

    def record_removal(self, since: int, container_id: str, sandbox_id: str, name: str) -> None:
        """Record that a container or, without its id, a sandbox was removed from outside.

        It was done after the place `since`, and before the first answer that shows it: that may be recorded.
        """
        fields = {"op": "removed", "container_id": container_id, "sandbox_id": sandbox_id, "name": name}
        given = {key: value or None for key, value in fields.items()}
        place = self._router.first_without(since, _Gone(container_id, sandbox_id))
        if place is None:
            self.record("runtime", **given)
        else:
            self._router.insert(place, self, "runtime", **given)

    def observe(self, seen: Seen) -> None:
        """Take a record that concerns this scenario; of the replies those to calls that it observed."""
        if isinstance(seen, RecordedCall):
            self._open.add(seen.id)
        elif isinstance(seen, RecordedReply):
            if seen.call.id not in self._open:
                return
            self._open.remove(seen.call.id)
        self._take(seen)


class Router:
    """Passes to each view what concerns it.

    Whose a record is follows from the namespace of its pod: stated by the record itself, or known of a UID or
    an id from an earlier one. Attributes:
        owners: the scope of each record of the whole, in order; "" for what concerns none or all.
    """

    def __init__(self, whole: Recorder) -> None:
        self.whole = whole
        self.owners: list[str] = []
        self._views: dict[str, View] = {}
        self._ids: dict[str, str] = {}
        """The scope by the id of a sandbox or container, or by a pod's UID."""
        self._calls: dict[str, str] = {}
        self._recording_views: list[View] = []
        whole.listeners.append(self._take)

    def open(self, scope: str) -> View:
        """A view for this scope, from now on."""
        view = self._views[scope] = View(scope, self)
        return view

    def close(self, view: View) -> None:
        """The view receives nothing any more; what is about it still counts as its own."""
        self._views.pop(view.scope, None)

    @contextmanager
    def recorded_by(self, view: View) -> Generator[None]:
        """While the context is open, what is recorded is this view's."""
        self._recording_views.append(view)
        try:
            yield
        finally:
            self._recording_views.pop()

    def first_without(self, since: int, gone: _Gone) -> int | None:
        """The place of the first answer after `since` by which a record is gone."""
        for place, seen in enumerate(self.whole.records):
            if isinstance(seen, RecordedReply) and gone.is_told_by(seen) and place >= since:
                return place
        return None

    def insert(self, place: int, view: View, kind: str, **fields: Any) -> None:  # noqa: ANN401 - JSON values
        """Put something of a view before the record at that place."""
        self.whole.insert(place, kind, **fields)
        self.owners.insert(place, view.scope)

    def know(self, uid: str, namespace: str) -> None:
        """The pod with this UID is of this namespace."""
        if uid and (scope := scope_of(namespace)):
            self._ids[uid] = scope

    def _take(self, seen: Seen) -> None:
        scope = self._recording_views[-1].scope if self._recording_views else self._scope(seen)
        self.owners.append(scope)
        if scope:
            view = self._views.get(scope)
            if view is not None:
                view.observe(seen)
        elif not _names_a_pod(seen):
            for view in tuple(self._views.values()):
                view.observe(seen)

    def _scope(self, seen: Seen) -> str:
        match seen:
            case RecordedCall():
                scope = self._calls[seen.id] = self._of_request(seen.rpc, seen.request)
                return scope
            case RecordedReply():
                scope = self._calls.pop(seen.call.id, "")
                self._learn(seen, scope)
                return scope
            case Item():
                return self._of_item(seen.kind, seen.fields)

    def _of_request(self, rpc: str, request: Any) -> str:  # noqa: ANN401 - the request of any rpc
        if rpc == "RunPodSandbox":
            metadata = request.config.metadata
            self.know(metadata.uid, metadata.namespace)
            return scope_of(metadata.namespace)
        if rpc == "PullImage":
            return scope_of(request.sandbox_config.metadata.namespace)
        filtered = getattr(request, "filter", None)
        named = (
            getattr(request, "container_id", ""),
            getattr(request, "pod_sandbox_id", ""),
            getattr(filtered, "id", ""),
            getattr(filtered, "pod_sandbox_id", ""),
            dict(getattr(filtered, "label_selector", {})).get("io.kubernetes.pod.uid", ""),
        )
        return next((self._ids[each] for each in named if each in self._ids), "")

    def _learn(self, reply: RecordedReply, scope: str) -> None:
        if not scope or isinstance(reply.outcome, Failed):
            return
        response: Any = reply.outcome
        if reply.call.rpc == "RunPodSandbox":
            self._ids[response.pod_sandbox_id] = scope
        elif reply.call.rpc == "CreateContainer":
            self._ids[response.container_id] = scope

    def _of_item(self, kind: str, fields: dict[str, Any]) -> str:
        if kind == "message":
            fields = {**fields["message"], **fields}
        pod: Json = fields.get(_WHOSE.get(kind, "")) or {}
        metadata: Json = pod.get("metadata") or {}
        namespace: str = fields.get("namespace") or metadata.get("namespace") or ""
        uid: str = fields.get("uid") or metadata.get("uid") or ""
        if scope_of(namespace):
            self.know(uid, namespace)
            return scope_of(namespace)
        # A path of a pod has its UID in it.
        parts: list[str] = fields["path"].replace("_", "/").split("/") if kind == "disk" else []
        named = uid, fields.get("container_id") or "", fields.get("sandbox_id") or "", *parts
        return next((self._ids[each] for each in named if each in self._ids), "")


def _names_a_pod(seen: Seen) -> bool:
    """Whether it is about one pod, so that it cannot be about another."""
    return isinstance(seen, Item) and seen.kind in {"status", "deleted", "event", "pod"}


class _Gone:
    """Decides by which answers a record is gone: of a container or, without its id, of a sandbox."""

    def __init__(self, container_id: str, sandbox_id: str) -> None:
        self._id = container_id or sandbox_id
        self._asked = "container_id" if container_id else "pod_sandbox_id"
        self._listing = "ListContainers" if container_id else "ListPodSandbox"
        self._status = "ContainerStatus" if container_id else "PodSandboxStatus"
        self._had_it = {b""}
        """The filters that it met; that of everything is empty."""

    def is_told_by(self, reply: RecordedReply) -> bool:
        """Whether this answer, one after another, shows that it is gone.

        Such is a list without it where it had been listed, or a status that is not found.
        """
        request: Any = reply.call.request
        if isinstance(reply.outcome, Failed):
            is_read = reply.call.rpc == self._status and getattr(request, self._asked) == self._id
            return is_read and reply.outcome.code == "NOT_FOUND"
        if reply.call.rpc != self._listing or request.filter.HasField("state"):
            return False
        response: Any = reply.outcome
        records = response.containers if self._listing == "ListContainers" else response.items
        asked = request.filter.SerializeToString(deterministic=True)
        if self._id not in {each.id for each in records}:
            return asked in self._had_it
        self._had_it.add(asked)
        return False
