"""What a stall of the machine may have caused is inconclusive; all else is judged as in any trace."""

import json
from pathlib import Path

import pytest
from trace_builder import TraceBuilder

from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contract.definition import Findings, Note, answered, broken, contract
from kubelet_conformance.contract.patterns import call, done
from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.plugin.play import perform
from kubelet_conformance.scenarios.sync.test_worker_updates import test_failed_sync_comes_again as failed_sync
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.trace.world.moment import Moment

#: The verdict, how often it was broken, and how often that is inconclusive.
Judged = tuple[Verdict, int, int]
BROKEN: Judged = (Verdict.BROKEN, 1, 0)
INCONCLUSIVE: Judged = (Verdict.NOT_EXERCISED, 0, 1)


class Last(Note):
    """When the image was last asked for."""

    t: float | None = None


@contract("START-01", on=done("RunPodSandbox"))
def stop_is_owed(_: Moment) -> Findings:
    """A sandbox that runs is stopped within 10 s."""
    return answered(by=call("StopPodSandbox"), within=10, text="StopPodSandbox comes")


@contract("SANDBOX-01", on=call("ImageStatus"))
def ten_seconds_pass(m: Moment) -> Findings:
    """An image is asked for each 10 s, give or take 0.2 s."""
    last = m.node.note(Last)
    before, last.t = last.t, m.t
    if before is None or abs(m.t - before - 10) <= 0.2:
        return None
    return broken(f"after {m.t - before:.1f} s")


@contract("SANDBOX-02", on=call("StopPodSandbox"))
def nothing_stops(_: Moment) -> Findings:
    """No sandbox is ever stopped."""
    return broken("a sandbox is stopped")


def outcome_of(s: TraceBuilder, path: Path, contract_id: str) -> Outcome:
    """The outcome of one of the contracts above."""
    path.write_bytes(s.text())
    check = Check([stop_is_owed, ten_seconds_pass, nothing_stops])
    check.add(judge_file(str(path), check.contracts))
    return check.results[contract_id].outcome


def short(outcome: Outcome) -> Judged:
    """What of it is tested here."""
    return outcome.verdict, outcome.breaks, outcome.inconclusive


#: Seconds from the sandbox to its stop, the end of a stall and its length, what is said of the stop.
STOPS: dict[str, tuple[float, float, float, Judged]] = {
    "no stall": (11, 0, 0, BROKEN),
    "stall meanwhile": (11, 5, 0.3, INCONCLUSIVE),
    "stall as it ends": (10.2, 10.1, 0.3, INCONCLUSIVE),
    "stall before": (11, -2, 0.3, BROKEN),
    "too late in any case": (30, 5, 0.3, BROKEN),
}


@pytest.mark.parametrize(("stops", "ends", "lasted", "expected"), STOPS.values(), ids=STOPS)
def test_late_answer(stops: float, ends: float, lasted: float, expected: Judged, tmp_path: Path) -> None:
    """A stall within the time of an obligation gives it that time anew, and no more than that."""
    s = TraceBuilder()
    web = s.wait(10).pod()
    stall = {"of": "kubelet", "seconds": lasted}
    if ends < 0:
        s.record("stall", **stall)
        s.wait(-ends)
    sandbox = s.run_sandbox(web)
    if lasted and ends > 0:
        s.wait(ends).record("stall", **stall)
        s.wait(stops - ends)
    else:
        s.wait(stops)
    s.stop_sandbox(sandbox)

    assert short(outcome_of(s, tmp_path / "t.jsonl", "START-01")) == expected
    assert short(outcome_of(s, tmp_path / "t.jsonl", "SANDBOX-02")) == BROKEN, "at whatever time"


@pytest.mark.parametrize("stalled", [0.0, 0.5, 10.5])
def test_late_and_hasty_records(stalled: float, tmp_path: Path) -> None:
    """What is recorded late, and what follows it too soon, is inconclusive where a stall is why."""
    s = TraceBuilder()
    for seconds in (10, 10.5, 9.5):
        s.wait(seconds)
        if seconds > 10 and stalled:
            s.record("stall", of="recorder", seconds=0.5)
        s.call("ImageStatus", {"image": {"image": "img:1"}}, {})

    assert outcome_of(s, tmp_path / "t.jsonl", "SANDBOX-01").breaks == (0 if stalled else 2)


def test_late_kubelet(tmp_path: Path) -> None:
    """A kubelet that repeats a failed sync after a minute is broken, unless the machine stalled."""
    stage = open_stage(Choice(kubelet="bug:MUT-WORK-15"))
    header, *lines = perform(failed_sync, "late", stage).trace.splitlines()
    records = [json.loads(line) for line in lines]
    stall = {"kind": "stall", "of": "kubelet", "seconds": records[-1]["t"], "t": records[-1]["t"]}
    path, found = tmp_path / "late.jsonl", list[Judged]()
    for given in (records, [*records[:-1], stall, records[-1]]):
        numbered = (json.dumps({**record, "seq": seq}).encode() for seq, record in enumerate(given, 1))
        path.write_bytes(b"\n".join([header, *numbered]))
        found.append(short(judge_file(str(path), [every_contract()["WORK-15"]]).outcomes["WORK-15"]))

    assert found == [BROKEN, (Verdict.KEPT, 0, 1)], "the failure before it was followed in time"
