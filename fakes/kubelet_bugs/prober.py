"""Bugs of probes: which are executed when, whom they ask, and what comes of the results."""

from collections.abc import Sequence
from urllib.parse import urljoin

from lightkube.models.core_v1 import (
    Container,
    ContainerStateRunning,
    ContainerStatus,
    ExecAction,
    GRPCAction,
    Pod,
    TCPSocketAction,
)
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord
from kubelet_reference.api.results import Answer, KillReason, ProbeKind, ProbeOutcome
from kubelet_reference.kubelet.sync_loop import SyncLoop
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules, ContainerDecision
from kubelet_reference.kuberuntime.actions.sync_input import SyncInput
from kubelet_reference.prober.network_probes import NetworkProbes
from kubelet_reference.prober.prober import ProbeRunner, ProbeTarget
from kubelet_reference.prober.prober_manager import Prober
from kubelet_reference.prober.results import ProbeUpdate, ResultCache
from kubelet_reference.prober.worker import (
    ProbeFacts,
    ProbeState,
    ProbeTools,
    ProbeTransition,
    ProbeWorker,
    Tick,
    probe_transition,
    tick,
)
from kubelet_reference.util.ports import HttpAnswer, PodNetwork
from kubelet_reference.util.ticker import Ticker
from kubelet_reference.util.versions import Behaviour

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

    def running_decision(self, now: SyncInput, one: Container, record: ContainerRecord) -> ContainerDecision:
        found = super().running_decision(now, one, record)
        return structs.replace(found, start=True) if found.kill is not None else found


@bug("K8S-22107", breaks="PROBE-08", part="probe_transition", aliases="K8S-21751")
def never_rests(
    kind: ProbeKind, state: ProbeState, outcome: ProbeOutcome, threshold: int, behaviour: Behaviour
) -> ProbeTransition:
    """A container that its liveness probe gave up is probed on while it is killed."""
    found = probe_transition(kind, state, outcome, threshold, behaviour)
    return structs.replace(found, state=structs.replace(found.state, on_hold=False))


@bug("K8S-53530", breaks="PROBE-06", part="probe_tick", aliases="K37")
def counts_on(kind: ProbeKind, state: ProbeState, facts: ProbeFacts) -> Tick:
    """A container that was restarted for its liveness probe is killed again at its first failure."""
    found = tick(kind, state, facts)
    if found.state.container_id == state.container_id or not state.container_id:
        return found
    count = _PAST_ANY_THRESHOLD if state.on_hold else state.count
    return structs.replace(found, state=structs.replace(found.state, last=state.last, count=count))


@bug("MUT-PROBE-04", breaks="PROBE-04")
class DelaysOnce(ProbeWorker):
    """The initial delay counts from the first instance of the container, and not anew for each."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._born = self.tools.clock.monotonic()

    def _age(self, running: ContainerStateRunning | None) -> float:
        return self.tools.clock.monotonic() - self._born


@bug("MUT-PROBE-05", breaks="PROBE-05")
class Hurries(ProbeWorker):
    """The timeout of a probe is taken for its period."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._period = self.probe.timeoutSeconds or 1
        self._ticker = Ticker(self._period)


@bug("MUT-PROBE-26", breaks="PROBE-26")
class NamesTheNewest(ProbeWorker):
    """What a probe found is put down to the instance that runs by then."""

    def _publish(self, outcome: ProbeOutcome) -> None:
        status = self.tools.stored_status(pods.uid(self.pod))
        shown = self._shown(status) if status else None
        if shown is not None:
            self._state = structs.replace(self._state, container_id=pods.bare_id(shown.containerID))
        super()._publish(outcome)


@bug("MUT-PROBE-12", breaks="PROBE-12")
class ProbesTheDead(ProbeWorker):
    """Containers and pods that have ended are probed on."""

    def stop(self) -> None:
        """Go on."""

    def _facts(self) -> ProbeFacts:
        seen = super()._facts()
        if not seen.container_id:
            return seen
        return structs.replace(seen, phase="Running", running=True, terminated=False, started=True)


@bug("MUT-PROBE-23", breaks="PROBE-23")
class Untriggered(ProbeWorker):
    """A container that has started is probed for readiness when a period is over."""

    def trigger(self) -> None:
        """Take no notice."""


@bug("MUT-PROBE-01", breaks="PROBE-01")
class OneProbeEach(Prober):
    """Of several probes of a container only one is executed."""

    def _start(self, key: tuple[str, str, ProbeKind], worker: ProbeWorker) -> None:
        if all(each[:2] != key[:2] for each in self._workers):
            super()._start(key, worker)


@bug("MUT-PROBE-24", breaks="PROBE-24")
class ReadyByProbeOnly(Prober):
    """A container without a readiness probe is never ready."""

    def _is_ready(self, pod: Pod, shown: ContainerStatus) -> bool:
        super()._is_ready(pod, shown)
        return self.readiness(pods.bare_id(shown.containerID)) is ProbeOutcome.SUCCESS


@bug("MUT-PROBE-27", breaks="PROBE-27")
class WorkerPerSync(Prober):
    """Each sync of a pod starts another worker for each of its probes."""

    def add_pod(self, pod: Pod) -> None:
        workers = [self._workers.pop(key) for key in [*self._workers] if key[0] == pods.uid(pod)]
        super().add_pod(pod)
        for worker in workers:
            worker.pod = pod


@bug("MUT-PROBE-11", breaks="PROBE-11")
class ReadyToTheEnd(Prober):
    """A container that has ended is shown as ready."""

    def _lasting(self, pod: Pod, shown: ContainerStatus) -> ContainerStatus:
        found = super()._lasting(pod, shown)
        was = self.readiness(pods.bare_id(shown.containerID))
        return structs.replace(found, ready=found.ready or was is ProbeOutcome.SUCCESS)


