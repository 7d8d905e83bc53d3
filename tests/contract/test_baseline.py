"""The baseline: which breaks are known, which entries are stale, and what is wrong with a file."""

from pathlib import Path

import pytest
from trace_builder import TraceBuilder

from kubelet_conformance.contract.baseline import BASELINE_BYTES_MAX, Baseline, BaselineError, clause_names
from kubelet_conformance.contract.checking import Check, Judged, Trace
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract
from kubelet_conformance.contract.judge import EVIDENCE_MAX
from kubelet_conformance.contract.patterns import call, kubelet
from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.reports.baseline_file import baseline_text
from kubelet_conformance.trace.world.moment import Moment


@contract("SANDBOX-01", on=call("ImageStatus"))
def nobody_asks_for_images(_: Moment) -> Findings:
    """Nobody asks for an image."""
    return broken("an image was asked for")


@contract("SANDBOX-02", on=kubelet("started"))
def two_sides(_: Moment) -> Findings:
    """The kubelet starts, and nobody asks for an image or for a version."""
    return KEPT


@two_sides.clause("images", on=call("ImageStatus"))
def _(_: Moment) -> Findings:
    return broken("an image was asked for")


@two_sides.clause("versions", on=call("Version"))
def _(_: Moment) -> Findings:
    return broken("the version was asked for")


