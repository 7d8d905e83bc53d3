"""How long a container has to stop.

Three numbers make up the answer. The base comes from the reason of the kill (TERM-03). An override comes from
the end of the whole pod: its worker, or the kill of a pod that no source knows. And a preStop hook takes
its time off before the container is asked to stop at all (TERM-05).

From 1.22 to 1.27 the override replaced the result instead of the base: a pod under deletion had its whole
grace again after its hook, and no minimum (TERM-11).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.results import KillReason
from kubelet_reference.util.versions import Behaviour

MINIMUM_SECONDS = 2
"""What a container is given at least."""
_ROUNDING = 1e-6
"""Of a difference of two times, in seconds: a wait of exactly two seconds takes two off."""


@dataclass(frozen=True, slots=True)
class Graces:
    """What is known of a container's grace, in seconds; None is one that was not given.

    `deletion` is the pod's while it is being deleted, `probe` that of the probe which gave the container up.
    """

    spec: int
    deletion: int | None = None
    probe: int | None = None


@dataclass(frozen=True, slots=True)
class BaseRow:
    """A row of the table: the first whose `seconds` are known gives the base."""

    name: str
    seconds: Callable[[Graces], int | None]


BASES = (
    BaseRow("the deletion's", lambda g: g.deletion),
    BaseRow("the probe's", lambda g: g.probe),
    BaseRow("the spec's", lambda g: g.spec),
)


class From(StrEnum):
    """Which number of seconds a time is counted from."""

    BASE = "base"
    OVERRIDE = "override"


@dataclass(frozen=True, slots=True)
class TimeoutRow:
    """A row of the table: where `when` holds, of the override and whether it is final, the times are these.

    `hook` is what a preStop hook has, and `timeout` what StopContainer begins with. `waits_count` says that
    what was waited for is taken off that, `least` what is left at least, in seconds.
    """

    name: str
    when: Callable[[int | None, bool], bool]
    hook: From
    timeout: From
    waits_count: bool = True
    least: int = MINIMUM_SECONDS


TIMEOUTS = (
    TimeoutRow("no override", lambda override, _: override is None, hook=From.BASE, timeout=From.BASE),
    TimeoutRow(
        "it is final",
        lambda _, final: final,
        hook=From.BASE,
        timeout=From.OVERRIDE,
        waits_count=False,
        least=0,
    ),
    TimeoutRow("it is a base", lambda _, final: not final, hook=From.OVERRIDE, timeout=From.OVERRIDE),
)


def base_grace(pod: Pod, container: AnyContainer, reason: KillReason) -> int:
    """The grace period, in seconds, that the reason of the kill gives.

    The deletion's if the pod is being deleted (TERM-04); else that of the probe which gave the container up,
    if it has one, even a longer one; else the spec's.
    """
    graces = Graces(pods.grace_seconds(pod), pods.deletion_grace_seconds(pod), probe_grace(container, reason))
    return next(seconds for row in BASES if (seconds := row.seconds(graces)) is not None)


def probe_grace(container: AnyContainer, reason: KillReason) -> int | None:
    """The grace period of the probe that failed, None if it has none or no probe failed."""
    match reason:
        case KillReason.LIVENESS_PROBE:
            probe = container.livenessProbe
        case KillReason.STARTUP_PROBE:
            probe = container.startupProbe
        case _:
            return None
    return probe.terminationGracePeriodSeconds if probe else None


def hook_grace(base: int, override: int | None, behaviour: Behaviour) -> int:
    """How long a preStop hook is waited for, in seconds; with 0 it is not run at all (TERM-06, TERM-07)."""
    return _seconds(_row(override, behaviour).hook, base, override)


def stop_timeout(base: int, override: int | None, waited: float, behaviour: Behaviour) -> int:
    """The timeout of StopContainer, in seconds, after `waited` seconds for the preStop hook."""
    row = _row(override, behaviour)
    wait = int(waited + _ROUNDING) if row.waits_count else 0
    return max(_seconds(row.timeout, base, override) - wait, row.least)


def _row(override: int | None, behaviour: Behaviour) -> TimeoutRow:
    return next(row for row in TIMEOUTS if row.when(override, behaviour.grace_override_is_final))


def _seconds(begins: From, base: int, override: int | None) -> int:
    return base if begins is From.BASE or override is None else override
