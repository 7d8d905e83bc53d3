"""How fast a long trace is judged, as ratios to reading it alone, and whether memory grows with its length.

python tests/bench/check_speed.py [--records N] [--format terminal|json] [--profile]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from stitching import histories, mix, stitch

from kubelet_conformance.contract.checking import judge_file
from kubelet_conformance.contract.definition import Answered, Broken, Clause, Contract, Findings, Kept
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.world.moment import Moment
from kubelet_fixtures import traces

RECORDS = 1_000_000
KUBERNETES = "1.32"
HOW_MANY = (1, 10, 40)
ROUNDS = 3
"""How often each is measured."""
TARGET = 50_000
"""Records a second with all contracts on one core: no fewer."""
AIM = 100_000
"""What is wanted."""
DEAREST = 30
"""How many contracts a profile shows."""
SHARES = {"a tenth": 10, "half": 2, "all": 1}
"""Memory is compared over traces of these lengths. What is bounded (the latest call ids, the latest reply to
each request) has filled up by the half; what grew with the length would go on growing.
"""


def read(path: Path) -> None:
    """Read the trace and do nothing with it."""
    with Reader(path) as reader:
        for _ in reader:
            pass


def judge(path: Path, contracts: list[Contract]) -> None:
    """Judge the trace by these contracts, as `check` does."""
    judge_file(str(path), contracts)


def some(contracts: list[Contract], number: int) -> list[Contract]:
    """So many of them, taken evenly over all."""
    return [contracts[place * len(contracts) // number] for place in range(min(number, len(contracts)))]


def seconds(work: Any, *arguments: Any) -> float:
    """The least processor time it takes: other load on the machine can only make it slower."""
    return min(_once(work, *arguments) for _ in range(ROUNDS))


def _once(work: Any, *arguments: Any) -> float:
    began = time.process_time()
    work(*arguments)
    return time.process_time() - began


def measured(path: Path, records: int) -> list[dict[str, Any]]:
    """One row for reading alone, and one for each number of contracts."""
    contracts = list(every_contract().values())
    alone = seconds(read, path)
    rows = [_row("reading alone", records, alone, alone)]
    numbers = [number for number in HOW_MANY if number < len(contracts)]
    for number in (*numbers, len(contracts)):
        took = seconds(judge, path, some(contracts, number))
        rows.append(_row(f"{number} contract{'s' if number > 1 else ''}", records, took, alone))
    rows[-1]["what"] = f"all {len(contracts)} contracts"
    return rows


def _row(what: str, records: int, took: float, alone: float) -> dict[str, Any]:
    return {
        "what": what,
        "records_per_second": round(records / took),
        "times_reading": round(took / alone, 2),
    }


def peak_mib(path: Path) -> float:
    """The most memory a process of its own takes to judge the trace by all contracts."""
    command = [sys.executable, __file__, "--judge", str(path)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def report_peak(path: Path) -> None:
    """What `peak_mib` reads."""
    judge(path, list(every_contract().values()))
    print(_peak_kib() / 1024)


def _peak_kib() -> int:
    """Linux counts what the parent took in ru_maxrss, so its own figure for this program is better."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line[:6] == "VmHWM:")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def profile(path: Path, records: int) -> None:
    """The contracts that cost most: microseconds for each record of the trace and for each call."""
    costs: dict[str, list[float]] = {}
    judge(path, [_timed(one, costs.setdefault(one.id, [])) for one in every_contract().values()])
    dearest = sorted(costs.items(), key=lambda item: sum(item[1]), reverse=True)
    print(f"{'contract':20} {'calls':>8} {'us a call':>10} {'us a record':>12}")
    for key, times in dearest[:DEAREST]:
        took = sum(times) * 1e6
        print(f"{key:20} {len(times):8} {took / len(times):10.2f} {took / records:12.3f}")
    print(f"{'all':20} {'':8} {'':10} {sum(sum(times) for times in costs.values()) * 1e6 / records:12.3f}")


