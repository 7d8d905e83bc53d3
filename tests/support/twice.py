"""Tell one story twice, right and wrong: a contract must keep the one and break the other."""

from __future__ import annotations

from typing import Protocol

from story import Story

from kubelet_conformance.contract.verdicts import Verdict


class Teller(Protocol):
    """Tells a story, right or with the one thing wrong that breaks the contract."""

    def __call__(self, s: Story, *, right: bool) -> None:
        """Tell it."""


def assert_bites(contract_id: str, tell: Teller, *, kubernetes: str | None = "1.32") -> None:
    """Told right the story keeps the contract, told wrong it breaks it."""
    for right in (True, False):
        s = Story(kubernetes)
        tell(s, right=right)
        outcome = s.judge(contract_id)
        expected = Verdict.KEPT if right else Verdict.BROKEN

        assert outcome.verdict is expected, (contract_id, right, outcome.reason, outcome.evidence)
