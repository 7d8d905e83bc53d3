"""The report to read: every part of it, without colour in a log and with colour in a terminal."""

import io
import re
import shlex
from pathlib import Path
from typing import Literal

import pytest
from command import in_process
from lines import HEADER, end, record, reply, trace
from lines import call as begun
from rich.console import Console
from trace_builder import TraceBuilder

from kubelet_conformance.contract.applicability import since
from kubelet_conformance.contract.baseline import Baseline
from kubelet_conformance.contract.catalogue import row
from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contract.definition import KEPT, Contract, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, event
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.terminal import TerminalReport
from kubelet_conformance.reports.trace_text.breaks import BREAKS_SHOWN
from kubelet_conformance.run_record.record import Record
from kubelet_conformance.run_record.results import Scoring, check_result
from kubelet_conformance.trace.world.moment import Moment


@contract("START-01", on=call("StartContainer"))
def never_started(m: Moment) -> Findings:
    """No container is ever started, which is a rule long enough to be set on more than one single line."""
    return broken(f"{m.container.name if m.container else ''} was started")


@never_started.clause("images", on=call("ImageStatus"))
def _(_: Moment) -> Findings:
    return broken("an image was asked for")


@contract("SANDBOX-01", on=call("RunPodSandbox"))
def sandbox_runs(_: Moment) -> Findings:
    """A sandbox is run."""
    return KEPT


@contract("SANDBOX-02", on=event("Never"))
def never_seen(_: Moment) -> Findings:
    """Something that never happens."""
    return KEPT


@contract("SANDBOX-05", on=event("Never"), versions=since("1.33"))
def later(_: Moment) -> Findings:
    """Something of a later version."""
    return KEPT


@contract("SANDBOX-07", on=call("RunPodSandbox"))
def owed(_: Moment) -> Findings:
    """A sandbox is soon stopped."""
    return answered(by=call("StopPodSandbox"), within=1, text="StopPodSandbox comes")


@contract("SANDBOX-08", on=call("StatusOf"))
def named(m: Moment) -> Findings:
    """Nobody is asked for by name."""
    return broken(f"{m.call.request.json()['name']} was asked for")


CONTRACTS = [never_started, sandbox_runs, never_seen, later]


def checked(path: Path, s: TraceBuilder, *contracts: Contract, baseline: str = "") -> Check:
    """A check of one trace."""
    path.write_bytes(s.text())
    known = None
    if baseline:
        toml = path.with_suffix(".toml")
        toml.write_text(baseline)
        known = Baseline.read(str(toml), {each.id: each for each in contracts})
    check = Check(contracts or CONTRACTS, known)
    check.add(judge_file(str(path), check.contracts))
    return check


def printed(check: Check, kubernetes: str = "", *, terminal: bool = False, verbose: bool = False) -> str:
    """The report as text."""
    colours: Literal["standard"] | None = "standard" if terminal else None
    console = Console(file=io.StringIO(), force_terminal=terminal, width=70, color_system=colours)
    record = Record(check_result(check, Scoring(), kubernetes=kubernetes), Path())
    TerminalReport(record, console, debug=False, verbose=verbose).print()
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def s() -> TraceBuilder:
    """A pod of one container runs."""
    s = TraceBuilder(scenario="plain")
    web = s.pod()
    s.run_container(web, s.run_sandbox(web))
    return s


def plain_trace() -> bytes:
    """A trace that depends on no helper: a pod of one container runs."""
    metadata = {"name": "web", "namespace": "default", "uid": "u1"}
    config = {"metadata": {"name": "c1"}, "image": {"image": "img:1"}}
    return trace(
        record(1, "pod", op="set", source="api", pod={"metadata": metadata}),
        begun(2, "RunPodSandbox", {"config": {"metadata": metadata}}),
        reply(3, "c2", "RunPodSandbox", response={"pod_sandbox_id": "0123456789abcdef"}),
        begun(4, "ImageStatus", {"image": {"image": "img:1"}}),
        reply(5, "c4", "ImageStatus", response={}),
        begun(6, "CreateContainer", {"pod_sandbox_id": "0123456789abcdef", "config": config}),
        reply(7, "c6", "CreateContainer", response={"container_id": "fedcba9876543210"}),
        begun(8, "StartContainer", {"container_id": "fedcba9876543210"}),
        reply(9, "c8", "StartContainer"),
        end(10),
        header=HEADER | {"scenario": "plain"},
    )


