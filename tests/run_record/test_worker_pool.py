"""Scenarios that are played ahead, in processes of their own: the same comes of them."""

import os
import re
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from multiprocessing import active_children
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from playing_run import runs_of

from kubelet_conformance.contract.checking import Judged, Trace
from kubelet_conformance.plugin import hooks
from kubelet_conformance.plugin.session import Session
from kubelet_conformance.run_record import worker_pool
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.run_record.worker_pool import Ahead, ProcessDiedError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux copies processes safely")


def _a_scenario(name: str) -> Played:
    return Played(name, Judged(Trace(name, None, None, None, name, os.getpid()), {}, ()))


def _a_deadly_scenario() -> Played:
    os.kill(os.getpid(), signal.SIGKILL)
    return _a_scenario("nobody")


def _an_endless_scenario() -> Played:
    while True:
        signal.pause()


def _ahead(scenarios: Mapping[str, Callable[[], Played]]) -> Ahead[Played]:
    return Ahead(lambda key: scenarios[key](), scenarios, 2)


def test_each_gets_its_own() -> None:
    """What came of each scenario is handed out for its key, and none was played here."""
    scenarios = {f"key {number}": partial(_a_scenario, f"scenario {number}") for number in range(20)}

    with closing(_ahead(scenarios)) as ahead:
        found = [ahead.take(key) for key in scenarios]

    assert [played.scenario for played in found] == [f"scenario {number}" for number in range(20)]
    assert os.getpid() not in {played.judged.trace.records for played in found}


def test_more_can_be_asked_for() -> None:
    """What is added later is played as well, more than the processes have room for at a time."""
    keys = [f"key {number}" for number in range(20)]
    with closing(Ahead(_a_scenario, keys[:1], 2)) as ahead:
        for key in keys[1:]:
            ahead.add(key)

        assert [ahead.take(key).scenario for key in keys] == keys


def test_what_is_not_played_is_not_waited_for() -> None:
    """Asking for another scenario raises."""
    with closing(_ahead({"one": partial(_a_scenario, "one")})) as ahead, pytest.raises(LookupError):
        ahead.take("two")


def test_process_that_dies_is_reported() -> None:
    """What a process that is gone was to play is not waited for."""
    with (
        closing(_ahead({"one": _a_deadly_scenario})) as ahead,
        pytest.raises(ProcessDiedError, match="ended by itself with code -9"),
    ):
        ahead.take("one")


def test_process_that_dies_while_it_writes_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends in the middle of a result is not waited for either."""

    def half(connection: Connection, *_: object) -> None:
        os.write(connection.fileno(), struct.pack("!i", 1000) + b"half")
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(worker_pool, "_work", half)
    with closing(_ahead({"one": _a_deadly_scenario})) as ahead, pytest.raises(ProcessDiedError):
        ahead.take("one")


def test_run_ends_with_the_process_that_dies(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose process dies ends with 4 and one message that says how it died, and reports nothing."""

    def deadly(*_: object, **__: object) -> Played:
        return _a_deadly_scenario()

    run = runs_of(capsys, monkeypatch)
    monkeypatch.setattr(hooks, "_WORTH_PROCESSES", 2)
    monkeypatch.setattr(hooks, "processors", lambda: 2)
    monkeypatch.setattr(Session, "play", deadly)
    ended = run("EPH-*")

    assert (ended.code, ended.out) == (4, "")
    assert ended.err.count("error: ") == 1
    assert "error: a process that plays scenarios ended by itself with code -9" in ended.err


def test_endless_scenario_is_ended() -> None:
    """A run that gives up need not wait for what is being played."""
    before = set(active_children())
    ahead = _ahead({"one": _an_endless_scenario})
    begun = [process for process in active_children() if process not in before]

    ahead.close()
    for process in begun:
        process.join(timeout=30)

    assert len(begun) == 2
    assert not [process.pid for process in begun if Path(f"/proc/{process.pid}").exists()]


def test_report_is_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One process or several: the report, but for the time, and the traces are the same, byte for byte."""
    run = runs_of(capsys, monkeypatch)
    monkeypatch.setattr(hooks, "_WORTH_PROCESSES", 2)
    made: list[tuple[str, dict[str, bytes]]] = []
    for processes in (1, 2):
        monkeypatch.setattr(hooks, "processors", lambda number=processes: number)
        record = tmp_path / "record"
        ended = run("EPH-*", "--record", record, "--format", "json")
        traces = {path.name: path.read_bytes() for path in (record / "traces").iterdir()}
        made.append((re.sub(r'"(started|seconds)": .*', "", ended.out), traces))

    assert made[0] == made[1]
    assert len(made[0][1]) > 2
