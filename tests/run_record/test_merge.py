"""Records of parts of a run are joined to that of the whole."""

import re
from pathlib import Path

import pytest
from command import in_process
from hypothesis import given
from hypothesis import strategies as st
from playing_run import BUG, Runs, runs_of

from kubelet_conformance.contract.checking import Check, Judged, Trace
from kubelet_conformance.contract.verdicts import Evidence, Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.run_record.merging import joined_runs
from kubelet_conformance.run_record.model import Run
from kubelet_conformance.run_record.reader import opened
from kubelet_conformance.run_record.results import Scoring, check_result, finished

CHOSEN = ("SANDBOX-01", "PROBE-10", "CRI-39")


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    """The outcome of one contract on one trace."""
    verdict = draw(st.sampled_from(list(Verdict)))
    breaks = draw(st.integers(1, 70)) if verdict is Verdict.BROKEN else 0
    reason = draw(st.sampled_from(["a", "b"])) if verdict in {Verdict.NOT_APPLICABLE, Verdict.ERROR} else ""
    clauses = draw(st.lists(st.sampled_from(["", "x", "y"]), min_size=breaks, max_size=breaks))
    evidence = [Evidence("t", None, clause, (1,), "text") for clause in clauses]
    is_idle = verdict in {Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE}
    activations = 0 if is_idle else breaks + draw(st.integers(0, 3))
    return Outcome(verdict, activations, breaks, evidence, reason)


TRACES = st.tuples(st.integers(30, 32), st.fixed_dictionaries(dict.fromkeys(CHOSEN, outcomes())))


def run_of(judged: list[tuple[int, dict[str, Outcome]]]) -> Run:
    """The run of traces of these minor versions with these outcomes."""
    check = Check([every_contract()[each] for each in CHOSEN])
    for minor, each in judged:
        check.add(Judged(Trace("t", (1, minor), None, None, None, 1), each, ()))
    return check_result(check, Scoring())


