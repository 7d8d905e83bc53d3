"""What a kubelet shows of its pods, put on the record: its PodList, and the events in its log.

A kubelet writes events with --v=3 or more, as `"Event occurred" object="ns/name" ...`.
"""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any, cast

import aiohttp

from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_conformance.trace.format.records import EVENT_KINDS
from kubelet_reference.server.host.clock import LoopClock

Json = dict[str, Any]
_LOOK_SECONDS = 0.1
_ANSWER_SECONDS = 5.0
_OK = 200
_MARK = '] "Event occurred" '
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')


class PodWatch:
    """Reads the PodList at `url` ten times a second while `is_running()`; statuses are sampled that way."""

    def __init__(self, url: str, recorder: Recorder, is_running: Callable[[], bool]) -> None:
        self._url = url
        self._recorder = recorder
        self._is_running = is_running
        self._pods: dict[tuple[str, str], Json] = {}
        self._statuses: dict[str, Json] = {}

    def pod(self, namespace: str, name: str) -> Json | None:
        """The pod as it was last shown; None if it was not in the last list."""
        return self._pods.get((namespace, name))

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        clock = LoopClock(0)
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                if self._is_running():
                    await self._look(session)
                await clock.sleep(_LOOK_SECONDS)

    async def _look(self, session: aiohttp.ClientSession) -> None:
        """Look once; no answer, or one that is no list, leaves what was seen before."""
        try:
            async with session.get(self._url) as answer:
                found = json.loads(await answer.read()) if answer.status == _OK else None
        except (aiohttp.ClientError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            return
        if isinstance(found, dict):
            self.take(cast("Json", found).get("items") or [])

    def take(self, items: Any) -> None:  # noqa: ANN401 - what a server answered
        """Take a list of pods; a status that has changed goes onto the record."""
        found = cast("list[object]", items) if isinstance(items, list) else []
        pods = [cast("Json", each) for each in found if _is_pod(each)]
        self._pods = {
            (each["metadata"].get("namespace", "default"), each["metadata"]["name"]): each for each in pods
        }
        for (namespace, name), pod in self._pods.items():
            uid = str(pod["metadata"].get("uid", ""))
            status: Json = pod.get("status") or {}
            if self._statuses.get(uid) == status:
                continue
            self._statuses[uid] = status
            deletion = pod["metadata"].get("deletionTimestamp")
            self._recorder.record(
                "status", uid=uid, namespace=namespace, name=name, status=status, deletion=deletion
            )


def _is_pod(value: object) -> bool:
    metadata: Any = cast("Json", value).get("metadata") if isinstance(value, dict) else None
    return isinstance(metadata, dict) and isinstance(cast("Json", metadata).get("name"), str)


def event_fields(line: str) -> dict[str, str] | None:
    """The fields of an event's line; None for any other line."""
    _, mark, rest = line.partition(_MARK)
    if not mark:
        return None
    return {name: _unquoted(value) for name, value in _FIELD.findall(rest)}


def _unquoted(value: str) -> str:
    """The text of a field. Go and JSON quote alike, but for rare characters, which stay as they are."""
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value[1:-1]


class LogEvents:
    """Puts events in a kubelet's log on the record.

    `uid_of` knows the UID of the pod that an event is about, "" for none, by the pod's namespace and name and
    the event's field path.
    """

    def __init__(self, recorder: Recorder, uid_of: Callable[[str, str, str], str]) -> None:
        self._recorder = recorder
        self._uid_of = uid_of

    def read_line(self, line: bytes) -> None:
        """Take a line of the log."""
        fields = event_fields(line.decode(errors="replace"))
        if fields is None or fields.get("kind") not in EVENT_KINDS:
            return
        namespace, _, name = fields.get("object", "").rpartition("/")
        container = fields.get("fieldPath", "")
        found = self._uid_of(namespace, name, container) if fields["kind"] == "Pod" else name
        uid = fields.get("uid") or found
        self._recorder.record(
            "event",
            uid=uid or None,
            namespace=namespace,
            name=name,
            type=fields.get("type", ""),
            reason=fields.get("reason", ""),
            message=fields.get("message", ""),
            count=1,
            container=container or None,
        )
