"""Long traces of real make: the histories of one Kubernetes version, one after another, over and over.

Each history is written with fresh ids, UIDs and call ids, its times and time stamps moved. After each
the kubelet stops and the node is wiped, so that no more lives at the end than at the beginning. Mix of
records, requests and replies are therefore those of the real traces.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2s
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import msgspec
from farewell import farewell

_CHANGING = re.compile(
    r'"seq":\d+'
    r'|"t":[\d.]+'
    r'|"(?:id|same)":"c\d+"'
    r"|(?<![0-9a-f])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})(?![0-9a-f])"
    r"|\b\d{19}\b"
    r"|\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
)
_PAUSE_SECONDS = 2


@dataclass(frozen=True, slots=True)
class History:
    """One recorded history without its header and its end."""

    header: dict[str, Any]
    lines: str
    records: int
    seconds: float

    @property
    def started(self) -> datetime:
        """The time of day at which it began."""
        return datetime.fromisoformat(self.header["started"])


def histories(folder: Path) -> list[History]:
    """The traces of one folder, in order."""
    return [_history(path) for path in sorted(folder.glob("*.jsonl"))]


def _history(path: Path) -> History:
    header, *records = msgspec.json.Decoder().decode_lines(path.read_bytes())
    body = [*records[:-1], *farewell(records[:-1])]
    lines = msgspec.json.Encoder().encode_lines(body).decode()
    return History(header, lines, len(body), body[-1]["t"])


def mix(paths: Iterable[Path]) -> dict[str, float]:
    """The share of each kind of record, and the mean number of bytes of a record."""
    kinds: dict[str, int] = {}
    size = 0
    for path in paths:
        with path.open("rb") as file:
            for line in islice(file, 1, None):
                kind = msgspec.json.decode(line)["kind"]
                kinds[kind] = kinds.get(kind, 0) + 1
                size += len(line)
    total = sum(kinds.values())
    return {kind: number / total for kind, number in sorted(kinds.items())} | {"bytes": size / total}


def stitch(path: Path, parts: list[History], records: int) -> int:
    """Write a trace of at least so many records; ends after a whole history. Returns how many it has."""
    seq, t = count(1), 0.0
    first = parts[0]
    written = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(_line(first.header))
        for number, part in enumerate(cycle(parts)):
            if written >= records:
                break
            t = _whole_seconds_away(first, part, t)
            retold = _Retold(number, t, first.started + timedelta(seconds=t) - part.started, seq)
            file.write(_CHANGING.sub(retold, part.lines))
            written += part.records
            t += part.seconds + _PAUSE_SECONDS
        file.write(_line({"seq": next(seq), "t": round(t, 4), "kind": "end"}))
    return written + 1


def _line(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode() + "\n"


def _whole_seconds_away(first: History, part: History, t: float) -> float:
    """The next time at which the part can begin with its time stamps moved by whole seconds."""
    apart = (part.started - first.started).total_seconds()
    return round(apart + math.ceil(t - apart), 4)


class _Retold:
    """Replaces what must be fresh each time a history is written."""

    def __init__(self, number: int, t: float, moved: timedelta, seq: count[int]) -> None:
        self._number = number
        self._t = t
        self._moved = timedelta(seconds=round(moved.total_seconds()))
        self._seq = seq
        self._known: dict[str, str] = {}

    def __call__(self, match: re.Match[str]) -> str:
        text = match[0]
        if text.startswith('"seq"'):
            return f'"seq":{next(self._seq)}'
        if text.startswith('"t"'):
            return f'"t":{round(self._t + float(text[4:]), 4)}'
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._fresh(text)
        return found

    def _fresh(self, text: str) -> str:
        if text[0] == '"':
            return f'{text[:-1]}-{self._number}"'
        if "T" in text:
            return (datetime.fromisoformat(text) + self._moved).strftime("%Y-%m-%dT%H:%M:%SZ")
        if len(text) == len("1795215834497883779"):
            return str(int(text) + self._moved // timedelta(microseconds=1) * 1000)
        digits = blake2s(f"{self._number} {text}".encode(), digest_size=16).hexdigest()
        return _like(text, digits)


def _like(uid: str, digits: str) -> str:
    """The digits, with dashes where the UID has them."""
    drawn = iter(digits)
    return "".join("-" if letter == "-" else next(drawn) for letter in uid)
