"""`list` and `explain`: every contract of the catalogue with its fate."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command import in_process
from trace_builder import TraceBuilder

from kubelet_conformance.campaigns.code_paths import code_paths
from kubelet_conformance.campaigns.declared import declared_witnesses
from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.catalogue import Fate, entries
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bug_sources import bug_source


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
    both = [each.row.id for each in entries(every_contract()) if each.contract and each.row.excluded]

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
    assert re.search(r"^sandbox.killed_sandbox_is_replaced +\d+ s +\d+ steps  SANDBOX-02 ", some)
    assert re.search(r"\n1 scenario, about \d+ s of the kubelet's time\n$", some)
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
    for arguments, near in (
        (("--area", "SANDBOKS"), "; nearest: SANDBOX\n"),
        (("--level", "Shoud"), "; nearest: should\n"),
        (("--fate", "sealed"), "'implemented', 'planned', 'excluded'\n"),
        (("--format", "jsn"), "; nearest: json\n"),
    ):
        ended = in_process(capsys, "list", *arguments)

        assert (ended.code, ended.out) == (2, "")
        assert "is not one of" in ended.err
        assert ended.err.endswith(near)


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
    assert "clauses main " in text


@pytest.mark.parametrize("of_a_runtime", [False, True])
def test_explained_by_its_shortest_witness(capsys: pytest.CaptureFixture[str], *, of_a_runtime: bool) -> None:
    """At the end stands a scenario that exercises it, as a timeline; a runtime scenario without another."""
    only = [name for name, those in declared_witnesses().items() if not every_scenario().keys() & set(those)]
    contract = only[0] if of_a_runtime else "SANDBOX-04"
    text = in_process(capsys, "explain", contract).out
    _, found, timeline = text.partition("\nhow the reference keeps it in ")
    report = json.loads(in_process(capsys, "explain", contract, "--format", "json").out)["shown_by"]

    assert found
    assert report["scenario"] in declared_witnesses()[contract]
    assert timeline.splitlines()[0] == report["scenario"]
    assert all(line in timeline for line in report["timeline"])
    assert " s  #" in timeline


def test_explained_by_the_scenario_that_broke_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a record it is the break, how to play it again, and its trace; what is kept has none of that."""
    s = TraceBuilder(scenario="two sandboxes")
    web = s.pod("web")
    s.run_sandbox(web)
    s.wait(1).run_sandbox(web, attempt=1)
    (tmp_path / "two.jsonl").write_bytes(s.text())
    in_process(capsys, "check", tmp_path / "two.jsonl", "--record", tmp_path / "kept")

    broken = in_process(capsys, "explain", "SANDBOX-04", "--record", tmp_path / "kept").out
    kept = in_process(capsys, "explain", "SANDBOX-10", "--record", tmp_path / "kept")
    none = in_process(capsys, "explain", "SANDBOX-04", "--record", tmp_path)

    shown = broken.partition("\nhow it was broken in two sandboxes\n")[2]
    assert (
        shown.index("expected: ")
        < shown.index("happened: ")
        < shown.index("again: kubelet-conformance check")
    )
    assert "breaks SANDBOX-04" in shown
    assert kept.code == 0
    assert "how it was broken" not in kept.out
    assert none.code == 2
    assert "is no record" in none.err


