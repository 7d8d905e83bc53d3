"""A thousand plays of the sweep of all scenarios, on the reference: nothing breaks."""

import pytest

from kubelet_conformance.campaigns.sweep.campaign import Sweep
from kubelet_conformance.campaigns.sweep.plan import Plan
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice

PLAYS = 1_000


@pytest.mark.slow
def test_sample_breaks_nothing_new() -> None:
    """Each play of the sample applies its fault, and breaks nothing."""
    scenarios = every_scenario()
    sweep = Sweep(Choice(), tuple(every_contract().values()), scenarios, Plan(sample=PLAYS))
    sweep.prepare(lambda _: None)
    sweep.run(lambda _: None)
    broken = {f"{each.scenario} {each.blow} {one.what}" for each in sweep.found for one in each.breaks}

    assert (sweep.failed, sweep.played) == ([], PLAYS)
    assert sorted(broken) == []
