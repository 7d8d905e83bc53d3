"""Every scenario on a bug, and what comes of scenarios that a wrong kubelet is beyond."""

import pytest

from kubelet_conformance.campaigns.zoo import hunt as module
from kubelet_conformance.campaigns.zoo.hunt import Caught, hunt
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import bug_card

WITNESS, OTHER = "bugs.exit_does_not_undo_a_deletion", "phase.crash_loop_runs"


def test_every_scenario_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full hunt plays what is no witness too; what is overdue after many minutes is seen by the witness."""
    some = {name: every_scenario()[name] for name in (WITNESS, OTHER)}
    monkeypatch.setattr(module, "every_scenario", lambda: some)

    full, usual = hunt("K8S-52641", full=True), hunt("K8S-52641")

    assert (set(full.scenarios), set(usual.scenarios)) == ({WITNESS, OTHER}, {WITNESS})
    assert full.scenarios[WITNESS] == usual.scenarios[WITNESS] == ("WORK-03",)


def test_a_runtime_plays_every_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full hunt of a runtime calls it directly in every way."""
    monkeypatch.setattr(module, "every_scenario", dict)

    found = hunt("CRIO-8030", full=True)

    assert len(found.scenarios) > 50
    assert "CRI-13" in found.caught_by


def test_only_a_failure_in_a_witness_puts_in_doubt() -> None:
    """A scenario that a wrong kubelet is beyond says nothing of whether it is caught."""
    bug = bug_card("K8S-52641")
    beyond = Caught.of(bug, {"probes.status_of_http_decides": ((), "it crashed")})
    failed = Caught.of(bug, {WITNESS: ((), "it crashed")})

    assert (beyond.is_in_doubt, failed.is_in_doubt) == (False, True)
    assert beyond.failed == {"probes.status_of_http_decides": "it crashed"}
