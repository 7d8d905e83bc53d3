"""The prober: a worker for each probe of each container, what they publish, and what statuses make of it."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import ClassVar, TypeAlias

from lightkube.models.core_v1 import Container, ContainerStatus, Pod, PodStatus, Probe
from msgspec.structs import replace

from kubelet_reference.api import pods
from kubelet_reference.api.results import ProbeKind, ProbeOutcome
from kubelet_reference.prober.results import ProbeUpdate, ResultCache, is_older, kept_by_probe
from kubelet_reference.prober.worker import ProbeTools, ProbeWorker

_Key: TypeAlias = tuple[str, str, ProbeKind]
"""The UID of a pod, the name of a container, and the kind of its probe."""


class Prober:
    """Keeps the workers of all pods, and answers from what they published.

    `updates` gets each change of a published result, for the sync loop. Workers run inside `run`: only then
    can pods be added.
    """

    worker_type: ClassVar[type[ProbeWorker]] = ProbeWorker

    def __init__(self, tools: ProbeTools) -> None:
        self.updates = asyncio.Queue[ProbeUpdate]()
        self._tools = tools
        self._results = self._result_caches()
        self._workers: dict[_Key, ProbeWorker] = {}
        self._tasks = asyncio.TaskGroup()

    async def run(self) -> None:
        """Let the workers work until cancelled."""
        async with self._tasks:
            await asyncio.get_running_loop().create_future()

    def add_pod(self, pod: Pod) -> None:
        """Start the workers that the pod lacks (PROBE-01, PROBE-27)."""
        for container, kind, probe in _probes(self.probed(pod)):
            key = pods.uid(pod), container.name, kind
            if key not in self._workers:
                worker = self.worker_type(kind, probe, pod, container, self._tools, self._results[kind])
                self._start(key, worker)

    def probed(self, pod: Pod) -> tuple[Container, ...]:
        """The app containers and sidecars; other init containers are not probed (PROBE-01, INIT-20)."""
        return (*pods.containers(pod), *pods.sidecars(pod))

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Stop what could kill a container of a pod that ends; readiness goes on (K8S-52817, K8S-110309).

        Sidecars are probed on until all is killed; nothing comes of it any more (SIDECAR-25).
        """
        for worker in self._of(pod):
            if worker.kind is not ProbeKind.READINESS and not pods.is_sidecar(worker.container):
                worker.stop()

    def remove_pod(self, pod: Pod) -> None:
        """Stop all workers of the pod (PROBE-12)."""
        for worker in self._of(pod):
            worker.stop()

    def liveness(self, container_id: str) -> ProbeOutcome | None:
        """The published result of the container's liveness probe."""
        return self._results[ProbeKind.LIVENESS].get(container_id)

    def readiness(self, container_id: str) -> ProbeOutcome | None:
        """The published result of the container's readiness probe."""
        return self._results[ProbeKind.READINESS].get(container_id)

    def startup(self, container_id: str) -> ProbeOutcome | None:
        """The published result of the container's startup probe."""
        return self._results[ProbeKind.STARTUP].get(container_id)

    def update_statuses(self, pod: Pod, status: PodStatus) -> PodStatus:
        """The status with `started` and `ready` of its containers as the probes have it (PROBE-24).

        A started container that is not ready yet is probed at once (PROBE-23).
        """
        sidecars = {one.name for one in pods.sidecars(pod)}
        apps = [self._lasting(pod, shown) for shown in status.containerStatuses or ()]
        inits = [
            self._lasting(pod, shown) if shown.name in sidecars else self._init(shown)
            for shown in status.initContainerStatuses or ()
        ]
        return replace(status, containerStatuses=apps, initContainerStatuses=inits or None)

    def _lasting(self, pod: Pod, shown: ContainerStatus) -> ContainerStatus:
        """An app container or a sidecar."""
        started = self._is_started(pod, shown)
        return replace(shown, started=started, ready=started and self._is_ready(pod, shown))

    def _init(self, shown: ContainerStatus) -> ContainerStatus:
        """A regular init container is ready once it has succeeded, and is started as long as it runs."""
        state = shown.state
        ended = state.terminated if state else None
        started = state is not None and state.running is not None
        return replace(
            shown,
            ready=ended is not None and ended.exitCode == 0,
            started=started if self._tools.behaviour.reports_started_inits else None,
        )

    def _is_started(self, pod: Pod, shown: ContainerStatus) -> bool:
        """Whether the startup probe of this very instance has succeeded, if there is one (K8S-141155)."""
        if shown.state is None or shown.state.running is None:
            return False
        outcome = self.startup(pods.bare_id(shown.containerID))
        if outcome is not None:
            return outcome is ProbeOutcome.SUCCESS
        kind = ProbeKind.STARTUP
        worker = self._workers.get((pods.uid(pod), shown.name, kind))
        return self._is_unprobed(kind, pod, shown, worker) or self._is_kept(kind, pod, shown)

    def _is_ready(self, pod: Pod, shown: ContainerStatus) -> bool:
        """Whether the readiness probe of a started container has succeeded, if there is one."""
        outcome = self.readiness(pods.bare_id(shown.containerID))
        if outcome is ProbeOutcome.SUCCESS:
            return True
        kind = ProbeKind.READINESS
        worker = self._workers.get((pods.uid(pod), shown.name, kind))
        if worker is not None:
            worker.trigger()
        unprobed = self._is_unprobed(kind, pod, shown, worker)
        return unprobed or (outcome is None and self._is_kept(kind, pod, shown))

    def _is_unprobed(
        self, kind: ProbeKind, pod: Pod, shown: ContainerStatus, worker: ProbeWorker | None
    ) -> bool:
        """Whether the container has no such probe; readiness as far as the workers know.

        A pod's first status after a restart of the kubelet is made before its workers are. One that has yet
        to start must not be taken for started there: its other probes would run. Where the API is asked
        instead (from 1.35), a guess there would be taken for what the last kubelet had found.
        """
        tools = self._tools
        if worker is not None:
            return False
        is_known = tools.behaviour.keeps_readiness and is_older(shown, tools.began_wall)
        if kind is not ProbeKind.STARTUP and not is_known:
            return True
        return all((one.name, of) != (shown.name, kind) for one, of, _ in _probes(self.probed(pod)))

    def _is_kept(self, kind: ProbeKind, pod: Pod, shown: ContainerStatus) -> bool:
        """Whether a kubelet before this one found it so, and that still counts (PROBE-25)."""
        tools = self._tools
        return tools.behaviour.keeps_readiness and kept_by_probe(kind, pod, shown, tools.began_wall)

    def _of(self, pod: Pod) -> list[ProbeWorker]:
        """The workers of the pod."""
        return [worker for (uid, *_), worker in self._workers.items() if uid == pods.uid(pod)]

    def _result_caches(self) -> dict[ProbeKind, ResultCache]:
        """A cache for each kind of probe: readiness must not be taken for liveness (K8S-9649)."""
        return {kind: ResultCache(kind, self.updates) for kind in ProbeKind}

    def _start(self, key: _Key, worker: ProbeWorker) -> None:
        self._workers[key] = worker
        name = f"{worker.kind} of {worker.container.name} in {pods.key(worker.pod)}"
        task = self._tasks.create_task(worker.run(), name=name)
        task.add_done_callback(lambda _: self._forget(key))

    def _forget(self, key: _Key) -> None:
        """Drop a worker that has ended; a later sync starts a new one if there is something to probe."""
        self._workers.pop(key, None)


def _probes(containers: Iterable[Container]) -> Iterator[tuple[Container, ProbeKind, Probe]]:
    """Each probe of each of these containers."""
    for one in containers:
        probes = {
            ProbeKind.LIVENESS: one.livenessProbe,
            ProbeKind.READINESS: one.readinessProbe,
            ProbeKind.STARTUP: one.startupProbe,
        }
        yield from ((one, kind, probe) for kind, probe in probes.items() if probe is not None)
