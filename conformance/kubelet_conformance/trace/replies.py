"""The latest full replies, which a later reply may name by `same`; reader and writer forget alike."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from kubelet_conformance.trace.records import Body, Call

__all__ = ("REMEMBERED_REPLIES", "REMEMBERED_REPLY_BYTES", "SHORT_REQUEST_BYTES", "LatestReplies")

REMEMBERED_REPLIES = 4_096
"""How many (rpc, request) pairs keep their latest full reply for a later `same`."""
REMEMBERED_REPLY_BYTES = 64 * 1024 * 1024
"""How many bytes of replies are kept for a later `same`."""

SHORT_REQUEST_BYTES = 80
"""A shorter request has no map whose keys could stand in another order."""

_Key: TypeAlias = tuple[str, bytes]


class _Kept(msgspec.Struct, gc=False):
    key: _Key
    body: Body
    size: int


class LatestReplies:
    """The latest full reply of each (rpc, request), the oldest forgotten first."""

    def __init__(self) -> None:
        self._id_of: dict[_Key, str] = {}
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    def remember(self, call: Call, body: Body) -> None:
        """Keep this full reply in place of the one before it."""
        key = _key(call)
        older = self._id_of.get(key)
        if older is not None:
            self._drop(older)
        if call.id in self._kept:
            self._drop(call.id)
        size = len(body.raw)
        self._id_of[key] = call.id
        self._kept[call.id] = _Kept(key, body, size)
        self._bytes += size
        while len(self._kept) > REMEMBERED_REPLIES or self._bytes > REMEMBERED_REPLY_BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, call_id: str) -> None:
        kept = self._kept.pop(call_id)
        del self._id_of[kept.key]
        self._bytes -= kept.size

    def find(self, call: Call, same: str) -> Body | None:
        """The body `same` refers to, if it is the latest full reply of this rpc and request."""
        kept = self._kept.get(same)
        return kept.body if kept is not None and kept.key == _key(call) else None

    def latest(self, call: Call) -> tuple[str, Body] | None:
        """The latest full reply of this rpc and request, with the id of its call."""
        call_id = self._id_of.get(_key(call))
        return None if call_id is None else (call_id, self._kept[call_id].body)


def _key(call: Call) -> _Key:
    request = call.request
    if not request.canonical:
        request.canonical = _canonical(request)
    return call.rpc, request.canonical


def _canonical(request: Body) -> bytes:
    """What all requests equal to this one have in common."""
    raw = bytes(request.raw)
    if len(raw) <= SHORT_REQUEST_BYTES:
        return raw
    # Real recorders do not sort the keys of maps, so equal requests may differ in their bytes.
    # What does not parse equals only itself.
    with suppress(msgspec.MsgspecError, RecursionError, ValueError):
        raw = msgspec.json.encode(request.json(), order="deterministic")
    return blake2b(raw, digest_size=16).digest()
