"""What a stall of the machine may have caused is inconclusive; all else is judged as in any trace."""

import json
from pathlib import Path

import pytest
from trace_builder import TraceBuilder

from kubelet_conformance.contract.checking import judge_file
from kubelet_conformance.contract.definition import Contract, Findings, Note, answered, broken, contract
from kubelet_conformance.contract.patterns import call, done
from kubelet_conformance.contract.verdicts import Verdict
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


def judged(s: TraceBuilder, path: Path, contract: Contract) -> Judged:
    """What is said of the contract."""
    path.write_bytes(s.text())
    outcome = judge_file(str(path), [contract]).outcomes[contract.id]
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
    web = s.pod()
    if ends < 0:
        s.wait(1).record("stall", of="kubelet", seconds=lasted)
        s.wait(-ends)
    sandbox = s.run_sandbox(web)
    if ends > 0:
        s.wait(ends).record("stall", of="kubelet", seconds=lasted)
    s.wait(stops - max(ends, 0)).stop_sandbox(sandbox)

    assert judged(s, tmp_path / "t.jsonl", stop_is_owed) == expected
    assert judged(s, tmp_path / "t.jsonl", nothing_stops) == BROKEN, "at whatever time"


@pytest.mark.parametrize("stalled", [False, True])
def test_late_and_hasty_records(*, stalled: bool, tmp_path: Path) -> None:
    """What is recorded late, and what follows it too soon, is inconclusive where a stall is why."""
    s = TraceBuilder()
    for seconds in (10, 10.5, 9.5):
        s.wait(seconds)
        if seconds > 10 and stalled:
            s.record("stall", of="recorder", seconds=0.5)
        s.call("ImageStatus", {"image": {"image": "img:1"}}, {})

    assert judged(s, tmp_path / "t.jsonl", ten_seconds_pass)[1:] == ((0, 2) if stalled else (2, 0))


def test_late_kubelet(tmp_path: Path) -> None:
    """A kubelet that repeats a failed sync after a minute is broken, unless the machine stalled."""
    stage, late = open_stage(Choice(kubelet="bug:MUT-WORK-15")), TraceBuilder()
    header, *lines, end = map(json.loads, perform(failed_sync, "late", stage).trace.splitlines())
    late.header, late.records, late.now = header, lines, end["t"]
    without = judged(late, tmp_path / "late.jsonl", every_contract()["WORK-15"])
    late.record("stall", of="kubelet", seconds=late.now)

    assert without == BROKEN
    assert judged(late, tmp_path / "late.jsonl", every_contract()["WORK-15"]) == (Verdict.KEPT, 0, 1)
