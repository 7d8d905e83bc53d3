"""The state at the begin of a slice: desired pods, active faults and whether the kubelet is down.

A trace that begins in the middle does not have which pods were desired, that the kubelet was down, or which
faults were injected. Records at the cut repeat this, and give the original time by `since`.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import TypeAlias

import msgspec

from kubelet_conformance.trace.format.json_values import Json, object_of, text_of
from kubelet_conformance.trace.format.labels import STATIC_SOURCES

_HEALED = "healed: "
_STATIC_REMEMBERED = 20_000
_KEPT_BYTES = 64 * 1024 * 1024
_Key: TypeAlias = tuple[str, str, str, str]


class CarriedOverState:
    """Receives every record of the kinds `pod`, `deleted`, `kubelet` and `fault`; others are ignored.

    Manifests are kept as bytes, 64 MiB of them: beyond that the oldest are forgotten. A static pod whose
    manifest has changed is not repeated: its earlier version may still be running, and no record says so.
    """

    def __init__(self) -> None:
        self._pods: dict[_Key, tuple[float, bytes]] = {}
        self._bytes = 0
        self._static: dict[_Key, bytes] = {}
        """The first manifest of each static pod without a UID, as a digest; empty if another one followed."""
        self._down: tuple[float, str] | None = None
        self._faults: dict[str, float] = {}

    def take(self, t: float, kind: str, fields: Json) -> None:
        """One record, in order; `fields` without seq, t and kind."""
        if kind == "pod":
            self._pod(t, fields)
        elif kind == "deleted":
            self._drop([key for key in self._pods if key[3] and key[3] == fields.get("uid")])
        elif kind == "kubelet" and (op := fields.get("op")) != "panicked":
            self._down = None if op == "started" else (t, str(op))
        elif kind == "fault":
            self._fault(t, str(fields.get("what", "")))

    def records(self) -> Iterator[tuple[str, Json]]:
        """Kind and fields of what is to be repeated, each with `since`, in seconds."""
        if self._down is not None:
            yield "kubelet", {"op": self._down[1], "since": self._down[0]}
        for what, t in self._faults.items():
            yield "fault", {"what": what, "since": t}
        for t, raw in self._pods.values():
            yield "pod", {**msgspec.json.decode(raw), "since": t}

    def _pod(self, t: float, fields: Json) -> None:
        meta = object_of(object_of(fields, "pod"), "metadata") if fields.get("op") == "set" else fields
        uid, namespace = text_of(meta, "uid"), text_of(meta, "namespace") or "default"
        key = text_of(fields, "source") or "api", namespace, text_of(meta, "name"), uid
        if fields.get("op") == "set":
            self._drop([key])
            raw = msgspec.json.encode(fields)
            if not self._is_clear(key, raw):
                return
            self._pods[key] = float(fields.get("since", t)), raw
            self._bytes += len(raw)
            while self._bytes > _KEPT_BYTES:
                self._drop([next(iter(self._pods))])
        else:
            self._drop([each for each in self._pods if each[:3] == key[:3] and uid in {"", each[3]}])

    def _is_clear(self, key: _Key, raw: bytes) -> bool:
        """Whether it is certain which version of the pod may be running."""
        if key[0] not in STATIC_SOURCES or key[3]:
            return True
        digest = blake2b(raw, digest_size=16).digest()
        if self._static.setdefault(key, digest) != digest:
            self._static[key] = b""
        if len(self._static) > _STATIC_REMEMBERED:
            del self._static[next(iter(self._static))]
        return self._static.get(key) == digest

    def _drop(self, keys: list[_Key]) -> None:
        for key in keys:
            gone = self._pods.pop(key, None)
            if gone is not None:
                self._bytes -= len(gone[1])

    def _fault(self, t: float, what: str) -> None:
        if what.startswith(_HEALED):
            back = what.removeprefix(_HEALED)
            # "the API server is back" heals "the API server is away": the subject says which.
            subject = _subject(back)
            for fault in [each for each in self._faults if each == back or _subject(each) == subject]:
                del self._faults[fault]
        else:
            self._faults[what] = t


def _subject(what: str) -> str:
    """What a fault is about: `the API server is away` and `the API server is back` have the same."""
    return what.partition(" is ")[0]