@given(st.lists(TRACES, min_size=2, max_size=5), st.data())
def test_parts_are_the_whole(judged: list[tuple[int, dict[str, Outcome]]], data: st.DataObject) -> None:
    """However traces are shared out, the joined verdicts are those of one run over all of them."""
    cut = data.draw(st.integers(1, len(judged) - 1))
    whole = run_of(judged)
    parts = finished(joined_runs([run_of(judged[:cut]), run_of(judged[cut:])]))

    for joined, one in zip(parts.contracts, whole.contracts, strict=True):
        assert joined == one
    assert (parts.totals, parts.exit_code, len(parts.traces)) == (whole.totals, whole.exit_code, len(judged))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    """The command `run`, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return runs_of(capsys, monkeypatch)


def record(run: Runs, name: str, *arguments: str) -> None:
    """Keep a record of a run."""
    run(*arguments, "--kubelet", BUG, "--record", name)


def test_shards_render_as_one(run: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    """Parts that share a name for a trace keep both; the joined record reports on all that was played."""
    names = ("probes.failing_readiness_never_kills", "sandbox.killed_sandbox_is_replaced")
    for number, name in enumerate((*names, names[0])):
        record(run, f"part-{number}", "--scenario", name)
    ended = in_process(capsys, "merge", "part-0", "part-1", "part-2", "--output", "whole.tar.gz")
    shown = in_process(capsys, "report", "whole.tar.gz")
    with opened("whole.tar.gz") as found:
        traces = [each.path for each in found.run.traces]
        scenarios = [(each.name, each.trace) for each in found.run.scenarios]
        is_there = all(found.file(trace).is_file() for trace in traces)

    assert (ended.code, ended.out) == (0, "whole.tar.gz: 3 records with 3 traces\n")
    assert traces == [f"traces/{name}.jsonl" for name in (*names, f"{names[0]}-2")]
    assert scenarios == list(zip((*names, names[0]), traces, strict=True))
    assert is_there
    assert "Played 3 scenarios" in shown.out
    assert "BROKEN  PROBE-10" in shown.out
    assert "could not be read again" not in shown.out
    assert shown.code == 1


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            ("--kubernetes", "1.30"),
            "other: its target.kubernetes is 1.30, that of one is 1.32: join parts of one run",
        ),
        (("--seed", "7"), "other: its target.seed is 7, that of one is 0: join parts of one run"),
    ],
)
def test_parts_of_different_runs_are_refused(
    run: Runs, capsys: pytest.CaptureFixture[str], other: tuple[str, ...], message: str
) -> None:
    """Records of different targets are not joined."""
    scenario = ("--scenario", "sandbox.killed_sandbox_is_replaced")
    record(run, "one", *scenario)
    record(run, "other", *scenario, *other)
    ended = in_process(capsys, "merge", "one", "other", "--output", "whole")

    assert (ended.code, ended.out, ended.err) == (2, "", f"error: {message}\n")
    assert not Path("whole").exists()
    assert in_process(capsys, "merge", "one", "--output", "one").err.startswith(
        "error: one: is one of the records"
    )


@pytest.mark.campaign
def test_parts_of_a_run_are_the_whole(run: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    """Each part plays its share of the scenarios; together they have the verdicts of one run of all."""
    whole = run("SANDBOX-0*", "INIT-01", "--require-exercised", "--record", "whole")
    parts = [
        run(
            "SANDBOX-0*", "INIT-01", "--require-exercised", "--shard", f"{part}/3", "--record", f"part-{part}"
        )
        for part in (1, 2, 3)
    ]
    joined = in_process(capsys, "merge", "part-1", "part-2", "part-3", "--output", "joined")
    shown = in_process(capsys, "report", "joined")
    with opened("whole") as one, opened("joined") as other:
        played = [{each.name for each in record.run.scenarios} for record in (one, other)]
        verdicts = [[(each.id, each.verdict) for each in record.run.contracts] for record in (one, other)]
        sizes = len(one.run.scenarios), len(other.run.scenarios)

    assert (whole.code, [each.code for each in parts], joined.code, shown.code) == (0, [0, 0, 0], 0, 0)
    assert played[0] == played[1]
    assert verdicts[0] == verdicts[1]
    assert sizes[0] == sizes[1]


def test_missing_part_leaves_the_run_unfinished(run: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    """A part that is missing is named, and the joined run is not finished; none may be given twice."""
    chosen = ("--scenario", "sandbox.*", "--shard")
    for part in ("1", "3"):
        run(*chosen, f"{part}/9", "--record", f"part-{part}")
    run(*chosen, "2/8", "--record", "other")
    joined = in_process(capsys, "merge", "part-1", "part-3", "--output", "joined")
    twice = in_process(capsys, "merge", "part-1", "part-1", "--output", "twice")
    mixed = in_process(capsys, "merge", "part-1", "other", "--output", "mixed")
    shown = in_process(capsys, "report", "joined")

    missing = ", ".join(f"{part}/9" for part in (2, 4, 5, 6, 7, 8, 9))
    assert joined.err == f"note: without the parts {missing} the run is unfinished\n"
    assert (joined.code, shown.code) == (0, 130)
    assert "a part is missing" in shown.out
    assert twice.err == "error: part-1: is part 1/9, as part-1 is: give each part once\n"
    assert mixed.err == (
        "error: other: its number of parts is 8, that of part-1 is 9: join parts of one run\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("SANDBOX-02", "--shard", "3/900"),
            r"--shard 3/900: \d+ scenarios make no 900 parts; give N as \d+ at most",
        ),
        (
            ("--histories", "120", "--shard", "1/4"),
            r"--shard 1/4: 50 histories are drawn together, so 120 of them make 3 parts at most",
        ),
        (("--shard", "0/4"), r"0/4 is no part of a run: expected 1/4, 2/4"),
    ],
)
def test_more_parts_than_there_is_are_refused(run: Runs, arguments: tuple[str, ...], message: str) -> None:
    """A part that would play nothing is an error that says how many parts there can be."""
    ended = run(*arguments)

    assert ended.code == 2
    assert re.search(message, ended.err)
