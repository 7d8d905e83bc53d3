"""How long a container has to stop, row by row."""

from typing import Any

import pytest
from lightkube.models.core_v1 import Pod
from runtime_world import a_container, a_pod

from kubelet_reference.api import pods
from kubelet_reference.api.results import KillReason
from kubelet_reference.kuberuntime.container import stop_timeout as table
from kubelet_reference.kuberuntime.container.stop_timeout import (
    Override,
    base_grace,
    hook_grace,
    stop_timeout,
)
from kubelet_reference.util.versions import Behaviour

NEW, OLD = Behaviour.of("1.32"), Behaviour.of("1.26")


def _pod(deletion: int | None = None, probe: int | None = None) -> Pod:
    about: dict[str, Any] = {} if deletion is None else {"deletionGracePeriodSeconds": deletion}
    grace: dict[str, Any] = {} if probe is None else {"terminationGracePeriodSeconds": probe}
    failing = {"exec": {"command": ["x", "1", "0"]}, **grace}
    one = a_container(livenessProbe=failing, startupProbe=failing)
    return a_pod(one, metadata=about, terminationGracePeriodSeconds=30)


# fmt: off
BASES = [
    # deletion, probe, reason,                       base, why
    (None,      None,  KillReason.UNKNOWN,           30,   "the spec's"),
    (None,      60,    KillReason.UNKNOWN,           30,   "a probe's grace is for a probe's kill"),
    (None,      60,    KillReason.UNKNOWN,           30,   "a hook is no probe"),
    (None,      60,    KillReason.LIVENESS_PROBE,    60,   "the probe's own, even a longer one"),
    (None,      5,     KillReason.STARTUP_PROBE,     5,    "the probe's own"),
    (None,      None,  KillReason.LIVENESS_PROBE,    30,   "a probe without one takes the spec's"),
    (10,        60,    KillReason.LIVENESS_PROBE,    10,   "the deletion's wins over the probe's"),
    (0,         None,  KillReason.UNKNOWN,           0,    "a deletion's 0 is a 0"),
]
TIMEOUTS = [
    # base, override, waited, behaviour, timeout, why
    (30,    None,     0.0,    NEW,       30,      "nothing is taken off"),
    (30,    10,       0.0,    NEW,       10,      "the override takes the base's place"),
    (10,    None,     2.0,    NEW,       8,       "the hook's time is taken off"),
    (10,    None,     2.9,    NEW,       8,       "in whole seconds"),
    (10,    None,     1.9999999, NEW,    8,       "two seconds, whatever a float makes of them"),
    (5,     None,     60.0,   NEW,       2,       "never below two seconds"),
    (30,    1,        0.0,    NEW,       2,       "an orphan's one second neither"),
    (0,     None,     0.0,    NEW,       2,       "nor a grace of 0"),
    (10,    10,       7.0,    OLD,       10,      "up to 1.27 an override is the result"),
    (10,    1,        7.0,    OLD,       1,       "without a minimum"),
    (10,    None,     7.0,    OLD,       3,       "without an override the old rule is the new one"),
]
HOOKS = [
    # base, override, behaviour, limit
    (30,    None,     NEW,       30),
    (30,    5,        NEW,       5),
    (30,    5,        OLD,       30),
    (0,     None,     NEW,       0),
]
# fmt: on


def test_each_timeout_counts() -> None:
    """Each row is the first that fits its override."""
    overrides = (Override(None, is_final=True), Override(5, is_final=True), Override(5, is_final=False))

    assert [table.TIMEOUTS.row(one) for one in overrides] == list(table.TIMEOUTS)


@pytest.mark.parametrize(
    ("deletion", "probe", "reason", "base", "why"), BASES, ids=[row[-1] for row in BASES]
)
def test_base(deletion: int | None, probe: int | None, reason: KillReason, base: int, why: str) -> None:
    """The base follows from the reason of the kill (TERM-03, TERM-04)."""
    pod = _pod(deletion, probe)

    assert base_grace(pod, pods.containers(pod)[0], reason) == base, why


@pytest.mark.parametrize(
    ("base", "override", "waited", "behaviour", "timeout", "why"), TIMEOUTS, ids=[row[-1] for row in TIMEOUTS]
)
def test_timeout(
    base: int, override: int | None, waited: float, *, behaviour: Behaviour, timeout: int, why: str
) -> None:
    """The timeout is what is left of the grace (TERM-05, TERM-06, TERM-11)."""
    assert stop_timeout(base, override, waited, behaviour) == timeout, why


@pytest.mark.parametrize(("base", "override", "behaviour", "limit"), HOOKS)
def test_time_for_the_hook(base: int, override: int | None, behaviour: Behaviour, limit: int) -> None:
    """A hook has the whole grace; up to 1.27 the override came after it (TERM-06, TERM-07)."""
    assert hook_grace(base, override, behaviour) == limit
