"""The known deviations that come along, and how they are chosen."""

from importlib import resources
from pathlib import Path

import pytest

from kubelet_conformance.contract.baseline import Baseline, BaselineError
from kubelet_conformance.contract.verdicts import Evidence, Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.runtime_checks import baselines
from kubelet_conformance.runtime_checks.judging import the_runtimes
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.targets.cri_endpoint import shipped_baseline

FILES = [Path(str(each)) for each in resources.files(baselines).iterdir() if each.name.endswith(".toml")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_entries_name_what_there_is(file: Path) -> None:
    """Each entry names a contract that binds a runtime, a clause of it, a scenario, and its source."""
    known = Baseline.read(str(file), every_contract()).deviations
    names = {scenario.name for scenario in every_runtime_scenario()}

    assert known
    for each in known:
        assert each.id in the_runtimes()
        assert each.scenario is None or each.scenario in names


@pytest.mark.parametrize(
    ("name", "version", "chosen"),
    [
        ("containerd", "1.6.20~ds1", "containerd-1.6.toml"),
        ("containerd", "v1.6.0", "containerd-1.6.toml"),
        ("containerd", "1.60.1", None),
        ("containerd", "2.0.1", None),
        ("cri-o", "1.6.1", None),
        ("", "", None),
        ("../../etc/passwd", "1.6", None),
    ],
)
def test_a_baseline_is_chosen_by_name_and_version(name: str, version: str, chosen: str | None) -> None:
    """The runtime's own words choose: its name, and the first two numbers of its version."""
    found = shipped_baseline(baselines, name, version)

    assert (found.name if found else None) == chosen


def deviations(tmp_path: Path, sometimes: str) -> Baseline:
    """A baseline of one entry."""
    path = tmp_path / "known.toml"
    path.write_text(f'[[deviation]]\nid = "CRI-04"\nreason = "why"\n{sometimes}\n')
    return Baseline.read(str(path), every_contract())


@pytest.mark.parametrize(("sometimes", "stale"), [("", 1), ("sometimes = false", 1), ("sometimes = true", 0)])
def test_what_is_broken_sometimes_is_never_stale(tmp_path: Path, sometimes: str, stale: int) -> None:
    """An entry that was kept is stale, unless it says that its break depends on timing."""
    baseline = deviations(tmp_path, sometimes)
    baseline.applied("CRI-04", Outcome(Verdict.KEPT, 1, kept_clauses={("", None)}))

    assert len(baseline.stale()) == stale


def test_what_is_broken_sometimes_is_known(tmp_path: Path) -> None:
    """Such a break is a known deviation like any other."""
    evidence = [Evidence("t", None, "", (1,), "text")]
    broken = Outcome(Verdict.BROKEN, 1, 1, evidence, broken_clauses={("", None)})

    assert (
        deviations(tmp_path, "sometimes = true").applied("CRI-04", broken).verdict.words == "known deviation"
    )


def test_sometimes_is_true_or_false(tmp_path: Path) -> None:
    """Anything else is bad input, with the line of the entry."""
    with pytest.raises(BaselineError, match=r"known.toml:1: sometimes is neither true nor false"):
        deviations(tmp_path, 'sometimes = "yes"')
