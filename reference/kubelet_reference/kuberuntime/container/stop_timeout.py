"""How long a container has to stop.

Three numbers make up the answer. The base comes from the reason of the kill (TERM-03). An override comes from
the end of the whole pod: its worker, or the kill of a pod that no source knows. And a preStop hook takes
its time off before the container is asked to stop at all (TERM-05).

From 1.22 to 1.27 the override replaced the result instead of the base: a pod under deletion had its whole
grace again after its hook, and no minimum (TERM-11).
"""

from dataclasses import dataclass
from enum import StrEnum, auto
from typing import NamedTuple

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.results import KillReason
from kubelet_reference.util.decision_table import Row, Table
from kubelet_reference.util.versions import Behaviour

MINIMUM_SECONDS = 2
"""What a container is given at least."""
_ROUNDING = 1e-6
"""Of a difference of two times, in seconds: a wait of exactly two seconds takes two off."""


class From(StrEnum):
    """Which number of seconds a time is counted from."""

    BASE = auto()
    OVERRIDE = auto()


class Override(NamedTuple):
    """What the end of the whole pod asks for, in seconds, if it comes to that; whether that is the result."""

    seconds: int | None
    is_final: bool


@dataclass(frozen=True, slots=True)
class TimeoutRow(Row[Override, From]):
    """Where `when` holds, StopContainer begins with `then`, and a preStop hook has `hook`.

    With `is_final` nothing is taken off that, and there is no minimum.
    """

    hook: From
    is_final: bool = False


TIMEOUTS = Table[Override, TimeoutRow](
    TimeoutRow("no override", lambda o: o.seconds is None, From.BASE, hook=From.BASE),
    TimeoutRow("it is final", lambda o: o.is_final, From.OVERRIDE, hook=From.BASE, is_final=True),
    TimeoutRow("it is a base", lambda _: True, From.OVERRIDE, hook=From.OVERRIDE),
)


def base_grace(pod: Pod, container: AnyContainer, reason: KillReason) -> int:
    """The grace period, in seconds, that the reason of the kill gives.

    The deletion's if the pod is being deleted (TERM-04); else that of the probe which gave the container up,
    if it has one, even a longer one; else the spec's.
    """
    for seconds in (pods.deletion_grace_seconds(pod), probe_grace(container, reason)):
        if seconds is not None:
            return seconds
    return pods.grace_seconds(pod)


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
    seconds = _seconds(row.then, base, override)
    return seconds if row.is_final else max(seconds - int(waited + _ROUNDING), MINIMUM_SECONDS)


def _row(override: int | None, behaviour: Behaviour) -> TimeoutRow:
    return TIMEOUTS.row(Override(override, behaviour.grace_override_is_final))


def _seconds(begins: From, base: int, override: int | None) -> int:
    return base if begins is From.BASE or override is None else override
