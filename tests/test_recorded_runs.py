"""Whole runs on real kubelets: outside what is known of its release, a kubelet breaks nothing.

Each pack has the traces of one run of all scenarios that a kubelet with an API server can show, or one with a
manifest folder.
"""

import tarfile
from pathlib import Path

import pytest

from kubelet_conformance.contract.baseline import Baseline
from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_fixtures import runs

KEPT_MIN = 300
"""So many contracts are kept, at least, on each of these kubelets."""
EVERY, SAMPLE_KEPT_MIN = 4, 150
"""Of the sample one in so many traces is judged, and at least so many contracts are kept in them."""


def known(pack: str) -> Baseline:
    """The bundled baseline of the release."""
    return Baseline.read(pack.removesuffix("-api"), every_contract())


PACKS = [
    pytest.param(pack, 1, KEPT_MIN, marks=pytest.mark.campaign, id=pack)
    for pack in sorted(each.name.removesuffix(".tar.xz") for each in runs().glob("*.tar.xz"))
]
SAMPLE = pytest.param("kubernetes-1.36-api", EVERY, SAMPLE_KEPT_MIN, id="sample")


@pytest.mark.slow
@pytest.mark.parametrize(("pack", "every", "kept_min"), [SAMPLE, *PACKS])
def test_a_run_breaks_nothing_that_is_not_known(pack: str, every: int, kept_min: int, tmp_path: Path) -> None:
    """Nothing is broken outside the baseline of the release, and most of what can be shown is kept."""
    with tarfile.open(runs() / f"{pack}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    check = Check(every_contract().values(), known(pack))
    for trace in sorted(tmp_path.rglob("*.jsonl"))[::every]:
        check.add(judge_file(str(trace), check.contracts))

    verdicts = {key: result.outcome.verdict for key, result in check.results.items()}
    assert [key for key, one in verdicts.items() if one in {Verdict.BROKEN, Verdict.ERROR}] == []
    assert check.totals()[Verdict.KEPT] >= kept_min