def test_whole_report(tmp_path: Path) -> None:
    """Head, counts by area, the broken contract with its slices, what was not judged, and a last line."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(plain_trace())
    check = Check(CONTRACTS)
    check.add(judge_file(str(path), check.contracts))

    assert (
        printed(check).replace(str(path), "t.jsonl")
        == """\
Judged 1 trace, 10 records of Kubernetes 1.32 by 4 contracts.

area     kept  broken  known deviation  not exercised  not applicable  error
SANDBOX     1       -                -              1               1      -
START       -       1                -              -               -      -

BROKEN  START-01  MUST

    in t.jsonl, scenario plain
      expected: No container is ever started, which is a rule long enough to be set on more than one single
        line.
      happened: an image was asked for
      when: 0.004 s, #4
            +0.000 s  #4 ImageStatus img:1 -> absent (#5, 0.001 s later)
      clause: images

    in t.jsonl, scenario plain
      expected: No container is ever started, which is a rule long enough to be set on more than one single
        line.
      happened: c1 was started
      when: 0.008 s, #8
            +0.000 s  #8 StartContainer c1#0 (fedcba987654) of default/web -> ok (#9, 0.001 s later)
      clause: main
    source: @source@
    again: kubelet-conformance check t.jsonl --contract START-01

not exercised (1; -v names them)

not applicable (1; -v names them)
    since 1.33 (1)

FAILED: 1 kept, 1 broken, 0 known deviation, 1 not exercised, 1 not applicable, 0 error in 1 trace
""".replace("@source@", row("START-01").source)
    )


def test_the_command_shows_it_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The printed command, as a shell reads it, shows the same break, whatever the file is called."""
    s = TraceBuilder()
    web = s.pod()
    s.run_sandbox(web)
    s.wait(1).run_sandbox(web, attempt=1)
    path = tmp_path / "a trace; with 'odd' name.jsonl"
    check = checked(path, s, every_contract()["SANDBOX-04"])
    report = printed(check, "1.32")
    command = report.partition("again: ")[2].partition("\n")[0]
    ended = in_process(capsys, *shlex.split(command)[1:])

    assert ended.code == 1
    assert shlex.split(command)[-2:] == ["--kubernetes", "1.32"]
    assert report.partition("BROKEN")[2] == ended.out.partition("BROKEN")[2]


def test_deadline_shows_what_owed_it(tmp_path: Path, s: TraceBuilder) -> None:
    """What never came shows the record that owed it and the one at which time was up."""
    s.wait(30).record("event", reason="Scheduled", uid="u", message="late")
    report = printed(checked(tmp_path / "t.jsonl", s, owed))

    assert re.search(r"\+0\.000 s +#\d+ RunPodSandbox default/web attempt 0 -> sandbox sandbox-", report)
    assert re.search(r"\+30\.\d+ s +#\d+ event of pod u: Scheduled late", report)
    assert "StopPodSandbox comes within 1 s" in report


@pytest.mark.parametrize("stalled", [False, True])
def test_what_only_seemed_broken_is_named(tmp_path: Path, s: TraceBuilder, *, stalled: bool) -> None:
    """What was judged in no other way than by an excuse is told apart: it may be broken each time."""
    s.wait(1.5)
    if stalled:
        s.record("stall", of="kubelet", seconds=0.5)
    s.wait(0.1).stop_here()
    report = printed(checked(tmp_path / "t.jsonl", s, owed))

    assert ("exercised in no other way, so play these again: SANDBOX-07" in report) is stalled


