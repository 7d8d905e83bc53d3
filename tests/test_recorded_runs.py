"""Whole runs on real kubelets: outside what is known of its release, a kubelet breaks nothing.

Each pack has the traces of one run of all scenarios that a kubelet with a manifest folder can show.
"""

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from kubelet_conformance.contract.baseline import Baseline
from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_fixtures import runs

KEPT_MIN = 300
"""So many contracts are kept, at least, on each of these kubelets."""


def known(release: str) -> Baseline:
    """The bundled baseline; a trace of a node that scenarios share does not say which of them is at work."""
    bundled = Baseline.read(release, every_contract())
    return Baseline(release, [replace(each, scenario=None) for each in bundled.deviations])


@pytest.mark.slow
@pytest.mark.parametrize("release", ["kubernetes-1.32", "kubernetes-1.36"])
def test_a_run_breaks_nothing_that_is_not_known(release: str, tmp_path: Path) -> None:
    """Nothing is broken outside the baseline of the release, and most of what can be shown is kept."""
    with tarfile.open(runs() / f"{release}.tar.xz") as pack:
        pack.extractall(tmp_path, filter="data")
    check = Check(every_contract().values(), known(release))
    for trace in sorted(tmp_path.rglob("*.jsonl")):
        check.add(judge_file(str(trace), check.contracts))

    verdicts = {key: result.outcome.verdict for key, result in check.results.items()}
    assert [key for key, one in verdicts.items() if one in {Verdict.BROKEN, Verdict.ERROR}] == []
    assert check.totals()[Verdict.KEPT] >= KEPT_MIN
