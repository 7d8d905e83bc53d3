"""Judging files: versions, several traces together, waits, and bodies that do not parse."""

import json
from pathlib import Path

import pytest
from lines import HEADER, call, end, record, trace
from trace_builder import TraceBuilder

from kubelet_conformance.contract.applicability import since
from kubelet_conformance.contract.checking import Check, Result, judge_file
from kubelet_conformance.contract.definition import KEPT, Contract, Findings, broken, contract
from kubelet_conformance.contract.patterns import call as begun
from kubelet_conformance.contract.patterns import kubelet
from kubelet_conformance.contract.verdicts import MERGED_EVIDENCE_MAX, Evidence, Outcome, Verdict
from kubelet_conformance.trace.format.errors import TraceError
from kubelet_conformance.trace.world.moment import Moment


@contract("SANDBOX-02", on=begun("ImageStatus"))
def nobody_asks_for_images(_: Moment) -> Findings:
    """Nobody asks for an image."""
    return broken("an image was asked for")


@contract("SANDBOX-01", on=kubelet("started"), versions=since("1.30"))
def kubelet_starts(_: Moment) -> Findings:
    """The kubelet starts."""
    return KEPT


CONTRACTS: list[Contract] = [nobody_asks_for_images, kubelet_starts]


def written(path: Path, s: TraceBuilder) -> str:
    """The trace as a file."""
    path.write_bytes(s.text())
    return str(path)


def test_header_tells_the_version(tmp_path: Path) -> None:
    """A trace is judged by its header's version unless another one is given, which the result says."""
    path = written(tmp_path / "t.jsonl", TraceBuilder("1.26"))

    reported, given = judge_file(path, CONTRACTS), judge_file(path, CONTRACTS, kubernetes=(1, 32))

    assert (reported.trace.version, reported.trace.overridden) == ("1.26", False)
    assert reported.outcomes["SANDBOX-01"].reason == "since 1.30"
    assert (given.trace.version, given.trace.stated, given.trace.overridden) == ("1.32", "1.26", True)
    assert given.outcomes["SANDBOX-01"].verdict is Verdict.KEPT


def test_version_need_not_be_given(tmp_path: Path) -> None:
    """Without a version in the header, what depends on it does not apply."""
    judged = judge_file(written(tmp_path / "t.jsonl", TraceBuilder(None)), CONTRACTS)

    assert (judged.trace.version, judged.trace.overridden) == (None, False)
    assert "--kubernetes" in judged.outcomes["SANDBOX-01"].reason


def test_version_that_is_none_is_bad_input(tmp_path: Path) -> None:
    """A header whose version cannot be read is refused, even where another version is given."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(trace(end(1), header=HEADER | {"kubernetes": "newest"}))

    for version in (None, (1, 32)):
        with pytest.raises(TraceError, match=r"t.jsonl:1: .*'newest' is no Kubernetes version"):
            judge_file(str(path), CONTRACTS, kubernetes=version)


BODIES = {
    "request": (call(1, "RunPodSandbox", [1]), "the request of RunPodSandbox: Expected `object`"),
    "labels": (call(1, "RunPodSandbox", {"config": {"labels": 7}}), "config.labels"),
    "manifest": (record(1, "pod", op="set", pod={"spec": []}), "the pod record: Expected `object`"),
    "no manifest": (record(1, "pod", op="set"), "the pod record: what it is about is missing"),
    "status": (record(1, "status", uid="u", status={"phase": 5}), "the status record: Expected `str`"),
}


@pytest.mark.parametrize(("line", "said"), BODIES.values(), ids=BODIES)
def test_body_of_wrong_types_names_its_line(tmp_path: Path, line: dict[str, object], said: str) -> None:
    """A body whose fields have wrong types is bad input, with the line it stands in."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(trace(line, end(2)))

    with pytest.raises(TraceError) as caught:
        judge_file(str(path), CONTRACTS)

    assert caught.value.line == 2
    assert said in caught.value.problem


def test_results_stand_in_catalogue_order(tmp_path: Path) -> None:
    """Results come in the order of the catalogue, and every verdict has a total."""
    check = Check(CONTRACTS)
    check.add(judge_file(written(tmp_path / "t.jsonl", TraceBuilder()), check.contracts))

    assert list(check.results) == ["SANDBOX-01", "SANDBOX-02"]
    assert check.totals() == {
        Verdict.KEPT: 1,
        Verdict.BROKEN: 0,
        Verdict.KNOWN_DEVIATION: 0,
        Verdict.NOT_EXERCISED: 1,
        Verdict.NOT_APPLICABLE: 0,
        Verdict.ERROR: 0,
    }


