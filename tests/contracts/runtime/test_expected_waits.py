"""What a scenario waits for in the name of a contract is judged by it."""

import pytest
from running import BROKEN, KEPT
from trace_builder import TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict


@pytest.mark.parametrize(
    "contract", ["HOOK-08", "PROBE-20", "PROBE-26", "SHUT-03", "START-11", "SYNC-21", "TERM-12"]
)
@pytest.mark.parametrize(("met", "verdict"), [(True, KEPT), (False, BROKEN)], ids=["comes", "does-not-come"])
def test_what_is_awaited_comes(contract: str, *, met: bool, verdict: Verdict) -> None:
    """A wait that times out breaks the contract that it names."""
    s = TraceBuilder()
    s.record("expect", contract=contract, awaited="what it promises", by=1.0, met=met)

    assert s.judge(contract).verdict is verdict
