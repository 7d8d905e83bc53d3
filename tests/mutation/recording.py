"""Recorded traces as plain dicts, to be changed and written again."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recording:
    """One trace with every `same` written out in full; `name` is folder and file without suffix."""

    name: str
    header: Json
    records: tuple[Json, ...]


def load(path: Path) -> Recording:
    """Read a trace file."""
    header, *lines = msgspec.json.Decoder().decode_lines(path.read_bytes())
    responses = {line["id"]: line["response"] for line in lines if "response" in line}
    records = tuple(_in_full(line, responses) for line in lines)
    return Recording(f"{path.parent.name}/{path.stem}", header, records)


def _in_full(line: Json, responses: Json) -> Json:
    if "same" not in line:
        return line
    full = {key: value for key, value in line.items() if key != "same"}
    return full | {"response": responses[line["same"]]}


def encoded(header: Json, records: Iterable[Json]) -> bytes:
    """The bytes of a trace file, its records numbered anew."""
    numbered = [{**record, "seq": seq} for seq, record in enumerate(records, start=1)]
    return msgspec.json.Encoder().encode_lines([header, *numbered])


def shipped(folder: Path) -> list[Path]:
    """Every trace file of a folder of folders, in order."""
    return sorted(folder.glob("*/*.jsonl"))
