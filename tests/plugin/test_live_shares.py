"""Breaks in the trace of a shared node are laid at the doors of the scenarios whose pods they are about."""

from trace_builder import TraceBuilder

from kubelet_conformance.contract.checking import Judged, Trace, judge_file
from kubelet_conformance.contract.verdicts import Evidence, Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.plugin.live.lives import shared_out

OWNERS = (None, "a", "b", None, "b")
TRACE = Trace("node.jsonl", (1, 32), "1.32", "fake", None, 6)


def judged(*seqs: tuple[int, ...], breaks: int = 0) -> Judged:
    """A trace in which one contract is broken once for each of these pieces of evidence."""
    evidence = [Evidence("node.jsonl", None, "main", each, "broken") for each in seqs]
    outcome = Outcome(Verdict.BROKEN, 9, breaks or len(evidence), evidence)
    outcome.broken_clauses = {("main", None)}
    return Judged(TRACE, {"POD-01": outcome, "POD-02": Outcome(Verdict.KEPT, 3)}, ())


def test_break_is_of_the_first_record_that_is_anybodys() -> None:
    """What follows in the evidence may be the record of another that showed how time had passed."""
    whole, shares = shared_out(judged((1, 2, 3), (3, 5)), OWNERS, ["a", "b", "c"])

    assert [each.scenario for each in whole.outcomes["POD-01"].evidence] == ["a", "b"]
    assert whole.outcomes["POD-01"].broken_clauses == {("main", "a"), ("main", "b")}
    assert {name: list(share.outcomes) for name, share in shares.items()} == {
        "a": ["POD-01"],
        "b": ["POD-01"],
        "c": [],
    }
    assert shares["b"].trace.records == 2
    assert whole.outcomes["POD-02"].verdict is Verdict.KEPT


def test_what_a_scenario_exercised_is_its_own() -> None:
    """On a node that scenarios share, each exercises what its own pods show, in their namespaces."""
    s = TraceBuilder(scenarios={"default": "a", "other": "b"})
    web = s.pod()
    s.stop_sandbox(s.run_sandbox(web))
    s.run_sandbox(web, attempt=1)
    one = judge_file("node.jsonl", [every_contract()["SANDBOX-04"]], content=s.text())
    _, shares = shared_out(one, [None] * one.trace.records, ["a", "b"])

    assert [name for name, each in shares.items() if each.outcomes] == ["a"]
    assert shares["a"].outcomes["SANDBOX-04"].activations == 1


def test_break_of_nobody_counts_for_the_run() -> None:
    """Evidence about no scenario's pods, or at the end of the trace, blames no scenario."""
    whole, shares = shared_out(judged((1, 4), (6,)), OWNERS, ["a", "b"])

    assert [each.scenario for each in whole.outcomes["POD-01"].evidence] == [None, None]
    assert whole.outcomes["POD-01"].verdict is Verdict.BROKEN
    assert not any(share.outcomes for share in shares.values())


def test_breaks_beyond_the_evidence_may_be_anybodys() -> None:
    """A baseline entry for one scenario does not cover breaks that are counted and not shown."""
    whole, _ = shared_out(judged((2,), breaks=40), OWNERS, ["a"])

    assert whole.outcomes["POD-01"].broken_clauses == {("main", "a"), ("main", None)}
