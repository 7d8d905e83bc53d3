"""Do the judges bite? Judge every mutant of the shipped traces, and tell which are caught.

    python tests/mutation/run.py [--trace GLOB] [--change GLOB] [--why] [--survivors]

Fails when a class of call or of change has under 80 % caught, when a survivor is neither listed in
`survivors.toml` nor caught, when a listed one is caught or gone, and when a judge fails on a mutant.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from multiprocessing import Pool
from pathlib import Path

from judging import Finding, found
from mutants import mutants
from recording import load, shipped
from survivors import listed

from kubelet_conformance.contract.catalogue import row
from kubelet_fixtures import traces

ENOUGH = 0.8
FEW = 10
"""A class with fewer mutants is judged by its list alone."""
PROCESSES = 2


@dataclass
class Cell:
    """One class: how many mutants it has, and how many were caught by which contracts."""

    mutants: int = 0
    caught: int = 0
    by_kubelet: int = 0
    """Caught by a contract that binds the kubelet, not only by one of the runtime's."""
    by: Counter[str] = field(default_factory=Counter[str])

    def add(self, finding: Finding) -> None:
        """Count one mutant."""
        self.mutants += 1
        self.caught += finding.caught
        self.by_kubelet += any(row(key).addressee == "kubelet" for key in finding.broken)
        self.by.update(finding.broken)

    @property
    def enough(self) -> bool:
        """It is small, or most are caught."""
        return self.mutants < FEW or self.caught >= ENOUGH * self.mutants

    def __str__(self) -> str:
        mark = "" if self.enough else "  <-- under 80 %"
        small = "  (by list)" if self.mutants < FEW else ""
        shares = f"{100 * self.caught // self.mutants:5} % {100 * self.by_kubelet // self.mutants:7} %"
        return f"{self.mutants:6} {self.caught:6} {shares}{small}{mark}"


def findings_of(job: tuple[Path, str]) -> list[Finding]:
    """Judge the mutants of one trace whose change fits."""
    path, change = job
    recording = load(path)
    return [found(recording, one) for one in mutants(recording) if fnmatchcase(one.change, change)]


def all_findings(paths: list[Path], change: str) -> list[Finding]:
    """Judge every mutant, showing progress."""
    findings: list[Finding] = []
    with Pool(PROCESSES) as pool:
        jobs = pool.imap(findings_of, [(path, change) for path in paths])
        for number, some in enumerate(jobs, start=1):
            findings += some
            if sys.stderr.isatty() or number == len(paths):
                end = "\n" if number == len(paths) else "\r"
                print(f"{number}/{len(paths)} traces, {len(findings)} mutants", end=end, file=sys.stderr)
    return findings


def classes(findings: Iterable[Finding]) -> dict[tuple[str, str], Cell]:
    """The table: call by change, and the sums of each, written `*`."""
    table: dict[tuple[str, str], Cell] = defaultdict(Cell)
    for finding in findings:
        for key in ((finding.call, finding.change), (finding.call, "*"), ("*", finding.change), ("*", "*")):
            table[key].add(finding)
    return dict(table)


def print_table(table: dict[tuple[str, str], Cell], *, why: bool) -> None:
    """One line a class."""
    print(f"{'call':18} {'change':16} {'all':>6} {'caught':>6} {'':7} {'kubelet':>8}")
    for (call, change), cell in sorted(table.items(), key=lambda item: (item[0][0] == "*", item[0])):
        print(f"{call:18} {change:16} {cell}")
        if why:
            print("    " + ", ".join(f"{key} {count}" for key, count in cell.by.most_common(12)))


def problems(findings: list[Finding], *, whole: bool) -> list[str]:
    """What must be mended, one line each."""
    reasons = listed()
    survivors = {finding.name for finding in findings if not finding.caught}
    names = {finding.name for finding in findings}
    stale = {name for name in reasons if name in names - survivors or (whole and name not in names)}
    return [
        *(
            f"{name}: the judge of {', '.join(f.errors)} failed"
            for f in findings
            if f.errors
            for name in [f.name]
        ),
        *(
            f"{name}: survives, and survivors.toml does not say why"
            for name in sorted(survivors - reasons.keys())
        ),
        *(f"{name}: listed in survivors.toml, but caught or gone" for name in sorted(stale)),
        *(
            f"{call} x {change}: {cell.caught} of {cell.mutants} caught, 80 % are needed"
            for (call, change), cell in classes(findings).items()
            if not cell.enough
        ),
    ]


def main() -> int:
    """Run, print, and return the exit status."""
    parser = argparse.ArgumentParser(description="Judge every mutant of the shipped traces.")
    parser.add_argument(
        "--trace", default="*", metavar="GLOB", help="only traces like this: 'kubernetes-1.32/*'"
    )
    parser.add_argument("--change", default="*", metavar="GLOB", help="only changes like this: 'drop'")
    parser.add_argument("--why", action="store_true", help="name the contracts that caught each class")
    parser.add_argument("--survivors", action="store_true", help="list every survivor with its reason")
    options = parser.parse_args()

    paths = [p for p in shipped(traces()) if fnmatchcase(f"{p.parent.name}/{p.stem}", options.trace)]
    findings = all_findings(paths, options.change)
    print_table(classes(findings), why=options.why)
    if options.survivors:
        reasons = listed()
        for finding in findings:
            if not finding.caught:
                print(f"{finding.name}: {reasons.get(finding.name, 'no reason given')}")
    found_problems = problems(findings, whole=options.trace == options.change == "*")
    for problem in found_problems:
        print(problem)
    return 1 if found_problems else 0


if __name__ == "__main__":
    sys.exit(main())
