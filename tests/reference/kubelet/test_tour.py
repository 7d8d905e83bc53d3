"""The guide's tour of the reference: its stations are files, and its diagram is what the code says."""

import re
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from kubelet_reference.pod_workers.worker_table import ROWS, State

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
ROOMS = "config", "kubelet", "pod_workers", "kuberuntime", "pleg", "status"


class Station(NamedTuple):
    """A heading of the tour, and the file of the reference that it links to."""

    number: int
    title: str
    path: str


STATIONS = [
    Station(int(number), title, path)
    for number, title, path in re.findall(
        r"^## (\d+)\. (.+)\n\n\[`[^`]+`\]\(\.\./reference/kubelet_reference/([^)]+)\)\n", PAGE, re.MULTILINE
    )
]


def _node(title: str) -> str:
    """The id of a station in the diagram: no room has it."""
    name = title.lower().replace(" ", "_")
    return f"{name}_" if name in ROOMS else name


def _room(station: Station) -> str:
    return station.path.partition("/")[0]


def _drawn() -> list[str]:
    """The diagram's boxes, and the arrows between the worker's states."""
    lines: list[str] = []
    in_rooms = sorted(STATIONS, key=lambda one: (ROOMS.index(_room(one)), one.number))
    for room, stations in groupby(in_rooms, key=_room):
        lines.append(f"    subgraph {room}")
        lines += [f'        {_node(one.title)}["{one.number} {one.title}"]' for one in stations]
        if room == "pod_workers":
            lines += [f"        {state}([{state}])" for state in _in_order()]
        lines.append("    end")
    pairs = dict.fromkeys((row.state, row.next) for row in ROWS if row.state is not row.next)
    lines += [
        f"    {'worker' if state is State.NONE else state} --> {to}"
        for state, to in pairs
        if to is not State.NONE
    ]
    return lines


def _in_order() -> list[State]:
    return [State.WAITING, State.SYNC, State.TERMINATING, State.TERMINATED, State.FINISHED]


def test_ten_stations() -> None:
    """A pod's life has ten stations, in order."""
    titles = "Manifest, Source, Sync loop, Worker, Decision, CRI calls, PLEG, Status, Termination, Garbage"

    assert [(one.number, one.title) for one in STATIONS] == list(enumerate(titles.split(", "), 1))


@pytest.mark.parametrize("station", STATIONS, ids=lambda one: one.title)
def test_each_station_is_a_file(station: Station) -> None:
    """Each station links to a file of the reference."""
    assert (ROOT / "reference" / "kubelet_reference" / station.path).is_file()


def test_diagram_is_what_the_code_says() -> None:
    """The diagram has the rooms of the stations, and the worker's states and arrows as its table has them."""
    diagram = "\n".join(("```mermaid", "flowchart TD", *_drawn(), ""))

    assert diagram in PAGE
    assert set(_in_order()) == set(State) - {State.NONE}
