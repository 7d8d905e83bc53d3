"""Last of the contract tests: what the stories told before it must add up."""

from __future__ import annotations

from pathlib import Path

import pytest
from story import SHOWN

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract


@pytest.fixture
def whole_folder(request: pytest.FixtureRequest) -> None:
    """Every test of this folder runs in this process before."""
    here = Path(__file__).parent
    collected = {item.path for item in request.session.items if item.path.parent == here}
    if collected != set(here.glob("test_*.py")) or request.config.option.keyword:
        pytest.skip("only a part of the contract tests was asked for")
    if hasattr(request.config, "workerinput"):
        pytest.skip("the stories are told in several processes")


@pytest.mark.usefixtures("whole_folder")
@pytest.mark.parametrize("verdict", [Verdict.KEPT, Verdict.BROKEN])
def test_every_contract_was_shown_to_be(verdict: Verdict) -> None:
    """For each contract a story keeps it, and another breaks it: none is unable to fail."""
    lacking = [
        contract_id for contract_id in every_contract() if verdict not in SHOWN.get(contract_id, set())
    ]

    assert not lacking, f"no story shows these {verdict.words}: {' '.join(lacking)}"
