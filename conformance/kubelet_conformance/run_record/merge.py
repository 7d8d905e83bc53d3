"""Joins the records of the parts of a run into one, with their traces and logs."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from kubelet_conformance.run_record.changes import free_name, with_traces
from kubelet_conformance.run_record.merging import joined_runs
from kubelet_conformance.run_record.model import Ended, Run
from kubelet_conformance.run_record.record import TRACES, Record
from kubelet_conformance.run_record.results import finished
from kubelet_conformance.run_record.writer import RecordError, RecordWriter


def merged(
    parts: Sequence[Record], missing: Sequence[str], writer: RecordWriter, command: tuple[str, ...]
) -> Run:
    """The run of all parts, without the `missing`; traces and logs are copied to where the writer writes."""
    taken: set[str] = set()
    runs = [_copied(part, writer, taken) for part in parts]
    whole = replace(joined_runs(runs), command=command, shard="")
    return finished(replace(whole, ended=Ended.UNFINISHED) if missing else whole)


def missing_parts(parts: Sequence[Record]) -> list[str]:
    """The parts that these leave out of the run that they are of, such as 2/5.

    Raises RecordError for one given twice, and for parts that are not of the same suite, kind and target.
    """
    _check_alike(parts)
    given: dict[str, str] = {}
    for part in parts:
        shard = part.run.shard
        if shard in given:
            raise RecordError(f"{part.name}: is part {shard}, as {given[shard]} is: give each part once")
        if shard:
            given[shard] = str(part.name)
    count = _count(parts[0].run)
    every = [f"{number}/{count}" for number in range(1, count + 1)]
    return [each for each in every if each not in given]


def _count(run: Run) -> int:
    """Of how many parts it is one; 0 for a run that was not shared out."""
    return int(run.shard.partition("/")[2] or 0)


def _check_alike(parts: Sequence[Record]) -> None:
    first, *others = parts
    for part in others:
        for name, one, other in _compared(first.run, part.run):
            if one == other:
                continue
            raise RecordError(
                f"{part.name}: its {name} is {other}, that of {first.name} is {one}: join parts of one run"
            )


def _compared(one: Run, other: Run) -> Iterator[tuple[str, object, object]]:
    """The fields in which parts of one run may not differ, each with both values."""
    for name in ("suite", "kind"):
        yield name, getattr(one, name), getattr(other, name)
    for name in one.target.__struct_fields__:
        yield f"target.{name}", getattr(one.target, name), getattr(other.target, name)
    yield "number of parts", _count(one), _count(other)


def _copied(part: Record, writer: RecordWriter, taken: set[str]) -> Run:
    """The run of a part with its traces under names that no other part has."""
    names: dict[str, str] = {}
    for trace in part.run.traces:
        file = part.file(trace.path)
        if not file.is_file():
            continue
        stem = free_name(file.stem, taken.__contains__)
        taken.add(stem)
        names[trace.path] = f"{TRACES}/{stem}.jsonl"
        _copy(file, writer.traces / f"{stem}.jsonl")
        log = part.log(trace.path)
        if log is not None:
            writer.logs.mkdir(exist_ok=True)
            _copy(log, writer.logs / f"{stem}.log")
    return with_traces(part.run, lambda path: names.get(path, path))


def _copy(file: Path, to: Path) -> None:
    try:
        shutil.copyfile(file, to)
    except OSError as error:
        raise RecordError(f"{to}: cannot be written: {error.strerror or error}") from None
