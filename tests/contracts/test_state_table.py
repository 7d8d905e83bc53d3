"""Table 27.8: what a status says of a container, by its newest record and by what was said before."""

from __future__ import annotations

from typing import Any

import pytest
from pod_status import ended, runs, tell_status, waits
from running import BROKEN, KEPT, running

from kubelet_conformance.contract.verdicts import Verdict


@pytest.mark.parametrize(("said", "verdict"), [("runs", KEPT), ("ended", BROKEN), ("waits", BROKEN)])
def test_state_was_read(said: str, verdict: Verdict) -> None:
    """CSTAT-02: of a container that was read as running nothing else is said."""
    s, web, _, c1 = running()
    told: dict[str, dict[str, Any]] = {
        "runs": runs(c1),
        "ended": ended(0, c1),
        "waits": waits("", c1),
    }
    tell_status(s, web, "Running", [told[said]])

    assert s.judge("CSTAT-02").verdict is verdict
