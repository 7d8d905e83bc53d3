"""What the default run costs: wall time, processor time and peak memory of `kubelet-conformance run`.

python tests/bench/run_speed.py [--repeats N] [--format terminal|json] [-- ARGUMENTS OF run]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPEATS = 3
SECONDS_TARGET = 20
"""Of wall time on two processors, start-up included: no more."""
SECONDS_AIM = 12
"""What is wanted."""
MEGABYTES_TARGET = 300
_BYTES_A_UNIT = 1 if sys.platform == "darwin" else 1024
"""In what `ru_maxrss` counts."""


def played(arguments: list[str]) -> dict[str, Any]:
    """Play once, in a process of its own, and measure that."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "kubelet_conformance", "run", *arguments]
        command += ["--format", "json", "--output", str(report)]
        began = time.monotonic()
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        took = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if not report.exists():
            raise SystemExit(f"the run wrote no report, and ended with {process.returncode}")
        scenarios = json.loads(report.read_text(encoding="utf-8"))["scenarios"]
    return {
        "scenarios": len(scenarios),
        "records": sum(each["records"] for each in scenarios),
        "exit_code": process.returncode,
        "seconds": round(took, 2),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 2),
        "megabytes": round(used.ru_maxrss * _BYTES_A_UNIT / 1e6),
    }


def print_report(best: dict[str, Any]) -> None:
    """The measurement as text."""
    in_time = "met" if best["seconds"] <= SECONDS_TARGET else "missed"
    in_room = "met" if best["megabytes"] <= MEGABYTES_TARGET else "missed"
    print(f"{best['scenarios']} scenarios, {best['records']} records; exit code {best['exit_code']}")
    print(
        f"  {best['seconds']} s (target {SECONDS_TARGET}: {in_time}; aim {SECONDS_AIM}),"
        f" {best['processor_seconds']} s of CPU,"
    )
    print(f"  {best['megabytes']} MB at most (target {MEGABYTES_TARGET}: {in_room})")


def main() -> int:
    """Measure, print the fastest, and return the exit status."""
    parser = argparse.ArgumentParser(description="How much does the default run cost?")
    parser.add_argument("--repeats", type=int, default=REPEATS, metavar="N", help="the fastest of N counts")
    parser.add_argument("--format", choices=("terminal", "json"), default="terminal")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="of run, after --")
    options = parser.parse_args()

    best = min(
        (played(options.arguments) for _ in range(options.repeats)), key=lambda measured: measured["seconds"]
    )
    if options.format == "json":
        print(json.dumps(best, indent=2))
    else:
        print_report(best)
    return 0


if __name__ == "__main__":
    sys.exit(main())