def test_breaks_that_are_alike_are_told_once(tmp_path: Path, s: TraceBuilder) -> None:
    """A break is told once, with how often it is there; one of each clause first."""
    for _ in range(20):
        s.call("ImageStatus", {"image": {"image": "x"}}, {})
    report = printed(checked(tmp_path / "t.jsonl", s, never_started))

    assert report.count("scenario plain") == 2
    assert report.count("an image was asked for") == report.count("c1 was started") == 1
    assert re.search(r"count: \d+ times\n", report)


def test_many_breaks_are_cut(tmp_path: Path, s: TraceBuilder) -> None:
    """Few breaks are shown in full, and the rest counted."""
    for name in "abcdefg":
        s.call("StatusOf", {"name": name}, {})
    report = printed(checked(tmp_path / "t.jsonl", s, named))

    assert report.count("scenario plain") == BREAKS_SHOWN
    assert f"and {7 - BREAKS_SHOWN} more breaks" in report


def test_what_one_decision_broke_is_one_group(tmp_path: Path, s: TraceBuilder) -> None:
    """Contracts that are broken in one scenario are one group: first what its first wrong record breaks."""
    s.wait(30).record("event", reason="Scheduled", uid="u", message="late")
    report = printed(checked(tmp_path / "t.jsonl", s, never_started, owed))
    order = re.findall(r"^BROKEN  (\S+)", report, re.MULTILINE)

    assert order == ["SANDBOX-07", "START-01"]
    assert "2 contracts may be broken by one decision. The likeliest cause is SANDBOX-07;" in " ".join(
        report.split()
    )


@contract("CRI-16", on=call("ImageStatus"))
def wrong_runtime(_: Moment) -> Findings:
    """The runtime is right."""
    return broken("the runtime is wrong")


@contract("CRI-14", on=call("StopPodSandbox"))
def wrong_later(_: Moment) -> Findings:
    """The runtime stays right."""
    return broken("the runtime is wrong")


def test_what_follows_from_the_runtime_says_so(tmp_path: Path, s: TraceBuilder) -> None:
    """What the runtime breaks before is the likeliest cause; what is about another pod or earlier is not."""
    s.wait(30).record("event", reason="Scheduled", uid="u", message="late")
    path = tmp_path / "t.jsonl"
    report = printed(checked(path, s, never_started, owed, wrong_runtime))
    heads = re.findall(r"^BROKEN  (\S+)  MUST(.*)", report, re.MULTILINE)

    assert heads == [
        ("CRI-16", ""),
        ("SANDBOX-07", "  (may follow from CRI-16)"),
        ("START-01", "  (may follow from CRI-16)"),
    ]
    assert (
        "3 contracts may be broken by one mistake of the container runtime. The likeliest cause is CRI-16; "
        "what the kubelet does on it breaks SANDBOX-07, START-01." in " ".join(report.split())
    )


def test_what_a_runtime_breaks_later_explains_nothing(tmp_path: Path, s: TraceBuilder) -> None:
    """A kubelet that was wrong before its runtime was, or about another pod, is wrong by itself."""
    s.stop_sandbox(s.run_sandbox(s.pod("db")))
    report = printed(checked(tmp_path / "t.jsonl", s, never_started, wrong_later))

    assert re.findall(r"^BROKEN  (\S+)", report, re.MULTILINE) == ["START-01", "CRI-14"]
    assert "may follow" not in report


def test_expectation_is_no_fact(tmp_path: Path, s: TraceBuilder) -> None:
    """What did not come is told as expected, and what happened instead as what happened."""
    s.wait(30).record("event", reason="Scheduled", uid="u", message="late")
    report = printed(checked(tmp_path / "t.jsonl", s, owed))

    assert "      expected: StopPodSandbox comes within 1 s\n" in report
    assert re.search(
        r"happened: RunPodSandbox default/web .*; what was expected had not come by #\d+\n", report
    )
    assert re.search(r"when: 1 s after [\d.]+ s, #\d+\n", report)


