"""A thousand plays of the sweep of all scenarios, on the reference: nothing breaks but what is known to."""

import pytest

from kubelet_conformance.campaigns.sweep.campaign import Sweep
from kubelet_conformance.campaigns.sweep.plan import Plan
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice

PLAYS = 1_000
OPEN = frozenset(
    {
        "bugs.created_app_proves_nothing StopPodSandbox#1 not-found SANDBOX-05",
        "bugs.labels_that_cannot_be_read_cost_no_pod CreateContainer#1 late STATUS-08",
        "bugs.labels_that_cannot_be_read_cost_no_pod CreateContainer#1 late STATUS-09",
        "deadline.restart_of_the_kubelet_does_not_move_the_deadline RunPodSandbox#1 late settling",
        "eviction.soft_eviction_has_the_configured_grace ListPodSandbox#55 kubelet-killed EVICT-02",
        "init.lost_init_is_stopped_and_made_again StartContainer#1 runtime-killed TERM-30",
        "restart_rules.exit_code_restarts_the_whole_pod StartContainer#2 not-found GC-01",
        "restart_rules.init_that_fails_after_it_ends_the_pod RemoveContainer#2 refused INIT-10",
        "runtime_bugs.late_sandboxes_keep_no_addresses RunPodSandbox#5 unavailable SYNC-19",
        "sandbox.address_that_is_none_is_not_shown patch pods/status#1 lost STATUS-16",
        "status.mark_of_an_eviction_stays_with_the_end CreateContainer#1 lost RESTARTKUBELET-13",
    }
)
"""What still breaks in this sample, each a judge that is too strict or a mistake of the reference."""


@pytest.mark.slow
def test_sample_breaks_nothing_new() -> None:
    """Each play of the sample applies its fault, and breaks nothing that is not known."""
    scenarios = every_scenario()
    sweep = Sweep(Choice(), tuple(every_contract().values()), scenarios, Plan(sample=PLAYS))
    sweep.prepare(lambda _: None)
    sweep.run(lambda _: None)
    broken = {f"{each.scenario} {each.blow} {one.what}" for each in sweep.found for one in each.breaks}

    assert (sweep.failed, sweep.played) == ([], PLAYS)
    assert not sorted(broken - OPEN)