def test_explained_with_the_code_behind_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Judge, scenarios, bugs and the code of the reference that keeps the rule, each with its place."""
    found = json.loads(in_process(capsys, "explain", "SANDBOX-04", "--format", "json").out)
    text = in_process(capsys, "explain", "SANDBOX-04").out
    [judge], [bug, *_] = found["judges"], found["bugs"]
    scenarios = {each["name"]: each for each in found["scenarios"]}
    kept_by = next(each for each in found["kept_by"] if each["name"] == "RuntimeManager.kill_pod")

    assert judge["clause"] == "main"
    assert judge["sentence"] == every_contract()["SANDBOX-04"].rule
    assert first_line(judge).startswith('@contract("SANDBOX-04"')
    assert first_line(scenarios["sandbox.killed_sandbox_is_replaced"]).startswith("@witness(")
    assert first_line(bug).startswith(f'@bug("{bug["id"]}"')
    assert first_line(kept_by).startswith("async def kill_pod(")
    for place in (judge, bug, *scenarios.values()):
        assert f"  {place['file']}:{place['first_line']}\n" in text
    assert (
        f"    {kept_by['file']}:{kept_by['first_line']}-{kept_by['last_line']}  {kept_by['name']}\n" in text
    )


def first_line(place: dict[str, Any]) -> str:
    """The first of the lines that a report names."""
    number: int = place["first_line"]
    return Path(place["file"]).read_text(encoding="utf-8").splitlines()[number - 1].strip()


@pytest.mark.parametrize(
    ("bug", "replaces"),
    [
        ("K8S-35309", ["ActionRules.has_had_its_run"]),
        ("K8S-42698", ["sandbox_changed"]),
        ("MUT-ADMIT-06", ["node_ports"]),
        ("MUT-SIDECAR-09", ["SidecarRules.rows_for"]),
        ("K8S-103668", ["PodWorkers.update_pod", "Housekeeping.kill_unknown", "Housekeeping.is_unknown"]),
    ],
    ids=["class", "decision", "member", "rules", "recipe"],
)
def test_bug_leads_to_the_code_it_replaces(bug: str, replaces: list[str]) -> None:
    """However a bug is written, what it replaces is found."""
    assert [each.name for each in bug_source(bug).replaces] == replaces


@pytest.mark.slow
def test_every_judged_contract_leads_to_code() -> None:
    """Each has judges with place and sentence, scenarios, bugs, and code of the reference or the fakes."""
    for each in entries(every_contract()):
        paths = code_paths(each)
        places = [
            *(one.lines for one in paths.clauses),
            *(one.lines for one in paths.scenarios),
            *(one.lines for one in paths.bugs),
        ]

        assert None not in places, each.row.id
        if each.contract is not None:
            assert paths.clauses
            assert all(one.sentence for one in paths.clauses), each.row.id
            assert paths.scenarios
            assert paths.kept_by, each.row.id
        assert not [lines for lines in paths.kept_by if "kubelet_bugs" in lines.file], each.row.id


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


@pytest.mark.parametrize(
    "command",
    [
        "check",
        "compare",
        "explain",
        "image",
        "list",
        "record",
        "run",
        "runtime",
        "serve-api",
        "serve-fake",
        "slice",
        "snapshot",
        "zoo",
    ],
)
def test_help_ends_with_an_example_and_the_exit_codes(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Each command shows a command line of its own, its exit codes, and what every option is for."""
    text = in_process(capsys, command, "--help").out
    options, _, end = text.partition("\n  Example:\n")
    example, _, codes = end.partition("\n\n  Exit codes:\n")

    assert example.startswith(f"    kubelet-conformance {command} ")
    assert {"0", "2", "4", "130"} <= {line.split()[0] for line in codes.splitlines()}
    assert not re.search(r"^  -[^ ]*(, --?[^ ]+)?( [A-Z|/]+)?\n  -", options, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (("explian",), "nearest: explain"),
        (("list", "--area", "SANBOX"), "nearest: SANDBOX"),
        (
            ("list", "--scenarios", "hooks.pre_stop_goes_before_evry_kill"),
            "hooks.pre_stop_goes_before_every_kill",
        ),
        (("explain", "SANBOX-04"), "nearest: SANDBOX-04"),
        (("zoo", "K8S-964"), "K8S-9649"),
    ],
)
def test_wrong_name_is_answered_by_the_nearest(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], near: str
) -> None:
    """A name that there is not is answered with those like it, and exit code 2."""
    ended = in_process(capsys, *arguments)

    assert ended.code == 2
    assert near in ended.err
