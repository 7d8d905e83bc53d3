"""A trace written line by line, right or wrong."""

import json
from typing import Any

Json = dict[str, Any]
HEADER: Json = {
    "trace": 1,
    "clock": "wall",
    "channels": {"cri": "full", "pods": "sent", "api": "full", "events": "full"},
    "kubernetes": "1.32",
    "from_start": True,
}


def record(seq: int, kind: str, t: float | None = None, **fields: Any) -> Json:
    """A record; a millisecond passes between two of them by default."""
    return {"seq": seq, "t": seq / 1000 if t is None else t, "kind": kind, **fields}


def call(seq: int, rpc: str = "Version", request: object = None, call_id: str | None = None) -> Json:
    """The begin of a call."""
    return record(seq, "call", rpc=rpc, id=call_id or f"c{seq}", request={} if request is None else request)


def reply(seq: int, call_id: str, rpc: str = "Version", **fields: Any) -> Json:
    """The end of a call, with an empty response by default."""
    return record(seq, "reply", rpc=rpc, id=call_id, **(fields or {"response": {}}))


def end(seq: int, t: float | None = None) -> Json:
    """The end of observation."""
    return record(seq, "end", t)


def trace(*lines: Json | bytes, header: Json | bytes = HEADER) -> bytes:
    """A trace file: dicts are encoded, bytes stand as they are."""
    return b"".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in (header, *lines)
    )
