"""What was observed from outside so far: calls, statuses, events and deletions, for scenarios that wait."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec
from google.protobuf.message import Message

from kubelet_conformance.trace.format.recorder import (
    Failed,
    Item,
    RecordedCall,
    RecordedReply,
    Recorder,
    Seen,
)

Json = dict[str, Any]
_OF_THE_NODE = frozenset(
    {"ListPodSandbox", "ListContainers", "ListImages", "ImageStatus", "Status", "Version"}
)
"""Calls whose requests name no pod, sandbox or container by a field of that name."""
_NO_SUBJECT = ("", "", "", "")


class SeenCall(msgspec.Struct, gc=False):
    """One call to the runtime; `reply_at` is None while it is under way. Times are seconds."""

    rpc: str
    at: float
    request: Any
    pod_uid: str = ""
    container: str = ""
    container_id: str = ""
    sandbox_id: str = ""
    reply_at: float | None = None
    response: Message | None = None
    failed: Failed | None = None

    @property
    def done(self) -> bool:
        """It ended well."""
        return self.reply_at is not None and self.failed is None


class SeenEvent(msgspec.Struct, frozen=True):
    """One event about a pod."""

    at: float
    uid: str
    type: str
    reason: str
    message: str
    container: str


class Observations:
    """Statuses, calls, events and deletions as they were recorded by the moment when they are asked for.

    Most records are never asked about, so each is looked at only then.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._calls: defaultdict[str, list[SeenCall]] = defaultdict(list)
        self._events: list[SeenEvent] = []
        self._statuses: dict[str, Json] = {}
        self._deleted: set[str] = set()
        self._open: dict[str, SeenCall] = {}
        self._owners: dict[str, tuple[str, str]] = {}
        self._unread: list[Seen] = []
        recorder.listeners.append(self._unread.append)

    @property
    def events(self) -> Sequence[SeenEvent]:
        """The events, in order."""
        self._read()
        return self._events

    @property
    def statuses(self) -> Mapping[str, Json]:
        """The status that was last written of each pod, by UID."""
        self._read()
        return self._statuses

    @property
    def deleted(self) -> AbstractSet[str]:
        """The UIDs of the pods whose objects are gone."""
        self._read()
        return self._deleted

    def of(self, rpc: str) -> Sequence[SeenCall]:
        """The calls of one rpc, in order."""
        self._read()
        return self._calls.get(rpc, ())

    def _read(self) -> None:
        for seen in self._unread:
            match seen:
                case RecordedCall():
                    self._begin(seen)
                case RecordedReply():
                    self._end(self._open.pop(seen.call.id), seen)
                case Item():
                    self._item(seen)
        self._unread.clear()

    def _begin(self, seen: RecordedCall) -> None:
        about = _NO_SUBJECT if seen.rpc in _OF_THE_NODE else self._about(seen)
        call = SeenCall(seen.rpc, seen.t, seen.request, *about)
        self._calls[seen.rpc].append(call)
        self._open[seen.id] = call

    def _about(self, seen: RecordedCall) -> tuple[str, str, str, str]:
        """The pod's uid, the container's name, and the ids that a request names."""
        request: Any = seen.request
        container_id = getattr(request, "container_id", "")
        sandbox_id = getattr(request, "pod_sandbox_id", "")
        uid, name = self._owners.get(container_id or sandbox_id, ("", ""))
        if seen.rpc == "RunPodSandbox":
            uid = request.config.metadata.uid
        elif seen.rpc == "PullImage":
            uid = request.sandbox_config.metadata.uid
        elif seen.rpc == "CreateContainer":
            name = request.config.metadata.name
            # The call that has run the sandbox may have failed or got no answer.
            uid = uid or request.sandbox_config.metadata.uid
            self._owners[sandbox_id] = uid, ""
        return uid, name, container_id, sandbox_id

    def _end(self, call: SeenCall, reply: RecordedReply) -> None:
        call.reply_at = reply.t
        if isinstance(reply.outcome, Failed):
            call.failed = reply.outcome
            return
        response: Any = reply.outcome
        call.response = response
        if call.rpc == "CreateContainer":
            call.container_id = response.container_id
            self._owners[call.container_id] = call.pod_uid, call.container
        elif call.rpc == "RunPodSandbox":
            call.sandbox_id = response.pod_sandbox_id
            self._owners[call.sandbox_id] = call.pod_uid, ""

    def _item(self, item: Item) -> None:
        fields = item.fields
        if item.kind == "status":
            self._statuses[fields["uid"]] = fields["status"]
        elif item.kind == "deleted":
            self._deleted.add(fields["uid"])
        elif item.kind == "event":
            self._events.append(
                SeenEvent(
                    item.t,
                    fields["uid"],
                    fields["type"],
                    fields["reason"],
                    fields["message"],
                    fields.get("container") or "",
                )
            )
