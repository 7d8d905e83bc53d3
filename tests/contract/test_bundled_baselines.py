"""The known deviations of kubelets that come along."""

import re
from fnmatch import filter as matching
from importlib import resources

import pytest

from kubelet_conformance.contract.applicability import requirements
from kubelet_conformance.contract.baseline import Baseline, BaselineError
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.scenarios import every_scenario

FOLDER = resources.files("kubelet_conformance.contract") / "baselines"
NAMES = sorted(each.name.removesuffix(".toml") for each in FOLDER.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_entries_name_what_there_is(name: str) -> None:
    """At most twelve causes, for a known version; each names a scenario, and an issue or a function."""
    known = Baseline.read(name, every_contract()).deviations

    assert requirements(name.removeprefix("kubernetes-"))
    assert 0 < len({each.line for each in known}) <= 12
    for each in known:
        assert each.scenario is None or matching(every_scenario(), each.scenario)
        assert re.search(r"#\d+|: \w+ in \w+\.go", each.reason)


def test_other_versions_have_none() -> None:
    """A name without a file is bad input, and those that there are are named."""
    with pytest.raises(
        BaselineError, match=r"kubernetes-1\.24: cannot be read: .*; bundled are kubernetes-1"
    ):
        Baseline.read("kubernetes-1.24", every_contract())
