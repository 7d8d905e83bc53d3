"""Bugs of probes: which are executed when, and what their results lead to."""

from __future__ import annotations

from collections.abc import Sequence

from lightkube.models.core_v1 import Container, ContainerStatus, Pod
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.pod_actions import ActionRules, Situation, Verdict
from kubelet_reference.probe_results import ResultCache
from kubelet_reference.probe_runner import ProbeRunner
from kubelet_reference.probe_worker import Conclusion, ProbeState, ProbeTools, Sight, Tick, conclude, tick
from kubelet_reference.prober import Prober
from kubelet_reference.records import ContainerRecord
from kubelet_reference.results import Answer, ProbeKind, ProbeOutcome
from kubelet_reference.versions import Behaviour

_PAST_ANY_THRESHOLD = 10**6


@bug("K8S-110309", breaks=("PROBE-13", "TERM-14"), aliases=("K38", "K8S-110191", "K8S-110418"))
class StopsAll(Prober):
    """Readiness is not probed any more once a pod is to go."""

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        self.remove_pod(pod)


@bug("K8S-52817", breaks="PROBE-13", aliases=("K8S-98571", "K8S-107473", "K8S-107514"))
class StopsNone(Prober):
    """Liveness is still probed while a deleted pod ends."""

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Stop nothing."""


@bug("K8S-141155", breaks="PROBE-03")
class StartedByName(Prober):
    """After a restart a container counts as started though its startup probe has yet to succeed."""

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


@bug("K8S-9649", breaks="PROBE-10", aliases=("K39", "K8S-7891"))
class OneCache(Prober):
    """A container whose readiness probe fails is killed."""

    def _result_caches(self) -> dict[ProbeKind, ResultCache]:
        caches = super()._result_caches()
        return {**caches, ProbeKind.LIVENESS: caches[ProbeKind.READINESS]}


@bug("CTRD-9568", breaks=("PROBE-08", "PROBE-22"), aliases=("K8S-94115", "K8S-110070", "K8S-124226"))
class SlowIsFine(ProbeRunner):
    """A probe that takes too long counts as a success."""

    def _too_slow(self, command: Sequence[str], seconds: int) -> Answer:
        return structs.replace(super()._too_slow(command, seconds), healthy=True)


@bug("K8S-109537", breaks=("RESTART-10", "PROBE-28"))
class AlwaysAgain(ActionRules):
    """A container killed for its liveness probe is restarted under every policy."""

    def verdict_on_running(self, now: Situation, one: Container, record: ContainerRecord) -> Verdict:
        found = super().verdict_on_running(now, one, record)
        return structs.replace(found, start=True) if found.kill is not None else found


@bug("K8S-22107", breaks="PROBE-08", part="probe_conclude", aliases="K8S-21751")
def never_rests(
    kind: ProbeKind, state: ProbeState, outcome: ProbeOutcome, threshold: int, behaviour: Behaviour
) -> Conclusion:
    """A container that its liveness probe gave up is probed on while it is killed."""
    found = conclude(kind, state, outcome, threshold, behaviour)
    return structs.replace(found, state=structs.replace(found.state, on_hold=False))


@bug("K8S-53530", breaks="PROBE-06", part="probe_tick", aliases="K37")
def counts_on(kind: ProbeKind, state: ProbeState, sight: Sight) -> Tick:
    """A container that was restarted for its liveness probe is killed again at its first failure."""
    found = tick(kind, state, sight)
    if not found.dropped:
        return found
    count = _PAST_ANY_THRESHOLD if state.on_hold else state.count
    return structs.replace(found, state=structs.replace(found.state, last=state.last, count=count))
