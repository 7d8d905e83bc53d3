"""`run --repeat`: the same run several times, and what did not come out alike."""

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kubelet_conformance.reports.output import complain, deliver
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.files import as_json
from kubelet_conformance.run_record.temporary_folder import TemporaryFolder

SCHEMA = 1
_Report = dict[str, Any]


def play_repeatedly(command: Callable[[Mapping[str, object]], Sequence[str]], given: dict[str, Any]) -> int:
    """Run it so often, compare, and report; the gravest of all exit codes.

    `command` makes the command line of one run from its options. Each run has a folder of its own in that of
    the record. One that comes to no report ends all, having said why.
    """
    times: int = given["repeat"]
    reports: list[_Report] = []
    with TemporaryFolder() as folder:
        for number in range(1, times + 1):
            output = Path(folder, f"{number}.json")
            record = None if given["record"] is None else str(Path(given["record"], f"repeat-{number}"))
            options = {**given, "repeat": None, "format": "json", "output": str(output), "record": record}
            code = subprocess.run(command(options), check=False).returncode  # noqa: S603 - our own interpreter
            if not output.exists():
                return code
            reports.append(json.loads(output.read_text(encoding="utf-8")))
            complain(f"repeat {number} of {times}: {_totals(reports[-1])}", note=True)
    ended = gravest(*(Exit(report["exit_code"]) for report in reports))
    verdicts = [{each["id"]: each["verdict"] for each in report["contracts"]} for report in reports]
    endings = [{each["name"]: _ending(each) for each in report["scenarios"]} for report in reports]
    unstable = {"contracts": _unlike(verdicts), "scenarios": _unlike(endings)}
    if given["format"] == "json":
        runs = [{name: report[name] for name in ("command", "totals", "exit_code")} for report in reports]
        text = as_json({"schema": SCHEMA, "runs": runs, "unstable": unstable, "exit_code": int(ended)})
    else:
        text = _text(reports, unstable)
    deliver(text, given["output"])
    return ended


def _totals(report: _Report) -> str:
    return ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in report["totals"].items())


def _ending(scenario: _Report) -> str:
    """How a scenario ended, in words."""
    if scenario["failed"]:
        return "the suite failed"
    if scenario["died"]:
        return "the kubelet ended"
    broken = f"broke {' '.join(scenario['broken'])}" if scenario["broken"] else ""
    return broken or ("timed out or failed" if scenario["unmet"] else "ok")


def _unlike(runs: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """What did not come out alike, by name, in the order of the runs."""
    names = dict.fromkeys(name for run in runs for name in run)
    every = {name: [run.get(name, "not played") for run in runs] for name in names}
    return {name: each for name, each in every.items() if len(set(each)) > 1}


def _text(reports: Sequence[_Report], unstable: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    lines = [f"run {number}: {_totals(report)}" for number, report in enumerate(reports, 1)]
    for what, found in unstable.items():
        lines += ["", f"unstable {what} ({len(found)})"]
        lines += [f"    {name}: {', '.join(each).replace('_', ' ')}" for name, each in found.items()]
    return "".join(f"{line}\n" for line in lines)
