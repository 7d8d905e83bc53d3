"""SANDBOX contracts on which sandbox counts, and on who does not keep one."""

import pytest
from trace_builder import TraceBuilder
from twice import detects


@pytest.mark.parametrize("step", ["create", "run"])
@detects("SANDBOX-03")
def test_sandbox_made_last_counts(s: TraceBuilder, step: str, *, right: bool) -> None:
    """SANDBOX-03 breaks when something is done by another sandbox than the one made last."""
    web = s.pod()
    first = s.run_sandbox(web)
    s.run_container(web, first)
    s.wait(5).sandbox_died(first)
    s.stop_sandbox(first)
    second = s.run_sandbox(web, 1)
    if step == "create":
        s.run_container(web, second if right else first, attempt=1)
        return
    s.wait(5).sandbox_died(second)
    s.stop_sandbox(second)
    s.run_sandbox(web, 2 if right else 1)
