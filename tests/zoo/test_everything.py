"""Every scenario on every bug: what is not played alone is missed by nobody."""

from typing import Any

import pytest

from kubelet_conformance.campaigns.zoo import full_hunt
from kubelet_conformance.campaigns.zoo.full_hunt import call_runtime_directly, play_on_each
from kubelet_conformance.campaigns.zoo.hunt import Caught
from kubelet_conformance.plugin.play import Performed, perform
from kubelet_conformance.targets.bugs import bug_card, bug_ids

SOME = [*bug_ids()[::4], "CRIO-7004", "K8S-53530", "MUT-PLEG-07"]
"""Of kubelets and of runtimes, a hundred and more."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [
        "bugs.phase_that_another_ended_stays",
        "kubelet_restart.ended_pods_stay_ended",
        "sidecar.sidecars_are_refused_without_their_gate",
    ],
)
def test_nothing_is_missed(monkeypatch: pytest.MonkeyPatch, scenario: str) -> None:
    """What a scenario breaks on a bug is the same whether bugs are played together or each alone."""
    together = play_on_each(SOME, scenario)
    monkeypatch.setattr(full_hunt, "_WORTH_IT", len(SOME) + 1)

    assert together == play_on_each(SOME, scenario)
    assert any(broken for broken, _ in together.values())


def test_bugs_are_played_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where few bugs do anything there are much fewer plays than bugs."""
    plays: list[str] = []

    def counted(body: Any, scenario: str, *how: Any, **more: Any) -> Performed:
        plays.append(scenario)
        return perform(body, scenario, *how, **more)

    monkeypatch.setattr(full_hunt, "perform", counted)
    play_on_each(SOME, "sidecar.sidecars_are_refused_without_their_gate")

    assert 0 < len(plays) < len(SOME) / 2


def test_a_runtime_plays_every_scenario() -> None:
    """Each scenario comes out, broken ones among them."""
    reported = call_runtime_directly("CRIO-8030")

    assert len(reported) > 50
    assert {"CRI-13"} <= {each for broken, _ in reported.values() for each in broken}


def test_only_a_failure_in_a_witness_puts_in_doubt() -> None:
    """A scenario that a wrong kubelet is beyond says nothing of whether it is caught."""
    bug = bug_card("K8S-52641")
    beyond = Caught.of(bug, {"probes.status_of_http_decides": ((), "it crashed")})
    failed = Caught.of(bug, {"bugs.exit_does_not_undo_a_deletion": ((), "it crashed")})

    assert (beyond.is_in_doubt, failed.is_in_doubt) == (False, True)
    assert beyond.failed == {"probes.status_of_http_decides": "it crashed"}


def test_witnesses_are_played_to_their_end() -> None:
    """What is overdue after many minutes only is seen where it is declared to be."""
    found = play_on_each(bug_ids(), "bugs.exit_does_not_undo_a_deletion")

    assert found["K8S-52641"] == (("WORK-03",), "")
