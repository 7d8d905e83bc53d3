"""Who asks whether a call was tampered with takes in the faults himself, whatever else is judged."""

from __future__ import annotations

from types import CodeType

import pytest

from kubelet_conformance.contracts import every_contract
from kubelet_conformance.contracts.struck import take_in_strikes

ASKS = {"refusal", "is_struck"}


def names_in(code: CodeType) -> set[str]:
    """What a function and those within it refer to."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(names_in, inner))


@pytest.mark.parametrize("contract_id", every_contract())
def test_who_asks_remembers(contract_id: str) -> None:
    """Else a contract that is judged alone would not know of the faults."""
    judges = [each.judge for each in every_contract()[contract_id].clauses if each.judge is not None]
    codes = [code for each in judges if isinstance(code := getattr(each, "__code__", None), CodeType)]
    asks = any(ASKS & names_in(code) for code in codes)

    assert not asks or take_in_strikes in judges
