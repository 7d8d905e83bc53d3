"""How long a container has to stop: table 27.9.

Three numbers make up the answer. The base comes from the reason of the kill (TERM-03). An override comes from
whoever ends the whole pod: its worker, or the kill of a pod that no source knows. And a preStop hook takes
its time off before the container is asked to stop at all (TERM-05).

From 1.22 to 1.27 the override replaced the result instead of the base: a pod under deletion had its whole
grace again after its hook, and no minimum (TERM-11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_reference import pods
from kubelet_reference.results import KillReason

if TYPE_CHECKING:
    from lightkube.models.core_v1 import Pod

    from kubelet_reference.pods import AnyContainer
    from kubelet_reference.versions import Behaviour

__all__ = ("MINIMUM_SECONDS", "base_grace", "hook_grace", "stop_timeout")

MINIMUM_SECONDS = 2
"""What a container is given at least."""
_ROUNDING = 1e-6
"""Of a difference of two times, in seconds: a wait of exactly two seconds takes two off."""


def base_grace(pod: Pod, container: AnyContainer, reason: KillReason) -> int:
    """The grace period, in seconds, that the reason of the kill gives.

    The deletion's if the pod is being deleted (TERM-04); else that of the probe which gave the container up,
    if it has one, even a longer one; else the spec's.
    """
    deletion = pods.deletion_grace_seconds(pod)
    if deletion is not None:
        return deletion
    of_probe = probe_grace(container, reason)
    return pods.grace_seconds(pod) if of_probe is None else of_probe


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
    return base if override is None or behaviour.grace_override_is_final else override


def stop_timeout(base: int, override: int | None, waited: float, behaviour: Behaviour) -> int:
    """The timeout of StopContainer, in seconds, after `waited` seconds for the preStop hook."""
    if override is not None and behaviour.grace_override_is_final:
        return override
    grace = base if override is None else override
    return max(grace - int(waited + _ROUNDING), MINIMUM_SECONDS)
