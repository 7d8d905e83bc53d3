"""Table 27.1 as the suite has it: why a pod needs another sandbox, each row by itself."""

from __future__ import annotations

import pytest
from story import PodHandle, Story

from kubelet_conformance.contracts.sandboxes import REPLACEMENTS, why_replaced


def tell(s: Story, web: PodHandle, row: str) -> None:
    """What leads to this row, if anything does."""
    if row == "it has none":
        return
    first = s.run_sandbox(web)
    match row:
        case "the newest is not ready":
            s.wait(5).sandbox_died(first)
        case "more than one is ready":
            s.wait(5).run_sandbox(web, 1)
        case "its network namespace is another one":
            web.manifest["spec"]["hostNetwork"] = True
            s.set(web)
        case "it has no IP":
            s.wait(5).sandbox_status(first, network={})
        case _:
            s.wait(5).sandbox_status(first)


@pytest.mark.parametrize("row", [*(row.why for row in REPLACEMENTS), ""])
def test_row(row: str) -> None:
    """Each row is the first that fits where it is meant to, and none is where nothing is wrong."""
    s = Story()
    web = s.pod()
    tell(s, web, row)

    assert why_replaced(s.world().pods.get(web.uid) or next(iter(s.world().names.values()))) == (row or None)
