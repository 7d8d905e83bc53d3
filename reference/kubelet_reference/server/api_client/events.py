"""Events at the API server: repeats are counted in one object, similar ones are combined, floods are cut.

The numbers are those of client-go. Whoever records an event never waits: a queue is sent by a task of its
own, and what does not fit into it is dropped.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from kubelet_reference.api import pods
from kubelet_reference.server.api_client.client import ApiClient
from kubelet_reference.server.api_client.json_fields import Json
from kubelet_reference.server.api_client.times import rfc3339
from kubelet_reference.util.ports import ApiError, Clock, EventSink, PodEvent

_LOG = logging.getLogger("kubelet_reference.events_client")
_QUEUE_MAX = 1000
_TRIES, _RETRY_SECONDS = 12, 10.0
_REMEMBERED = 4096
_BURST, _REFILL_SECONDS = 25, 300.0
"""So many events about one object at once, and one more every five minutes."""
_SIMILAR_MAX, _SIMILAR_SECONDS = 10, 600.0
"""From so many different messages on within this time, events that differ in it alone are combined."""
_COMBINED = "(combined from similar events): "

V = TypeVar("V")


class _Recent(OrderedDict[tuple[str, ...], V]):
    """A dictionary of what was used last."""

    def put(self, key: tuple[str, ...], value: V) -> V:
        """Remember a value, and forget the one unused longest where there are too many."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > _REMEMBERED:
            self.popitem(last=False)
        return value


@dataclass(slots=True)
class _Bucket:
    """How many more events about an object may be sent, and as of when."""

    left: float
    at: float


@dataclass(slots=True)
class _Similar:
    """The messages of events that are otherwise alike, since when they are collected."""

    last: float
    messages: set[str] = field(default_factory=set[str])


class Correlator:
    """Decides what becomes of each event: a new object, another count of an earlier one, or nothing."""

    def __init__(self, clock: Clock, node_name: str) -> None:
        self._clock = clock
        self._node_name = node_name
        self._last_ns = 0
        self._buckets = _Recent[_Bucket]()
        self._similar = _Recent[_Similar]()
        self._sent = _Recent[Json]()

    def correlated(self, event: PodEvent) -> Json | None:
        """The object to be stored, whose count says whether it is there; None where there are too many."""
        made = self._object(event)
        about = made["involvedObject"]
        whom = about["kind"], made["metadata"]["namespace"], about["name"], about["uid"]
        alike = (*whom, event.type, event.reason)
        key: tuple[str, ...] = (*alike, event.field_path, event.message)
        if self._are_many(alike, event.message):
            key, made["message"] = alike, _COMBINED + event.message
        before = self._sent.get(key)
        if before is not None:
            kept = ("metadata", "firstTimestamp")
            made |= {name: before[name] for name in kept} | {"count": before["count"] + 1}
        self._sent.put(key, made)
        return made if self._may_be_sent(whom) else None

    def _may_be_sent(self, about: tuple[str, ...]) -> bool:
        now = self._clock.monotonic()
        bucket = self._buckets.get(about) or _Bucket(_BURST, now)
        bucket.left = min(_BURST, bucket.left + (now - bucket.at) / _REFILL_SECONDS)
        bucket.at = now
        self._buckets.put(about, bucket)
        if bucket.left < 1:
            return False
        bucket.left -= 1
        return True

    def _are_many(self, alike: tuple[str, ...], message: str) -> bool:
        now = self._clock.monotonic()
        similar = self._similar.get(alike)
        if similar is None or now - similar.last > _SIMILAR_SECONDS:
            similar = _Similar(now)
        similar.last = now
        self._similar.put(alike, similar)
        similar.messages.add(message)
        if len(similar.messages) < _SIMILAR_MAX:
            return False
        similar.messages.remove(message)
        return True

    def _object(self, event: PodEvent) -> Json:
        """A new event of core v1."""
        metadata = pods.metadata(event.pod)
        name, namespace = metadata.name or "", metadata.namespace or "default"
        about: dict[str, Any] = {"kind": "Node", "name": name, "uid": metadata.uid or "", "apiVersion": "v1"}
        if metadata.namespace is not None:
            about |= {
                "kind": "Pod",
                "namespace": namespace,
                "resourceVersion": metadata.resourceVersion or "",
            }
        if event.field_path:
            about["fieldPath"] = event.field_path
        now_ns = self._last_ns = max(self._clock.wall_ns(), self._last_ns + 1)
        return {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": f"{name}.{now_ns:x}", "namespace": namespace},
            "involvedObject": about,
            "reason": event.reason,
            "message": event.message,
            "source": {"component": "kubelet", "host": self._node_name},
            "firstTimestamp": rfc3339(now_ns),
            "lastTimestamp": rfc3339(now_ns),
            "count": 1,
            "type": event.type,
            "reportingComponent": "kubelet",
            "reportingInstance": self._node_name,
        }


class PostedEvents:
    """Fits the port `EventSink`: passes events on to `log`, and to the API server while `run` does."""

    def __init__(self, client: ApiClient, clock: Clock, node_name: str, log: EventSink) -> None:
        self._client = client
        self._clock = clock
        self._log = log
        self._correlator = Correlator(clock, node_name)
        self._queue = asyncio.Queue[Json](_QUEUE_MAX)

    def emit(self, event: PodEvent) -> None:
        """Take the event."""
        self._log.emit(event)
        correlated = self._correlator.correlated(event)
        if correlated is not None and not self._queue.full():
            self._queue.put_nowait(correlated)

    async def run(self) -> NoReturn:
        """Send until cancelled."""
        while True:
            await self._send(await self._queue.get())

    async def _send(self, event: Json) -> None:
        """Send an event, several times where no server is there; one that is refused is dropped."""
        for _ in range(_TRIES):
            try:
                return await self._write(event)
            except ApiError as error:
                if error.code:
                    _LOG.warning("event %s refused: %s", event["metadata"]["name"], error)
                    return None
            await self._clock.sleep(_RETRY_SECONDS)
        return None

    async def _write(self, event: Json) -> None:
        collection = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
        if event["count"] > 1:
            again = {name: event[name] for name in ("count", "lastTimestamp", "message")}
            try:
                await self._client.patch(f"{collection}/{event['metadata']['name']}", again)
            except ApiError as error:
                if not error.is_not_found:
                    raise
            else:
                return
        await self._client.create(collection, event)
