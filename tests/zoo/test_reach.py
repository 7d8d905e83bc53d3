"""Scenarios that never enter what a bug replaces are not played again, and nothing is missed by that."""

from __future__ import annotations

import pytest

from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.replaced import functions_replaced
from kubelet_conformance.targets.stage import Choice
from kubelet_conformance.zoo import hunt as hunting
from kubelet_conformance.zoo.reach import reached
from kubelet_reference.pod_cache import PodCache
from kubelet_reference.stop_timeout import stop_timeout

SOME = list(every_scenario().items())[::20]


def test_what_a_bug_replaces_is_known() -> None:
    """Of the right kubelet nothing is replaced, of a wrong one the function that is another there."""
    assert functions_replaced(Choice()) == frozenset()
    forgetful = functions_replaced(Choice(kubelet="bug:MUT-PLEG-07"))

    assert forgetful == frozenset({PodCache.delete.__code__})


def test_what_a_scenario_enters_is_known() -> None:
    """A pod that is deleted has its containers stopped, and no stop is asked for where nothing ends."""
    assert stop_timeout.__code__ in reached("termination.deleted_pod_goes_step_by_step", "1.32").entered
    assert (
        stop_timeout.__code__ not in reached("status.host_network_pod_has_the_nodes_address", "1.32").entered
    )


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["MUT-PLEG-07", "CRIO-7004", "K8S-100608"])
def test_nothing_is_missed(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    """What catches a bug is the same whether all is played or only what may differ."""
    monkeypatch.setattr(hunting, "every_scenario", lambda: dict(SOME))
    sooner = hunting.hunt(bug, full=True)

    def everywhere(_: Choice) -> None:
        """It cannot be told what the bug replaces."""

    monkeypatch.setattr(hunting, "functions_replaced", everywhere)

    assert hunting.hunt(bug, full=True) == sooner
