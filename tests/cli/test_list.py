"""`list` and `explain`: every contract of the catalogue with its fate."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command import in_process

from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.catalogue import Fate, entries
from kubelet_conformance.scenarios import every_scenario


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The list for programs."""
    ended = in_process(capsys, "list", *arguments, "--format", "json")

    assert (ended.code, ended.err) == (0, "")
    found: dict[str, Any] = json.loads(ended.out)
    return found


def test_every_contract_has_a_fate(capsys: pytest.CaptureFixture[str]) -> None:
    """All of the catalogue is there in order; what is judged is implemented; what is excluded says why."""
    found = listed(capsys)["contracts"]
    judged = {each["id"] for each in found if each["fate"] == "implemented"}

    assert [each["id"] for each in found] == list(rows())
    assert judged == set(every_contract())
    assert all(bool(each["reason"]) is (each["fate"] == "excluded") for each in found)


def test_nothing_is_both_excluded_and_judged() -> None:
    """A contract that is judged is not excluded in the catalogue."""
    both = [
        each.row.id
        for each in entries(every_contract())
        if each.contract and each.row.fate.state == "excluded"
    ]

    assert both == []


def test_totals_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The totals count the fates, in both forms."""
    totals = listed(capsys)["totals"]
    last = in_process(capsys, "list").out.splitlines()[-1]

    assert sum(totals.values()) == len(rows())
    assert last == f"{len(rows())} contracts: " + ", ".join(f"{totals[fate]} {fate}" for fate in Fate)


def test_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Every scenario is listed with what it exercises, in both forms; a glob or an area narrows the list."""
    every = listed(capsys, "--scenarios")["scenarios"]
    some = in_process(capsys, "list", "--scenarios", "sandbox.killed_*").out
    of_area = listed(capsys, "--scenarios", "--area", "EPH")["scenarios"]
    none = in_process(capsys, "list", "--scenarios", "nope*")

    assert [each["name"] for each in every] == list(every_scenario())
    assert all(each["about"] for each in every)
    assert "sandbox.killed_sandbox_is_replaced  SANDBOX-02 " in some
    assert some.endswith("\n1 scenario\n")
    assert of_area == [each for each in every if any("EPH-" in name for name in each["exercises"])]
    assert none.code == 2
    assert "there is no scenario nope*" in none.err


def test_text_is_searched_for(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets the whole text of each rule; --search keeps what contains a text."""
    found = in_process(capsys, "list", "--search", "BEGINS the series").out

    assert found.startswith("BACKOFF-03 ")
    assert "begins the series anew; a shorter one does not." in found
    assert "…" not in in_process(capsys, "list").out


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (("--area", "sandbox"), "area", "SANDBOX"),
        (("--level", "should"), "level", "SHOULD"),
        (("--fate", "excluded"), "fate", "excluded"),
    ],
    ids=["area", "level", "fate"],
)
def test_filters(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], key: str, value: str
) -> None:
    """A filter keeps exactly what it names, in upper or lower case."""
    kept = [each["id"] for each in listed(capsys, *arguments)["contracts"]]

    assert kept
    assert kept == [each["id"] for each in listed(capsys)["contracts"] if each[key] == value]


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """Each contract is one line with id, level and fate; an excluded one says why."""
    lines = in_process(capsys, "list", "--area", "PLEG").out.splitlines()

    assert len(lines) == 2 + sum(row.area == "PLEG" for row in rows().values())
    assert any(re.match(r"PLEG-10 +MUST +excluded +left out: It states", line) for line in lines)


def test_unknown_filter_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    """An area, level or fate that does not exist is a usage error that lists what there is."""
    for arguments in (("--area", "SANDBOKS"), ("--level", "PERHAPS"), ("--fate", "sealed")):
        ended = in_process(capsys, "list", *arguments)

        assert (ended.code, ended.out) == (2, "")
        assert "is not one of" in ended.err


def test_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """A contract is shown with its rule as judged and as read, source, versions, needs, clauses and fate."""
    ended = in_process(capsys, "explain", "sandbox-10")
    text = " ".join(ended.out.split())
    row = rows()["SANDBOX-10"]

    assert ended.code == 0
    assert text.startswith("SANDBOX-10 MUST implemented rule, as it is judged")
    for part in (
        every_contract()["SANDBOX-10"].rule,
        row.rule,
        row.stimulus,
        row.observation,
        row.mutant,
        row.source,
    ):
        assert " ".join(part.split()) in text
    assert "needs channel cri, full; channel pods, sent or sampled" in text
    assert "clauses main" in text


def test_every_contract_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """No row of the catalogue stumbles, whatever its fate."""
    one_of = {each.fate: each.row.id for each in entries(every_contract())}
    for fate, name in one_of.items():
        ended = in_process(capsys, "explain", name)
        machine = json.loads(in_process(capsys, "explain", name, "--format", "json").out)

        assert ended.out.startswith(f"{name}  MUST  {fate}\n")
        assert (machine["id"], machine["fate"]) == (name, fate)
        assert ("why it is left out" in ended.out) is (fate is Fate.EXCLUDED)


def test_unknown_id_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown id is answered with the nearest ones."""
    ended = in_process(capsys, "explain", "SANDBOX-4")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: there is no contract SANDBOX-4; nearest: SANDBOX-04, ")


def test_lists_go_into_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """--output works for both."""
    in_process(capsys, "list", "--output", tmp_path / "list.txt")
    in_process(capsys, "explain", "SANDBOX-04", "--output", tmp_path / "one.txt")

    assert (tmp_path / "list.txt").read_text().startswith("LOOP-01")
    assert (tmp_path / "one.txt").read_text().startswith("SANDBOX-04")


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Help and version are no errors; the command alone is wrong usage and shows the help."""
    for arguments in (("--help",), ("check", "--help"), ("list", "-h"), ("explain", "-h"), ("--version",)):
        assert in_process(capsys, *arguments).code == 0
    bare = in_process(capsys)

    assert bare.code == 2
    assert "Commands:" in bare.out + bare.err
