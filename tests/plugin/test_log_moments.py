"""Each break of a life shows what the kubelet wrote in its log at that moment."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from kubelet_conformance.contract.checking import Judged, Trace
from kubelet_conformance.contract.verdicts import Evidence, Outcome, Verdict
from kubelet_conformance.plugin.live.log_moments import with_log

STARTED = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def line(seconds: float, text: str) -> str:
    """A line of klog, so many seconds after the trace began, in the machine's own time of day."""
    at = (STARTED + timedelta(seconds=seconds)).astimezone()
    return f"??? I{at:%m%d %H:%M:%S.%f}    1234 kubelet.go:1] {text}\n"


def shown(folder: Path, *lines: str, scenario: str | None = "mine.a") -> tuple[str, ...]:
    """The texts of the log that a break at 10 s shows."""
    trace, log = folder / "node.jsonl", folder / "node.log"
    header = '{"trace":1,"clock":"wall","channels":{"cri":"full"}}\n'
    kinds = (("fault", 9.0, '"what":"x",'), ("fault", 10.0, '"what":"y",'), ("end", 20.0, ""))
    records = [f'{{"kind":"{kind}",{more}"seq":{n},"t":{t}}}\n' for n, (kind, t, more) in enumerate(kinds, 1)]
    trace.write_text(header + "".join(records), encoding="utf-8")
    log.write_text("".join(lines), encoding="utf-8")
    broken = Outcome(Verdict.BROKEN, evidence=[Evidence(str(trace), scenario, "", (1, 2), "is broken")])
    judged = Judged(Trace(str(trace), None, None, None, None, 3), {"LOOP-01": broken}, ())
    found = with_log(judged, trace, log, STARTED.timestamp(), {"mine.a": 1, "mine.b": 2})
    return tuple(each.partition("] ")[2] for each in found.outcomes["LOOP-01"].evidence[0].log)


def test_lines_around_the_moment(tmp_path: Path) -> None:
    """The latest before the last record of the break and the first after it, in order, none far from it."""
    before = [line(9 + number / 10, f"before {number}") for number in range(6)]
    after = [line(10.5, "after 1"), line(11.5, "late")]

    assert shown(tmp_path, line(7, "early"), *before, "goroutine 1\n", *after) == (
        *(f"before {number}" for number in (2, 3, 4, 5)),
        "after 1",
    )
    assert shown(tmp_path) == ()


def test_lines_about_other_scenarios_are_left_out(tmp_path: Path) -> None:
    """Of a node that scenarios share, a break of one shows what is about its pods, or about none."""
    lines = [
        line(9.5, "kcrun-1-a/web"),
        line(9.6, "kcrun-2-b/web"),
        line(9.7, "kcrun-12-c/web"),
        line(9.8, "all"),
    ]

    assert shown(tmp_path, *lines) == ("kcrun-1-a/web", "all")
    assert len(shown(tmp_path, *lines, scenario=None)) == 4