def test_verbose_names_what_is_counted(tmp_path: Path, s: TraceBuilder) -> None:
    """Lists of ids are printed only if they are wanted."""
    check = checked(tmp_path / "t.jsonl", s)

    assert "SANDBOX-02" not in printed(check)
    assert "SANDBOX-02" in printed(check, verbose=True)
    assert "since 1.33: SANDBOX-05" in printed(check, verbose=True)


def test_known_and_stale(tmp_path: Path, s: TraceBuilder) -> None:
    """Known deviations come with their reasons, stale entries with their lines, known breaks in no slice."""
    entry = '[[deviation]]\nid = "{}"\nreason = "{}"\n{}'
    text = (
        entry.format("START-01", "Being mended.", 'clause = "main"\n')
        + entry.format("START-01", "Being mended.", 'clause = "images"\n')
        + entry.format("SANDBOX-01", "Old.", "")
    )
    path = tmp_path / "t.jsonl"
    report = printed(checked(path, s, *CONTRACTS, baseline=text))

    assert "BROKEN" not in report
    assert "known deviations (1)\n    START-01  Being mended.\n" in report
    assert f"remove them (1)\n    {path.with_suffix('.toml')}:9: SANDBOX-01\n" in report
    assert report.splitlines()[-1].startswith("FAILED: 1 kept, 0 broken, 1 known deviation, ")
    assert report.splitlines()[-1].endswith("; 1 entry of the baseline stale")


def test_partly_known_shows_what_is_not(tmp_path: Path, s: TraceBuilder) -> None:
    """Of a contract that is broken in a known and in an unknown way only the unknown one is shown."""
    text = '[[deviation]]\nid = "START-01"\nreason = "r"\nclause = "images"\n'
    report = printed(checked(tmp_path / "t.jsonl", s, never_started, baseline=text))

    assert "c1 was started" in report
    assert "an image was asked for" not in report


def test_colours_only_in_a_terminal(tmp_path: Path, s: TraceBuilder) -> None:
    """A log has no escape at all; a terminal has colours, and no line of it is cut in two."""
    check = checked(tmp_path / "t.jsonl", s)
    plain, coloured = printed(check), printed(check, terminal=True)

    assert "\x1b" not in plain
    assert "\x1b[1;31mBROKEN\x1b[0m" in coloured
    assert f"again: kubelet-conformance check {tmp_path / 't.jsonl'} --contract START-01" in coloured


def test_nothing_of_a_trace_reaches_the_terminal_raw(tmp_path: Path) -> None:
    """Names, images, messages and scenarios with escapes are shown by codes."""
    odd = "\x1b[2J\u202e\x00x"
    s = TraceBuilder(scenario=odd)
    web = s.pod(odd, containers=[{"name": odd, "image": odd}])
    s.run_container(web, s.run_sandbox(web), odd)
    report = printed(checked(tmp_path / "t.jsonl", s, never_started, sandbox_runs))

    assert report.replace("\n", "").isprintable()
    assert r"\x1b[2J\u202e\x00x was started" in report


def test_trace_that_cannot_be_read_again(tmp_path: Path, s: TraceBuilder) -> None:
    """Where the trace is gone by the time of the report, the records are named and the report stands."""
    path = tmp_path / "t.jsonl"
    check = checked(path, s)
    path.unlink()

    assert re.search(r"records #\d+ \(the trace could not be read again\)", printed(check))


def test_nothing_judged(tmp_path: Path) -> None:
    """A report over no trace at all is still a report."""
    assert printed(Check(CONTRACTS)).splitlines()[-1].startswith("INCONCLUSIVE: 0 kept")
    assert tmp_path.exists()
