"""Bugs of probes: which are executed when, and what their results lead to."""

from __future__ import annotations

from collections.abc import Sequence

from lightkube.models.core_v1 import Container, ContainerStatus, Pod
from msgspec import structs

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.parts import Parts
from kubelet_reference.pod_actions import ActionRules, Verdict
from kubelet_reference.probe_results import ResultCache
from kubelet_reference.probe_runner import ProbeRunner
from kubelet_reference.probe_worker import Conclusion, ProbeState, ProbeTools, Sight, Tick, conclude, tick
from kubelet_reference.prober import Prober
from kubelet_reference.records import ContainerRecord
from kubelet_reference.results import Answer, ProbeKind, ProbeOutcome
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.sync_input import Situation
from kubelet_reference.versions import Behaviour

_PAST_ANY_THRESHOLD = 10**6


class _StopsAll(Prober):
    """Stops readiness probes too when a pod begins to end."""

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        self.remove_pod(pod)


class _StopsNone(Prober):
    """Goes on with all probes of a pod that ends, of whose deletion its workers have not heard."""

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Stop nothing."""


class _StartedByName(Prober):
    """Takes a container for started if an instance before it was."""

    def __init__(self, tools: ProbeTools) -> None:
        super().__init__(tools)
        self._once_started: dict[tuple[str, str], None] = {}

    def _is_started(self, pod: Pod, shown: ContainerStatus) -> bool:
        runs = shown.state is not None and shown.state.running is not None
        started = super()._is_started(pod, shown) or (
            runs and (pods.uid(pod), shown.name) in self._once_started
        )
        if started:
            self._once_started[pods.uid(pod), shown.name] = None
        return started


class _OneCache(Prober):
    """Keeps the results of readiness and liveness probes in one place."""

    def _result_caches(self) -> dict[ProbeKind, ResultCache]:
        caches = super()._result_caches()
        return {**caches, ProbeKind.LIVENESS: caches[ProbeKind.READINESS]}


class _SlowIsFine(ProbeRunner):
    """Takes a command that does not end in time for a healthy one."""

    def _too_slow(self, command: Sequence[str], seconds: int) -> Answer:
        return structs.replace(super()._too_slow(command, seconds), healthy=True)


class _AlwaysAgain(ActionRules):
    """Restarts what failed its probe under every policy."""

    def verdict_on_running(self, now: Situation, one: Container, record: ContainerRecord) -> Verdict:
        found = super().verdict_on_running(now, one, record)
        return structs.replace(found, start=True) if found.kill is not None else found


def _never_rests(
    kind: ProbeKind, state: ProbeState, outcome: ProbeOutcome, threshold: int, behaviour: Behaviour
) -> Conclusion:
    """Probes on after the probe has given its container up."""
    found = conclude(kind, state, outcome, threshold, behaviour)
    return structs.replace(found, state=structs.replace(found.state, on_hold=False))


def _counts_on(kind: ProbeKind, state: ProbeState, sight: Sight) -> Tick:
    """Counts the failures of a former instance with those of a new one."""
    found = tick(kind, state, sight)
    if not found.dropped:
        return found
    count = _PAST_ANY_THRESHOLD if state.on_hold else state.count
    return structs.replace(found, state=structs.replace(found.state, last=state.last, count=count))


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-110309",
        "Readiness is not probed any more once a pod is to go.",
        lambda: Parts(prober=_StopsAll),
        ("PROBE-13", "TERM-14"),
        ("K38", "K8S-110191", "K8S-110418"),
    ),
    Bug(
        "K8S-52817",
        "Liveness is still probed while a deleted pod ends.",
        lambda: Parts(prober=_StopsNone),
        ("PROBE-13",),
        ("K8S-98571", "K8S-107473", "K8S-107514"),
    ),
    Bug(
        "K8S-141155",
        "After a restart a container counts as started though its startup probe has yet to succeed.",
        lambda: Parts(prober=_StartedByName),
        ("PROBE-03",),
    ),
    Bug(
        "K8S-9649",
        "A container whose readiness probe fails is killed.",
        lambda: Parts(prober=_OneCache),
        ("PROBE-10",),
        ("K39", "K8S-7891"),
    ),
    Bug(
        "K8S-53530",
        "A container that was restarted for its liveness probe is killed again at its first failure.",
        lambda: Parts(probe_tick=_counts_on),
        ("PROBE-06",),
        ("K37",),
    ),
    Bug(
        "K8S-22107",
        "A container that its liveness probe gave up is probed on while it is killed.",
        lambda: Parts(probe_conclude=_never_rests),
        ("PROBE-08",),
        ("K8S-21751",),
    ),
    Bug(
        "K8S-109537",
        "A container killed for its liveness probe is restarted under every policy.",
        lambda: Parts(runtime=RuntimeParts(compute_actions=_AlwaysAgain().compute)),
        ("RESTART-10", "PROBE-28"),
    ),
    Bug(
        "CTRD-9568",
        "A probe that takes too long counts as a success.",
        lambda: Parts(probe_runner=_SlowIsFine),
        ("PROBE-08", "PROBE-22"),
        ("K8S-94115", "K8S-110070", "K8S-124226"),
    ),
)
