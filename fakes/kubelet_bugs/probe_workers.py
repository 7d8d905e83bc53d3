"""Bugs of the workers that probe: when they do, in what, and what they make of what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from lightkube.models.core_v1 import Container, ContainerStatus, ExecAction, Pod
from msgspec.structs import replace as change

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.parts import Parts
from kubelet_reference.pod_actions import ActionRules, Verdict
from kubelet_reference.probe_results import ProbeUpdate, ResultCache
from kubelet_reference.probe_runner import ProbeRunner, ProbeTarget, probe_of
from kubelet_reference.probe_worker import ProbeTools, ProbeWorker, Sight, bare_id
from kubelet_reference.prober import Prober
from kubelet_reference.records import ContainerRecord
from kubelet_reference.results import Answer, KillReason, ProbeKind, ProbeOutcome
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.sync_input import Situation
from kubelet_reference.sync_loop import SyncLoop
from kubelet_reference.ticker import Ticker


class _DelaysOnce(ProbeWorker):
    """Counts the initial delay from its own start."""

    def __init__(
        self, kind: ProbeKind, pod: Pod, container: Container, tools: ProbeTools, results: ResultCache
    ) -> None:
        super().__init__(kind, pod, container, tools, results)
        self._born = tools.clock.monotonic()

    def _age(self, shown: ContainerStatus) -> float:
        del shown
        return self._tools.clock.monotonic() - self._born


class _DelaysOnceProber(Prober):
    worker_type = _DelaysOnce


class _Hurries(ProbeWorker):
    """Takes a probe's timeout for its period."""

    def __init__(
        self, kind: ProbeKind, pod: Pod, container: Container, tools: ProbeTools, results: ResultCache
    ) -> None:
        super().__init__(kind, pod, container, tools, results)
        probe = probe_of(kind, container)
        self._period = (probe and probe.timeoutSeconds) or 1
        self._ticker = Ticker(self._period)


class _HurriesProber(Prober):
    worker_type = _Hurries


class _NamesTheNewest(ProbeWorker):
    """Puts what it found down to the instance that runs by then."""

    def _publish(self, outcome: ProbeOutcome) -> None:
        status = self._tools.stored_status(pods.uid(self.pod))
        shown = self._shown(status) if status else None
        if shown is not None:
            self._state = change(self._state, container_id=bare_id(shown.containerID))
        super()._publish(outcome)


class _NamesTheNewestProber(Prober):
    worker_type = _NamesTheNewest


class _ProbesTheDead(ProbeWorker):
    """Probes on whatever has become of its container and its pod."""

    def stop(self) -> None:
        """Go on."""

    def _sight(self) -> Sight:
        seen = super()._sight()
        if not seen.container_id:
            return seen
        return change(seen, phase="Running", running=True, terminated=False, started=True)


class _ProbesTheDeadProber(Prober):
    worker_type = _ProbesTheDead


class _Untriggered(ProbeWorker):
    """Probes when its period is over and never before."""

    def trigger(self) -> None:
        """Take no notice."""


class _UntriggeredProber(Prober):
    worker_type = _Untriggered


class _OneProbeEach(Prober):
    """Has one worker for each container, whatever probes that has."""

    def _start(self, uid: str, worker: ProbeWorker) -> None:
        if all(name != worker.container.name for name, _ in self._workers.get(uid, {})):
            super()._start(uid, worker)


class _ReadyByProbeOnly(Prober):
    """Takes a container for ready only if a probe has said so."""

    def _is_ready(self, pod: Pod, shown: ContainerStatus) -> bool:
        super()._is_ready(pod, shown)
        return self.readiness(bare_id(shown.containerID)) is ProbeOutcome.SUCCESS


class _WorkerPerSync(Prober):
    """Starts another worker for each probe whenever the pod is synced."""

    def add_pod(self, pod: Pod) -> None:
        workers = self._workers.pop(pods.uid(pod), {})
        super().add_pod(pod)
        for worker in workers.values():
            worker.pod = pod


class _ReadyToTheEnd(Prober):
    """Leaves a container ready until its worker has noticed that it has ended."""

    def _lasting(self, pod: Pod, shown: ContainerStatus) -> ContainerStatus:
        found = super()._lasting(pod, shown)
        was = self.readiness(bare_id(shown.containerID))
        return change(found, ready=found.ready or was is ProbeOutcome.SUCCESS)


class _ForgetsReadiness(Prober):
    """Begins with unready containers whenever the kubelet starts."""

    def _is_kept(self, kind: ProbeKind, pod: Pod, shown: ContainerStatus) -> bool:
        del kind, pod, shown
        return False


class _InheritsByNameWorker(ProbeWorker):
    """Takes what another instance has proven for its own."""

    def _is_proven(self, shown: ContainerStatus) -> bool:
        told = self.pod.status.containerStatuses if self.pod.status else None
        same = next((one for one in told or () if one.name == shown.name), shown)
        return super()._is_proven(change(shown, containerID=same.containerID))


