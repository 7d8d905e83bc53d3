"""SANDBOX contracts on which sandbox counts, and on who does not keep one."""

from __future__ import annotations

import pytest
from story import Story
from twice import assert_bites


@pytest.mark.parametrize("step", ["create", "run"])
def test_sandbox_made_last_counts(step: str) -> None:
    """SANDBOX-03 breaks when something is done by another sandbox than the one made last."""

    def tell(s: Story, *, right: bool) -> None:
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

    assert_bites("SANDBOX-03", tell)


def test_ephemeral_container_does_not_keep_the_pod() -> None:
    """SANDBOX-23 breaks when an ephemeral container goes on in a pod that is done."""

    def tell(s: Story, *, right: bool) -> None:
        guest = [{"name": "d1", "image": "img:1"}]
        job = s.pod(restartPolicy="Never", ephemeralContainers=guest)
        sandbox = s.run_sandbox(job)
        c1, d1 = s.run_container(job, sandbox), s.run_container(job, sandbox, "d1")
        s.wait(5).exited(c1, 0)
        if right:
            s.stop(d1)
        s.stop_sandbox(sandbox)

    assert_bites("SANDBOX-23", tell)
