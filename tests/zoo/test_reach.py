"""What the right kubelet does in a scenario is known, and which bugs would do the same."""

from kubelet_conformance.campaigns.zoo.reach import reached
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.in_process.replaced_parts import Replaced, what_is_replaced
from kubelet_reference.kuberuntime.container.stop_timeout import stop_timeout
from kubelet_reference.pleg.cache import PodCache

SOME = list(every_scenario().items())[::20]


def test_what_a_bug_replaces_is_known() -> None:
    """Of the right kubelet nothing is replaced, of a wrong one the function that is another there."""
    assert what_is_replaced(Choice()) == Replaced(frozenset(), {}, {})
    forgetful = what_is_replaced(Choice(kubelet="bug:MUT-PLEG-07"))
    undecided = what_is_replaced(Choice(kubelet="bug:MUT-PHASE-01"))

    assert forgetful is not None
    assert forgetful.functions == {PodCache.delete.__code__}
    assert (forgetful.decisions, list(forgetful.parts)) == ({}, ["kubelet.pod_cache"])
    assert undecided is not None
    assert (undecided.functions, list(undecided.decisions)) == (frozenset(), ["kubelet.status.pod_phase"])
    assert undecided.parts == undecided.decisions


def test_what_a_scenario_enters_is_known() -> None:
    """A pod that is deleted has its containers stopped, and no stop is asked for where nothing ends."""
    assert stop_timeout.__code__ in reached("termination.deleted_pod_goes_step_by_step", "1.32").entered
    assert (
        stop_timeout.__code__ not in reached("status.host_network_pod_has_the_nodes_address", "1.32").entered
    )


def test_whose_decisions_differ_is_known() -> None:
    """A bug of phases differs where there is such a phase, and no wrong decision does anything."""
    alike = [name for name, _ in SOME if "MUT-PHASE-01" not in reached(name, "1.32").differed]

    assert "MUT-PHASE-01" in reached("phase.debugging_does_not_keep_a_pod_running", "1.32").differed
    assert len(alike) > len(SOME) / 2
