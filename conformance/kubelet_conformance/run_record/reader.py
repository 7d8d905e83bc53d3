"""Reads a record: the folder of a run, finished or not, or the same packed."""

import json
import tarfile
import zlib
from collections.abc import Collection, Generator
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from kubelet_conformance.run_record.earlier import upgraded
from kubelet_conformance.run_record.merging import joined_contracts, totals
from kubelet_conformance.run_record.model import (
    SCHEMA,
    ContractResult,
    Ended,
    Run,
    ScenarioResult,
    TraceResult,
    Unreadable,
)
from kubelet_conformance.run_record.record import JOURNAL, LOGS, RUN, TRACE, TRACES, Record
from kubelet_conformance.run_record.results import finished
from kubelet_conformance.run_record.temporary_folder import TemporaryFolder
from kubelet_conformance.run_record.writer import RecordError

_PACK_PARTS = frozenset({RUN, JOURNAL, TRACES, LOGS})
_EXPECTED = "name the folder of `run --record`, or the file that it was packed into"


class _Line(msgspec.Struct, frozen=True):
    """One line of the journal: a scenario that is over, and the contracts that it exercised or broke."""

    scenario: ScenarioResult
    contracts: tuple[ContractResult, ...]


@contextmanager
def opened(name: str) -> Generator[Record]:
    """The record of that name; a pack is unpacked for as long.

    Of a pack that is cut off there is what could be unpacked, and the run says that the rest is missing.
    Raises RecordError for what is no record, or is one that this suite cannot read.
    """
    with _folder_of(name) as (folder, is_whole):
        run = _read(folder, name)
        yield Record(run if is_whole else _cut_off(run, name), folder, name)


def read_run(name: str) -> Run | None:
    """What a record says of its run, without its traces; None for traces that no run was kept with.

    Raises RecordError as `opened` does.
    """
    with unpacked(name, frozenset({RUN})) as folder:
        return _read(folder, name) if (folder / RUN).exists() else None


@contextmanager
def unpacked(name: str, wanted: Collection[str] = ()) -> Generator[Path]:
    """The folder of a record, or of traces; a pack is unpacked for as long, or what is `wanted` of it."""
    with _folder_of(name, wanted) as (folder, is_whole):
        if not is_whole:
            raise RecordError(f"{name}: is cut off: copy it again")
        yield folder


@contextmanager
def _folder_of(name: str, wanted: Collection[str] = ()) -> Generator[tuple[Path, bool]]:
    """The folder of a record, and whether all is in it that is wanted."""
    path = Path(name)
    if path.is_dir():
        yield path, True
        return
    with TemporaryFolder() as folder:
        yield Path(folder), _unpack(path, name, Path(folder), set(wanted))


def _unpack(path: Path, name: str, folder: Path, wanted: set[str]) -> bool:
    """Unpack what is wanted; false for a pack that is cut off behind the verdicts."""
    try:
        with tarfile.open(path) as pack:
            missing = set(wanted)
            for each in pack:
                member = _place(PurePosixPath(each.name))
                is_ours = member.parts[:1] and (member.parts[0] in _PACK_PARTS or member.suffix == TRACE)
                if is_ours and (not wanted or str(member) in wanted):
                    pack.extract(each.replace(name=str(member), deep=False), folder, filter="data")
                    missing.discard(str(member))
                if wanted and not missing:
                    break
    except OSError as error:
        grows = f"its run is not over, or was ended: name {name}.part"
        remedy = grows if Path(f"{name}.part").is_dir() else _EXPECTED
        raise RecordError(f"{name}: cannot be read: {error.strerror or error}; {remedy}") from None
    except (tarfile.TarError, EOFError, zlib.error, LZMAError):
        if not (folder / RUN).is_file():
            raise RecordError(f"{name}: is no packed record, or is cut off; {_EXPECTED}") from None
        return False
    return True


def _cut_off(run: Run, name: str) -> Run:
    """The run of a pack of which the rest is missing."""
    cut = Unreadable(name, None, "is cut off: its last traces are missing or damaged", "copy it again")
    return finished(replace(run, unreadable=(*run.unreadable, cut)))


def _place(member: PurePosixPath) -> PurePosixPath:
    """Where a member of a pack belongs: somebody may have packed the folder, and not what is in it."""
    first, inner = member.parts[:1], member.parts[1:]
    is_below = bool(inner) and first[0] not in _PACK_PARTS and inner[0] in _PACK_PARTS
    return PurePosixPath(*inner) if is_below else member


def _read(folder: Path, name: str) -> Run:
    """The run of a folder; what of an unfinished one is over."""
    path = folder / RUN
    try:
        document: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise RecordError(f"{name}: is no record: it has no {RUN}; {_EXPECTED}") from None
    except OSError as error:
        raise RecordError(f"{name}/{RUN}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        remedy = "copy the record again"
        if any((Path(name) / TRACES).glob(f"*{TRACE}")):
            remedy += f", or judge its traces once more: `kubelet-conformance check {quote(name)}`"
        raise RecordError(f"{name}/{RUN}: is no JSON, or is cut off; {remedy}") from None
    run = _run(document, f"{name}/{RUN}")
    return _so_far(run, folder / JOURNAL) if run.ended is Ended.UNFINISHED else run


def _run(document: object, name: str) -> Run:
    fields = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    schema: object = fields.get("schema")
    if not isinstance(schema, int) or "contracts" not in fields:
        raise RecordError(f"{name}: is not of this tool; {_EXPECTED}")
    if schema > SCHEMA:
        raise RecordError(
            f"{name}: has schema {schema}, and this suite reads up to {SCHEMA}: use a newer suite"
        )
    try:
        return msgspec.convert(upgraded(fields), Run)
    except (msgspec.ValidationError, AttributeError, KeyError, TypeError) as error:
        raise RecordError(f"{name}: is damaged: {error}") from None


def _so_far(run: Run, journal: Path) -> Run:
    """The run with the scenarios that are over; the last line of the journal may be cut off."""
    lines: list[_Line] = []
    try:
        with journal.open("rb") as file:
            lines += (msgspec.convert(json.loads(line), _Line) for line in file)
    except (OSError, ValueError, msgspec.ValidationError):
        pass  # What was read up to here is over.
    contracts = joined_contracts([*run.contracts, *(each for line in lines for each in line.contracts)])
    scenarios = tuple(line.scenario for line in lines)
    traces = {
        each.trace: TraceResult(path=each.trace, scenario=each.name, records=each.records)
        for each in scenarios
        if each.trace
    }
    return finished(
        replace(
            run,
            contracts=contracts,
            totals=totals(contracts),
            scenarios=scenarios,
            traces=tuple(traces.values()),
        )
    )