class _InheritsByName(Prober):
    """Leaves a container ready if one of its name was, whichever instance that was."""

    worker_type = _InheritsByNameWorker

    def _is_kept(self, kind: ProbeKind, pod: Pod, shown: ContainerStatus) -> bool:
        told = pod.status.containerStatuses if pod.status else None
        same = next((one for one in told or () if one.name == shown.name), shown)
        return super()._is_kept(kind, pod, change(shown, containerID=same.containerID))


class _HeedsNoLiveness(SyncLoop):
    """Leaves what failed its liveness probe to the next resync."""

    def take_probe(self, update: ProbeUpdate) -> None:
        if update.kind is not ProbeKind.LIVENESS:
            super().take_probe(update)


class _WaitsForEver(ActionRules):
    """Lets a container be whose startup probe has failed."""

    def verdict_on_running(self, now: Situation, one: Container, record: ContainerRecord) -> Verdict:
        found = super().verdict_on_running(now, one, record)
        gave_up = found.kill is not None and found.kill.reason is KillReason.STARTUP_PROBE
        return Verdict(kept=True) if gave_up else found


class _ErrorsCount(ProbeRunner):
    """Takes a probe that could not be carried out for one that failed, and does not try again."""

    async def run(self, target: ProbeTarget) -> ProbeOutcome | None:
        return await super().run(target) or ProbeOutcome.FAILURE


class _NoTimeout(ProbeRunner):
    """Gives commands all the time that they take."""

    async def _exec(self, target: ProbeTarget, command: Sequence[str], seconds: int) -> Answer:
        del seconds
        return await super()._exec(target, command, 0)


class _TheirOwnWords(ProbeRunner):
    """Has a probe's command run by a shell, which is to fill in the environment."""

    def _command(self, action: ExecAction, container: Container) -> list[str]:
        del container
        return ["/bin/sh", "-c", " ".join(action.command or ())]


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-PROBE-01",
        "Of several probes of a container only one is executed.",
        lambda: Parts(prober=_OneProbeEach),
        ("PROBE-01",),
    ),
    Bug(
        "MUT-PROBE-04",
        "The initial delay counts from the first instance of the container, and not anew for each.",
        lambda: Parts(prober=_DelaysOnceProber),
        ("PROBE-04",),
    ),
    Bug(
        "MUT-PROBE-05",
        "The timeout of a probe is taken for its period.",
        lambda: Parts(prober=_HurriesProber),
        ("PROBE-05",),
    ),
    Bug(
        "MUT-PROBE-07",
        "A container that failed its liveness probe is killed when its pod is synced for another reason.",
        lambda: Parts(sync_loop=_HeedsNoLiveness),
        ("PROBE-07",),
    ),
    Bug(
        "MUT-PROBE-09",
        "A container that does not come up in time is waited for without end.",
        lambda: Parts(runtime=RuntimeParts(compute_actions=_WaitsForEver().compute)),
        ("PROBE-09",),
    ),
    Bug(
        "MUT-PROBE-11",
        "A container that has ended is shown as ready.",
        lambda: Parts(prober=_ReadyToTheEnd),
        ("PROBE-11",),
    ),
    Bug(
        "MUT-PROBE-12",
        "Containers and pods that have ended are probed on.",
        lambda: Parts(prober=_ProbesTheDeadProber),
        ("PROBE-12",),
    ),
    Bug(
        "MUT-PROBE-14",
        "A probe that could not be carried out counts as failed.",
        lambda: Parts(probe_runner=_ErrorsCount),
        ("PROBE-14",),
    ),
    Bug(
        "MUT-PROBE-15",
        "The command of a probe may run as long as it likes.",
        lambda: Parts(probe_runner=_NoTimeout),
        ("PROBE-15",),
    ),
    Bug(
        "MUT-PROBE-21",
        "The command of a probe is run by a shell, which fills in the environment.",
        lambda: Parts(probe_runner=_TheirOwnWords),
        ("PROBE-21",),
    ),
    Bug(
        "MUT-PROBE-23",
        "A container that has started is probed for readiness when a period is over.",
        lambda: Parts(prober=_UntriggeredProber),
        ("PROBE-23",),
    ),
    Bug(
        "MUT-PROBE-24",
        "A container without a readiness probe is never ready.",
        lambda: Parts(prober=_ReadyByProbeOnly),
        ("PROBE-24",),
    ),
    Bug(
        "MUT-PROBE-25",
        "All containers count as not ready when the kubelet has started again.",
        lambda: Parts(prober=_ForgetsReadiness),
        ("PROBE-25",),
        kubernetes="1.36",
    ),
    Bug(
        "K8S-141473",
        "A container is ready after the kubelet's restart since another instance of it was before.",
        lambda: Parts(prober=_InheritsByName),
        ("PROBE-02",),
        kubernetes="1.36",
    ),
    Bug(
        "MUT-PROBE-26",
        "What a probe found is put down to the instance that runs by then.",
        lambda: Parts(prober=_NamesTheNewestProber),
        ("PROBE-26",),
    ),
    Bug(
        "MUT-PROBE-27",
        "Each sync of a pod starts another worker for each of its probes.",
        lambda: Parts(prober=_WorkerPerSync),
        ("PROBE-27",),
    ),
)
