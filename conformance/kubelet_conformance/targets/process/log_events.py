"""Events as a kubelet writes them to its log, with --v=3 or more: `"Event occurred" object="ns/name" ...`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from kubelet_conformance.trace.recorder import Recorder

_MARK = '] "Event occurred" '
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')


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
    """Puts events in a kubelet's log on the record; `uid_of` knows the UID of a pod, "" for none."""

    def __init__(self, recorder: Recorder, uid_of: Callable[[str, str], str]) -> None:
        self._recorder = recorder
        self._uid_of = uid_of

    def hear(self, line: bytes) -> None:
        """Take a line of the log."""
        fields = event_fields(line.decode(errors="replace"))
        if fields is None or fields.get("kind") != "Pod":
            return
        namespace, _, name = fields.get("object", "").partition("/")
        uid = fields.get("uid") or self._uid_of(namespace, name)
        self._recorder.record(
            "event",
            uid=uid or None,
            namespace=namespace,
            name=name,
            type=fields.get("type", ""),
            reason=fields.get("reason", ""),
            message=fields.get("message", ""),
            count=1,
            container=fields.get("fieldPath") or None,
        )
