"""The tables of sandboxes and apps as objects: every row decides, and what comes before it does so first."""

from functools import partial
from itertools import product

import pytest

from kubelet_reference.api.records import ContainerState, SandboxRecord
from kubelet_reference.api.restart_policy import RESTARTS, Last
from kubelet_reference.kuberuntime.actions.pod_actions import NEW_SANDBOX, RUNNING, Next, Running, Stopped
from kubelet_reference.kuberuntime.actions.sandbox_changed import SANDBOXES, Sandboxes

READY = SandboxRecord("s1", 0, 1, ready=True, host_network=False, ips=("10.88.0.2",))
DEAD = SandboxRecord("s0", 0, 0, ready=False, host_network=False, ips=())
BARE = SandboxRecord("s1", 0, 1, ready=True, host_network=False, ips=())
EXITED = ContainerState.EXITED
_running = partial(
    Running, has_changed=False, liveness_failed=False, startup_failed=False, needs_restart_to_resize=False
)
#: Containers that each row decides about.
LAST = {
    "B2": Last(None, deleting=True),
    "B1": Last(None, policy="Never"),
    "B3": Last(ContainerState.CREATED, policy="Never"),
    "B4": Last(ContainerState.UNKNOWN, policy="Never"),
    "B9 to B15": Last(ContainerState.RUNNING),
    "B16": Last(EXITED, policy="Never", has_rule=True),
    "B5": Last(EXITED),
    "B6": Last(EXITED, policy="OnFailure", exit_code=1),
    "B7, B8": Last(EXITED, policy="Never", exit_code=1),
}


def test_each_row_of_containers_that_do_not_run_decides() -> None:
    """Each row is the first that fits the container it is for."""
    assert [RESTARTS.row(LAST[row.name]) for row in RESTARTS] == list(RESTARTS)


def test_every_row_of_running_containers_decides() -> None:
    """Each reason alone stops a container, all together the first does, and none keeps it."""
    alone = [
        RUNNING.row(_running(has_changed=True)),
        RUNNING.row(_running(liveness_failed=True)),
        RUNNING.row(_running(startup_failed=True)),
        RUNNING.row(_running(needs_restart_to_resize=True)),
        RUNNING.row(_running()),
    ]

    assert alone == list(RUNNING)
    assert RUNNING.row(Running(*[True] * 4)) is alone[0]


def test_every_row_of_stopped_pods_decides() -> None:
    """Of all situations each row decides some, and only what is left to run brings a sandbox."""
    every = [Stopped(*facts) for facts in product((False, True), repeat=4)]
    first = [NEW_SANDBOX.row(one) for one in every]

    assert {row.name for row in first} == {row.name for row in NEW_SANDBOX}
    for one in every:
        gone = one.had_its_run or (one.initialized and not one.has_more)

        assert (NEW_SANDBOX.row(one).then is Next.NOTHING) is gone


@pytest.mark.parametrize(
    ("known", "host", "name"),
    [
        ((), False, "none"),
        ((READY, READY), False, "several ready"),
        ((DEAD, READY), False, "not ready"),
        ((READY,), True, "other network"),
        ((BARE,), False, "no address"),
        ((READY, DEAD), False, "good"),
    ],
)
def test_every_row_of_sandboxes_decides(known: tuple[SandboxRecord, ...], host: bool, name: str) -> None:  # noqa: FBT001 - a column of the table
    """Each row is the first that fits somewhere."""
    found = Sandboxes(known, host)

    assert SANDBOXES.row(found).name == name