CONTRACTS = {each.id: each for each in (nobody_asks_for_images, two_sides)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a baseline lies."""
    return tmp_path / "known.toml"


def baseline(path: Path, text: str) -> Baseline:
    """A baseline with this text."""
    path.write_text(text, encoding="utf-8")
    return Baseline.read(str(path), CONTRACTS)


def asking(*rpcs: str, scenario: str | None = None) -> TraceBuilder:
    """A trace in which these calls are made."""
    s = TraceBuilder(scenario=scenario) if scenario else TraceBuilder()
    for rpc in rpcs:
        s.call(rpc, {}, {})
    return s


def applied(found: Baseline, contract_id: str, s: TraceBuilder) -> Outcome:
    """The outcome of a contract as the baseline sees it."""
    return found.applied(contract_id, s.judge_with(CONTRACTS[contract_id]))


def test_known_break_is_a_known_deviation(path: Path) -> None:
    """A break that an entry covers is a known deviation, and its evidence carries the reason."""
    found = baseline(path, '[[deviation]]\nid = "sandbox-01"\nreason = "Being mended."\n')
    outcome = applied(found, "SANDBOX-01", asking("ImageStatus"))

    assert outcome.verdict is Verdict.KNOWN_DEVIATION
    assert [each.deviation for each in outcome.evidence] == ["Being mended."]
    assert found.stale() == []


def test_other_contracts_are_untouched(path: Path) -> None:
    """An entry says nothing of another contract."""
    found = baseline(path, '[[deviation]]\nid = "SANDBOX-01"\nreason = "r"\n')

    assert applied(found, "SANDBOX-02", asking("ImageStatus")).verdict is Verdict.BROKEN


def test_break_of_another_clause_stays_broken(path: Path) -> None:
    """Only the named clause is known; with a break of another one the contract is broken."""
    found = baseline(path, '[[deviation]]\nid = "SANDBOX-02"\nclause = "images"\nreason = "r"\n')

    both = applied(found, "SANDBOX-02", asking("ImageStatus", "Version"))

    assert applied(found, "SANDBOX-02", asking("ImageStatus")).verdict is Verdict.KNOWN_DEVIATION
    assert both.verdict is Verdict.BROKEN
    assert [(each.clause, each.deviation) for each in both.evidence] == [("images", "r"), ("versions", "")]


def test_break_beyond_the_evidence_is_not_hidden(path: Path) -> None:
    """An unknown break counts although the bounded evidence was full of known ones before it came."""
    found = baseline(path, '[[deviation]]\nid = "SANDBOX-02"\nclause = "images"\nreason = "r"\n')
    outcome = applied(found, "SANDBOX-02", asking(*["ImageStatus"] * (EVIDENCE_MAX + 5), "Version"))

    assert outcome.verdict is Verdict.BROKEN
    assert [each.clause for each in outcome.evidence if not each.deviation] == ["versions"]
    assert outcome.breaks == EVIDENCE_MAX + 6


@pytest.mark.parametrize("named", ["images.a", "*.a", "images.*"])
def test_scenario_narrows_an_entry(path: Path, named: str) -> None:
    """An entry with a scenario knows breaks in traces of such scenarios only; a trace may have none."""
    found = baseline(path, f'[[deviation]]\nid = "SANDBOX-01"\nscenario = "{named}"\nreason = "r"\n')
    verdicts = [
        applied(found, "SANDBOX-01", asking("ImageStatus", scenario=name)).verdict
        for name in ("images.a", "b", None)
    ]

    assert verdicts == [Verdict.KNOWN_DEVIATION, Verdict.BROKEN, Verdict.BROKEN]


def test_gate_narrows_an_entry(path: Path) -> None:
    """An entry with a feature gate knows breaks only where that is on, and is stale only there."""
    found = baseline(path, '[[deviation]]\nid = "SANDBOX-01"\ngate = "EventedPLEG"\nreason = "r"\n')
    outcome = asking("ImageStatus").judge_with(CONTRACTS["SANDBOX-01"])
    kept = Outcome(Verdict.KEPT, 1, kept_clauses={("", None)})
    verdicts = [found.applied("SANDBOX-01", outcome, gates).verdict for gates in ((), ("EventedPLEG",))]
    other = baseline(path, path.read_text(encoding="utf-8"))
    other.applied("SANDBOX-01", kept)
    before = other.stale()
    other.applied("SANDBOX-01", kept, ("EventedPLEG",))

    assert verdicts == [Verdict.BROKEN, Verdict.KNOWN_DEVIATION]
    assert before == []
    assert [str(each) for each in other.stale()] == ["SANDBOX-01, gate EventedPLEG"]


def test_entry_that_was_kept_is_stale(path: Path) -> None:
    """An entry whose clause was put to the test and never broken is stale; the first break clears it."""
    found = baseline(path, '[[deviation]]\nid = "SANDBOX-02"\nclause = "main"\nreason = "r"\n')
    before = found.stale()
    outcome = applied(found, "SANDBOX-02", asking())

    assert before == []
    assert outcome.verdict is Verdict.KEPT
    assert [(each.id, each.clause, each.line) for each in found.stale()] == [("SANDBOX-02", "main", 1)]
    assert str(found.stale()[0]) == "SANDBOX-02, clause main"


def test_entry_that_was_broken_somewhere_is_not_stale(path: Path) -> None:
    """One trace that breaks it is enough, whatever others keep."""
    found = baseline(path, '[[deviation]]\nid = "SANDBOX-02"\nclause = "images"\nreason = "r"\n')
    outcome = Outcome(Verdict.KEPT, 1, kept_clauses={("images", None)})
    found.applied("SANDBOX-02", outcome)
    stale = found.stale()
    applied(found, "SANDBOX-02", asking("ImageStatus"))

    assert [each.clause for each in stale] == ["images"]
    assert found.stale() == []


def test_entry_that_was_not_exercised_is_not_stale(path: Path) -> None:
    """What was never put to the test may be broken still."""
    found = baseline(path, '[[deviation]]\nid = "SANDBOX-01"\nreason = "r"\n')
    outcome = applied(found, "SANDBOX-01", asking())

    assert outcome.verdict is Verdict.NOT_EXERCISED
    assert found.stale() == []


def test_entry_names_several_contracts(path: Path) -> None:
    """An entry with one cause names each contract and clause that it breaks; each is stale by itself."""
    text = (
        '[[deviation]]\nbreaks = ["SANDBOX-01", "SANDBOX-02/images", "SANDBOX-02/versions"]\nreason = "r"\n'
    )
    found = baseline(path, text)
    trace = asking("ImageStatus")
    verdicts = [found.applied(each.id, trace.judge_with(each)).verdict for each in CONTRACTS.values()]
    found.applied("SANDBOX-02", Outcome(Verdict.KEPT, 1, 0, [], kept_clauses={("versions", None)}))

    assert verdicts == [Verdict.KNOWN_DEVIATION] * 2
    assert [(each.id, each.clause, each.line) for each in found.stale()] == [("SANDBOX-02", "versions", 1)]


@pytest.mark.parametrize(("inconclusive", "stale"), [(0, True), (1, False)])
def test_entry_that_may_have_been_broken_is_not_stale(path: Path, inconclusive: int, *, stale: bool) -> None:
    """A break while the machine stalled is none, and no proof that the deviation is gone either."""
    found = baseline(path, ENTRY)
    kept: set[tuple[str, str | None]] = {("", None)}
    found.applied("SANDBOX-01", Outcome(Verdict.KEPT, 1, 0, kept_clauses=kept, inconclusive=inconclusive))

    assert bool(found.stale()) is stale


@pytest.mark.parametrize(("scenario", "stale"), [(None, False), ("o*", False), ("one", True)])
def test_entry_for_all_scenarios_is_not_stale_after_some(
    path: Path, scenario: str | None, *, stale: bool
) -> None:
    """Where only some scenarios were played, another may break what an entry without a scenario names."""
    named = f'scenario = "{scenario}"\n' if scenario else ""
    check = Check(CONTRACTS.values(), baseline(path, f"{ENTRY}{named}"))
    kept = Outcome(Verdict.KEPT, 1, 0, [], kept_clauses={("", "one")})
    check.add(Judged(Trace("one", (1, 32), None, None, "one", 1), {"SANDBOX-01": kept}, ()))
    check.is_partial = True

    assert bool(check.stale()) is stale


def test_empty_file_knows_nothing(path: Path) -> None:
    """A baseline without entries is a baseline."""
    assert baseline(path, "# nothing yet\n").deviations == ()


def test_unnamed_clause_is_called_main() -> None:
    """The clause without a name of its own is `main`."""
    assert clause_names(two_sides) == ("main", "images", "versions")
    assert clause_names(nobody_asks_for_images) == ("main",)


ENTRY = '[[deviation]]\nid = "SANDBOX-01"\nreason = "r"\n'
WRONG: dict[str, tuple[str, int | None, str]] = {
    "no TOML": ('[[deviation]]\nid = "SANDBOX-01\n', 2, "no TOML"),
    "a key twice": ('[[deviation]]\nid = "a"\nid = "b"\n', 3, "no TOML"),
    "nested": ("x = " + "[" * 100_000, None, "nested too deeply"),
    "unknown table": ('[deviations]\nid = "SANDBOX-01"\n', None, "unknown key 'deviations'"),
    "single brackets": ('[deviation]\nid = "SANDBOX-01"\n', None, "no list"),
    "list of text": ('deviation = ["SANDBOX-01"]\n', None, "no table"),
    "unknown key": (f'{ENTRY}claus = "x"\n', 1, "did you mean clause?"),
    "no id": ('\n\n[[deviation]]\nreason = "r"\n', 3, "has no id"),
    "no reason": ('[[deviation]]\nid = "SANDBOX-01"\n', 1, "has no reason"),
    "empty reason": ('[[deviation]]\nid = "SANDBOX-01"\nreason = " "\n', 1, "reason is no text"),
    "reason is a number": ('[[deviation]]\nid = "SANDBOX-01"\nreason = 5\n', 1, "reason is no text"),
    "unknown id": (f'{ENTRY}[[deviation]]\nid = "SANBOX-02"\nreason = "r"\n', 4, "SANDBOX-02"),
    "not judged": ('[[deviation]]\nid = "SANDBOX-03"\nreason = "r"\n', 1, "is not judged"),
    "clause is missing": (
        '[[deviation]]\nid = "SANDBOX-02"\nreason = "r"\n',
        1,
        "one of main, images, versions",
    ),
    "unknown clause": (f'{ENTRY}clause = "images"\n', 1, "has no clause 'images'"),
    "clause with a slip": (
        '[[deviation]]\nid = "SANDBOX-02"\nclause = "image"\nreason = "r"\n',
        1,
        "did you mean images?",
    ),
    "breaks is no list": ('[[deviation]]\nbreaks = "SANDBOX-01"\nreason = "r"\n', 1, "breaks is no list"),
    "breaks and id": (f'{ENTRY}breaks = ["SANDBOX-01"]\n', 1, "breaks and id"),
    "clause in breaks": ('[[deviation]]\nbreaks = ["SANDBOX-01/x"]\nreason = "r"\n', 1, "no clause 'x'"),
    "twice": (ENTRY + ENTRY, 4, "SANDBOX-01 is listed twice"),
}


@pytest.mark.parametrize(("text", "line", "said"), WRONG.values(), ids=WRONG)
def test_broken_baseline_is_named(path: Path, text: str, line: int | None, said: str) -> None:
    """A baseline that cannot be used is refused with file, line, problem and remedy."""
    with pytest.raises(BaselineError) as caught:
        baseline(path, text)

    where = f"{path}:{line}: " if line else f"{path}: "
    assert str(caught.value).startswith(where)
    assert said in str(caught.value)
    assert caught.value.remedy


def test_baseline_of_what_was_broken(path: Path) -> None:
    """What is written covers every break, names the scenario of a single one, and keeps given reasons."""
    asked = {"one": ("ImageStatus", "Version"), "two": ("ImageStatus",)}
    text = f'{ENTRY}[[deviation]]\nid = "SANDBOX-02"\nclause = "main"\nreason = "r"\n'
    check = Check(CONTRACTS.values(), baseline(path, text))
    for scenario, rpcs in asked.items():
        trace = asking(*rpcs, scenario=scenario)
        outcomes = {name: trace.judge_with(each) for name, each in CONTRACTS.items()}
        check.add(Judged(Trace(scenario, (1, 32), None, None, scenario, 1), outcomes, ()))
    written = baseline_text(check, "kubelet 1.32")
    found = baseline(path, written).deviations
    entries = [(each.id, each.clause, each.scenario, each.reason) for each in found]

    assert entries == [
        ("SANDBOX-01", None, None, "r"),
        ("SANDBOX-02", "images", None, "To be explained."),
        ("SANDBOX-02", "versions", "one", "To be explained."),
    ]
    assert "# Such as in one: the version was asked for" in written


def test_all_mistakes_are_told_at_once(path: Path) -> None:
    """Each entry with a mistake is named with its line, so that one try shows them all."""
    text = f'{ENTRY}claus = "x"\n[[deviation]]\nreason = "r"\n{ENTRY}{ENTRY}'
    with pytest.raises(BaselineError) as caught:
        baseline(path, text)

    lines = str(caught.value).splitlines()
    assert [line.removeprefix(f"{path}:").partition(";")[0] for line in lines] == [
        "1: unknown key 'claus'",
        "5: an entry has no id",
        "10: SANDBOX-01 is listed twice",
    ]


def test_file_that_cannot_be_a_baseline(path: Path) -> None:
    """A file that is missing, a folder, binary or far too long is refused."""
    path.write_bytes(b"# ok\n\xff\n")
    with pytest.raises(BaselineError, match=r"known.toml:2: this is no UTF-8"):
        Baseline.read(str(path), CONTRACTS)
    path.write_bytes(b"#" * (BASELINE_BYTES_MAX + 1))
    with pytest.raises(BaselineError, match="longer than 4 MiB"):
        Baseline.read(str(path), CONTRACTS)
    for other in (path.parent, path.parent / "none.toml"):
        with pytest.raises(BaselineError, match="cannot be read"):
            Baseline.read(str(other), CONTRACTS)