def test_verdict_by_version() -> None:
    """The result keeps the gravest verdict of each version, and each reason once."""
    result = Result(kubelet_starts)
    result.add(Outcome(Verdict.NOT_APPLICABLE, reason="since 1.30"), "1.26")
    result.add(Outcome(Verdict.NOT_APPLICABLE, reason="since 1.30"), "1.26")
    result.add(Outcome(Verdict.BROKEN, 1, 1), "1.32")
    result.add(Outcome(Verdict.KEPT, 1), "1.32")

    assert result.outcome.verdict is Verdict.BROKEN
    assert result.versions == {"1.26": Verdict.NOT_APPLICABLE, "1.32": Verdict.BROKEN}
    assert result.reasons == ["since 1.30"]


def test_evidence_over_many_traces_is_bounded() -> None:
    """Evidence stops at a bound, but a clause and scenario that has none yet still gets its place."""

    def outcome(number: int) -> Outcome:
        scenario = "last" if number == 2 * MERGED_EVIDENCE_MAX else "s"
        return Outcome(Verdict.BROKEN, 1, 1, [Evidence(f"{number}.jsonl", scenario, "", (1,), "text")])

    whole = outcome(0)
    for number in range(1, 2 * MERGED_EVIDENCE_MAX + 1):
        whole.add(outcome(number))

    assert whole.breaks == 2 * MERGED_EVIDENCE_MAX + 1
    assert len(whole.evidence) == MERGED_EVIDENCE_MAX + 1
    assert whole.evidence[-1].scenario == "last"


def test_timed_out_waits_are_reported_unless_explained(tmp_path: Path) -> None:
    """A broken contract explains an unmet wait; a wait for one that is not judged here is no concern."""
    s = TraceBuilder()
    s.record("expect", contract="SANDBOX-01", awaited="a start", met=True)
    s.record("expect", contract="SANDBOX-01", awaited="a stop", met=False)
    s.record("expect", contract="SANDBOX-02", awaited="no image", met=False)
    s.record("expect", contract="TERM-01", awaited="something else", met=False)
    s.call("ImageStatus", {}, {})
    check = Check(CONTRACTS)
    check.add(judge_file(written(tmp_path / "t.jsonl", s), check.contracts))

    assert [(wait.contract, wait.awaited) for wait in check.unexplained()] == [("SANDBOX-01", "a stop")]


@pytest.mark.parametrize("breaks", [False, True])
def test_break_in_a_trace_explains_its_nameless_waits(tmp_path: Path, *, breaks: bool) -> None:
    """A wait for no contract by name is explained by whatever is broken in its trace, known or not."""
    s = TraceBuilder()
    s.record("expect", awaited="a start", met=False, contract="")
    if breaks:
        s.call("ImageStatus", {}, {})
    check = Check(CONTRACTS)
    check.add(judge_file(written(tmp_path / "t.jsonl", s), check.contracts))

    assert bool(check.unexplained()) is not breaks


def test_progress_is_reported_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of records so far is reported at every so many of them."""
    monkeypatch.setattr("kubelet_conformance.contract.checking.PROGRESS_RECORDS", 2)
    reported: list[int] = []
    path = tmp_path / "t.jsonl"
    path.write_bytes(trace(*(record(n, "fault", what="x") for n in range(1, 6)), end(6)))
    judged = judge_file(str(path), CONTRACTS, progress=reported.append)

    assert reported == [2, 4, 6]
    assert judged.trace.records == 6


def test_unexpected_fault_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of the suite itself names the trace and the line it was at."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(trace(end(1)))

    def fail(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("kubelet_conformance.contract.judge.Judge.feed", fail)
    with pytest.raises(KeyError) as caught:
        judge_file(str(path), CONTRACTS)

    assert caught.value.__notes__ == [f"while judging {path}, line 2"]


def test_channels_of_the_header_count(tmp_path: Path) -> None:
    """What the header does not promise makes contracts not applicable, in the words of the channel."""
    path = tmp_path / "t.jsonl"
    header = json.loads(json.dumps(HEADER)) | {"channels": {"pods": "sent"}}
    path.write_bytes(trace(end(1), header=header))
    outcome = judge_file(str(path), CONTRACTS).outcomes["SANDBOX-02"]

    assert (outcome.verdict, outcome.reason) == (
        Verdict.NOT_APPLICABLE,
        "channel cri is none, full is needed",
    )
