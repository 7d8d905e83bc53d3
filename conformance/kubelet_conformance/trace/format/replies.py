"""The latest full replies, which a later reply may repeat as `same`; reader and writer keep the same ones."""

from collections import OrderedDict
from contextlib import suppress
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from kubelet_conformance.trace.format.records import Body, Call

REMEMBERED_REPLIES = 4_096
"""How many (rpc, request) pairs keep their latest full reply for a later `same`."""
REMEMBERED_REPLY_BYTES = 64 * 1024 * 1024
"""How many bytes of replies are kept for a later `same`."""

_SHORT_REQUEST_BYTES = 80
"""A shorter request has no map whose keys could be in another order."""
_MAKING = frozenset({"CreateContainer", "RunPodSandbox"})
"""Each of their replies has a fresh id. Since none is like another, their long requests need not be read."""

_Key: TypeAlias = tuple[str, bytes]


class _Kept(msgspec.Struct, gc=False):
    call_id: str
    body: Body
    size: int


class LatestReplies:
    """The latest full reply of each (rpc, request), the oldest forgotten first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._bytes = 0

    def remember(self, call: Call, body: Body) -> None:
        """Keep this full reply in place of the one before it."""
        kept, key, size = self._kept, call.request.key or key_of(call), len(body.raw)
        older = kept.pop(key, None)
        if older is not None:
            self._bytes -= older.size
        kept[key] = _Kept(call.id, body, size)
        self._bytes += size
        while len(kept) > REMEMBERED_REPLIES or self._bytes > REMEMBERED_REPLY_BYTES:
            self._bytes -= kept.popitem(last=False)[1].size

    def find(self, call: Call, same: str) -> Body | None:
        """The body `same` refers to, if it is the latest full reply of this rpc and request."""
        kept = self._kept.get(call.request.key or key_of(call))
        return kept.body if kept is not None and kept.call_id == same else None

    def latest(self, call: Call) -> tuple[str, Body] | None:
        """The latest full reply of this rpc and request, with the id of its call."""
        kept = self._kept.get(call.request.key or key_of(call))
        return None if kept is None else (kept.call_id, kept.body)


def key_of(call: Call) -> _Key:
    """The rpc, and what all requests that are equal to this one have in common."""
    raw = bytes(call.request.raw)
    if len(raw) > _SHORT_REQUEST_BYTES:
        # Real recorders do not sort the keys of maps, so equal requests may differ in their bytes.
        # What does not parse equals only itself.
        if call.rpc not in _MAKING:
            with suppress(msgspec.MsgspecError, RecursionError, ValueError):
                raw = msgspec.json.encode(call.request.json(), order="deterministic")
        raw = blake2b(raw, digest_size=16).digest()
    key = call.request.key = call.rpc, raw
    return key