@bug("MUT-PROBE-25", breaks="PROBE-25", kubernetes="1.36")
class ForgetsReadiness(Prober):
    """All containers count as not ready when the kubelet has started again."""

    def _is_kept(self, kind: ProbeKind, pod: Pod, shown: ContainerStatus) -> bool:
        return False


class _InheritsByNameWorker(ProbeWorker):
    """Takes what another instance has proven for its own."""

    def _is_proven(self, shown: ContainerStatus) -> bool:
        stored = self.pod.status.containerStatuses if self.pod.status else None
        same = next((one for one in stored or () if one.name == shown.name), shown)
        return super()._is_proven(structs.replace(shown, containerID=same.containerID))


@bug("K8S-141473", breaks="PROBE-02", kubernetes="1.36")
class InheritsByName(Prober):
    """A container is ready after the kubelet's restart since another instance of it was before."""

    worker_type = _InheritsByNameWorker

    def _is_kept(self, kind: ProbeKind, pod: Pod, shown: ContainerStatus) -> bool:
        stored = pod.status.containerStatuses if pod.status else None
        same = next((one for one in stored or () if one.name == shown.name), shown)
        return super()._is_kept(kind, pod, structs.replace(shown, containerID=same.containerID))


@bug("MUT-PROBE-07", breaks="PROBE-07")
class HeedsNoLiveness(SyncLoop):
    """A container that failed its liveness probe is killed when its pod is synced for another reason."""

    def take_probe(self, update: ProbeUpdate) -> None:
        if update.kind is not ProbeKind.LIVENESS:
            super().take_probe(update)


@bug("MUT-PROBE-09", breaks="PROBE-09")
class WaitsForEver(ActionRules):
    """A container that does not come up in time is waited for without end."""

    def running_decision(self, now: SyncInput, one: Container, record: ContainerRecord) -> ContainerDecision:
        found = super().running_decision(now, one, record)
        gave_up = found.kill is not None and found.kill.reason is KillReason.STARTUP_PROBE
        return ContainerDecision(kept=True) if gave_up else found


@bug("MUT-PROBE-14", breaks="PROBE-14")
class ErrorsCount(ProbeRunner):
    """A probe that could not be carried out counts as failed."""

    async def run(self, target: ProbeTarget) -> ProbeOutcome | None:
        return await super().run(target) or ProbeOutcome.FAILURE


@bug("MUT-PROBE-15", breaks="PROBE-15")
class NoTimeout(ProbeRunner):
    """The command of a probe may run as long as it likes."""

    async def _exec(self, target: ProbeTarget, command: Sequence[str], seconds: int) -> Answer:
        return await super()._exec(target, command, 0)


@bug("MUT-PROBE-21", breaks="PROBE-21")
class TheirOwnWords(ProbeRunner):
    """The command of a probe is run by a shell, which fills in the environment."""

    def _command(self, action: ExecAction, container: Container) -> list[str]:
        return ["/bin/sh", "-c", " ".join(action.command or ())]


@bug("MUT-PROBE-16", breaks="PROBE-16")
class GoesAnywhere(NetworkProbes):
    """A probe follows redirects to other hosts."""

    async def _followed(self, url: str, headers: dict[str, str], seconds: int) -> HttpAnswer:
        answer = await super()._followed(url, headers, seconds)
        if not answer.location:
            return answer
        return await self._followed(urljoin(url, answer.location), headers, seconds)


@bug("MUT-PROBE-16-B", breaks="PROBE-16")
class OnlyTheBest(NetworkProbes):
    """A probe succeeds with no status but 200."""

    def is_healthy(self, status: int) -> bool:
        return status == 200  # noqa: PLR2004 - OK


@bug("MUT-PROBE-17", breaks="PROBE-17")
class RepeatsWhatWasSaid(NetworkProbes):
    """An event repeats what a server said when it failed."""

    def _failure(self, answer: HttpAnswer) -> str:
        return f"{super()._failure(answer)}: {answer.body}"


@bug("MUT-PROBE-18", breaks="PROBE-18")
class WaitsForAWord(NetworkProbes):
    """A connection on which nothing is said is a failure."""

    async def tcp(
        self, container: AnyContainer, action: TCPSocketAction, pod_ip: str, seconds: int
    ) -> Answer:
        found = await super().tcp(container, action, pod_ip, seconds)
        return structs.replace(found, healthy=False, output=found.output or "read: EOF")


@bug("MUT-PROBE-19", breaks="PROBE-19")
class OldServersAreFine(NetworkProbes):
    """A server that knows of no health checks is healthy."""

    async def grpc(self, action: GRPCAction, pod_ip: str, seconds: int) -> Answer:
        found = await super().grpc(action, pod_ip, seconds)
        return structs.replace(found, healthy=found.healthy or "does not implement" in found.output)


@bug("MUT-PROBE-19-EVER", breaks="PROBE-19")
class NeverServesAgain(NetworkProbes):
    """A server that has not served once is not asked whether it serves now."""

    def __init__(self, network: PodNetwork, minor: int) -> None:
        super().__init__(network, minor)
        self._bad: dict[tuple[str, str], Answer] = {}

    async def grpc(self, action: GRPCAction, pod_ip: str, seconds: int) -> Answer:
        key = pod_ip, action.service or ""
        found = self._bad.get(key) or await super().grpc(action, pod_ip, seconds)
        if not found.healthy:
            self._bad[key] = found
        return found


@bug("MUT-PROBE-20", breaks="PROBE-20")
class AsksTheNode(ProbeRunner):
    """Probes are sent to the node instead of the pod."""

    def _pod_ip(self, target: ProbeTarget) -> str:
        return "127.0.0.1"