def _timed(contract: Contract, times: list[float]) -> Contract:
    """The same contract, which notes how long each call of its judges takes."""

    def timed(clause: Clause) -> Clause:
        def ask(m: Moment) -> Findings:
            began = time.perf_counter()
            findings = clause.call(m)
            if findings is not None and not isinstance(findings, (Kept, Broken, Answered)):
                findings = list(findings)
            times.append(time.perf_counter() - began)
            return findings

        return replace(clause, call=ask)

    return replace(contract, clauses=[timed(clause) for clause in contract.clauses])


def bench(folder: Path, records: int, *, profiled: bool) -> dict[str, Any]:
    """Everything, as one JSON value."""
    source = traces() / f"kubernetes-{KUBERNETES}"
    paths = {share: folder / f"{share}.jsonl" for share in SHARES}
    # Making and counting millions of lines leaves a scattered heap, which would slow the judging behind it.
    with get_context("spawn").Pool(1) as helper:
        written = helper.apply(_stitched, (source, paths, records))
        here = helper.apply(_shares, (paths["all"],))
        real = helper.apply(mix, (sorted(source.glob("*.jsonl")),))
    if profiled:
        profile(paths["a tenth"], written["a tenth"])
        return {}
    long, number = paths["all"], written["all"]
    return {
        "records": number,
        "bytes_per_record": {"here": round(long.stat().st_size / number), "real": round(real.pop("bytes"))},
        "kinds": {"here": here, "real": {kind: round(share, 4) for kind, share in real.items()}},
        "speed": measured(long, number),
        "peak_mib": {share: round(peak_mib(path), 1) for share, path in paths.items()},
    }


def _stitched(source: Path, paths: dict[str, Path], records: int) -> dict[str, int]:
    parts = histories(source)
    return {share: stitch(paths[share], parts, records // part) for share, part in SHARES.items()}


def _shares(path: Path) -> dict[str, float]:
    shares = mix([path])
    del shares["bytes"]
    return {kind: round(share, 4) for kind, share in shares.items()}


def print_report(made: dict[str, Any]) -> None:
    """The value as tables."""
    size = made["bytes_per_record"]
    print(f"{made['records']} records: the histories of Kubernetes {KUBERNETES}, over and over")
    print(f"\n{'kind':10} {'here':>8} {'real':>8}")
    for kind, share in made["kinds"]["real"].items():
        print(f"{kind:10} {made['kinds']['here'].get(kind, 0):8.2%} {share:8.2%}")
    print(f"{'bytes each':10} {size['here']:8} {size['real']:8}")
    print(f"\n{'':20} {'records/s':>12} {'x reading':>10}")
    for row in made["speed"]:
        print(f"{row['what']:20} {row['records_per_second']:12,} {row['times_reading']:10.2f}")
    peaks = ", ".join(f"{peak} MiB over {share}" for share, peak in made["peak_mib"].items())
    print(f"\npeak memory: {peaks} of the records")
    verdict = "met" if made["speed"][-1]["records_per_second"] >= TARGET else "missed"
    print(f"target of {TARGET:,} records/s with all contracts: {verdict}; aim {AIM:,}")


def main() -> int:
    """Bench, print, and return the exit status."""
    parser = argparse.ArgumentParser(description="How fast is a long trace judged?")
    parser.add_argument("--records", type=int, default=RECORDS, metavar="N")
    parser.add_argument("--format", choices=("terminal", "json"), default="terminal")
    parser.add_argument(
        "--profile", action="store_true", help="tell which contracts cost most, on a tenth of the records"
    )
    parser.add_argument("--judge", type=Path, metavar="TRACE", help=argparse.SUPPRESS)
    options = parser.parse_args()

    if options.judge:
        report_peak(options.judge)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        made = bench(Path(folder), options.records, profiled=options.profile)
    if options.format == "json" and made:
        print(json.dumps(made, indent=2))
    elif made:
        print_report(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
