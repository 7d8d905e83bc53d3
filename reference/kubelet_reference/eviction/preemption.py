"""Preemption: which pods must go to make room for a critical pod on a full node, and how (ADMIT-08)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from lightkube.models.core_v1 import Pod

from kubelet_reference.api.events import Reason, Recorder
from kubelet_reference.api.pods import is_critical, may_preempt
from kubelet_reference.api.resources import qos_class
from kubelet_reference.eviction.pod_killer import PodKiller
from kubelet_reference.status.conditions import ended_by_kubelet
from kubelet_reference.util.versions import Behaviour

MESSAGE = "Preempted in order to admit critical pod"
_CHEAPEST_FIRST = ("BestEffort", "Burstable", "Guaranteed")


def victims(pod: Pod, others: Iterable[Pod], missing: int, frees: Callable[[Pod], int], /) -> Sequence[Pod]:
    """The pods to end so that `missing` of a resource is there; none if all together would not do.

    `frees` is what the end of a pod gives. Of a better class of service only as much is taken as those below
    leave missing, and of one class as few pods as will do.
    """
    tiers: dict[str, list[Pod]] = {name: [] for name in _CHEAPEST_FIRST}
    for other in others:
        if frees(other) and may_preempt(pod, other):
            tiers[qos_class(other)].append(other)
    cheaper = sum(frees(one) for tier in tiers.values() for one in tier)
    if cheaper < missing:
        return ()
    chosen: list[Pod] = []
    for name in reversed(_CHEAPEST_FIRST):
        cheaper -= sum(map(frees, tiers[name]))
        chosen += _fewest(tiers[name], missing - cheaper - sum(map(frees, chosen)), frees)
    return chosen


def _fewest(tier: Sequence[Pod], missing: int, frees: Callable[[Pod], int]) -> list[Pod]:
    """As few pods as will do: the largest ones, and the smallest that fills the rest."""
    left = sorted(tier, key=frees)
    chosen: list[Pod] = []
    while missing > 0 and left:
        one = next((each for each in left if frees(each) >= missing), left[-1])
        left.remove(one)
        chosen.append(one)
        missing -= frees(one)
    return chosen


@dataclass(frozen=True, slots=True)
class Preemption:
    """Ends pods so that another one can be admitted."""

    killer: PodKiller
    recorder: Recorder
    behaviour: Behaviour

    def victims(
        self, pod: Pod, others: Sequence[Pod], missing: int, frees: Callable[[Pod], int]
    ) -> Sequence[Pod]:
        """Which pods have to go; none for a pod that is not critical itself."""
        return victims(pod, others, missing, frees) if is_critical(pod) else ()

    async def end(self, victim: Pod) -> None:
        """End a pod with its own grace and wait for that, or until the time is over (WORK-20)."""
        self.recorder.warning(victim, Reason.PREEMPTING, MESSAGE)
        change = ended_by_kubelet(Reason.PREEMPTING, MESSAGE, self.behaviour)
        await self.killer.kill(victim, change, None, evict=True)
