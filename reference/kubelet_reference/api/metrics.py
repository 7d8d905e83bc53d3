"""The kubelet's metrics under their own names, in a registry of each kubelet's own."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from lightkube.models.core_v1 import Pod
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kubelet_reference.api import pods
from kubelet_reference.api.records import ContainerState, ListedPod
from kubelet_reference.api.results import ProbeKind

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of all histograms, in seconds."""
APP, INIT, EPHEMERAL = "container", "init_container", "ephemeral_container"
"""The kinds of containers."""
_CONTAINER_TYPE = "container_type"
_OPERATION = "operation_type"
_LIFECYCLES = {"waiting": "sync", "finished": "terminated"}
"""States of workers that the metric counts as another one."""


def running_pods(listed: Iterable[ListedPod]) -> int:
    """How many of the pods have a running sandbox."""
    return sum(any(one.state is ContainerState.RUNNING for one in pod.sandboxes) for pod in listed)


def containers_in(state: ContainerState, listed: Iterable[ListedPod]) -> int:
    """How many containers are in this state."""
    return sum(one.state is state for pod in listed for one in pod.containers)


def worker_labels(state: str, spec: Pod | None, *, is_wanted: bool) -> tuple[str, str, str]:
    """The lifecycle, config and static of a worker."""
    lifecycle = _LIFECYCLES.get(state, state)
    if spec is None:
        return lifecycle, "runtime_only", "unknown"
    return lifecycle, "desired" if is_wanted else "orphan", str(pods.is_static(spec)).lower()


class Metrics:
    """Counters, gauges and histograms of one kubelet; durations are in seconds of its clock."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._add_pods()
        self._add_relists()
        self._add_starts()
        self._add_runtime()
        self._uncounted: dict[str, int] = {}
        """The calls of the runtime, by operation, since the last look at the registry.

        There are many, and a counter takes a thousand calls as fast as one.
        """
        self._working: Sequence[tuple[str, str, str]] = ()

    @property
    def registry(self) -> CollectorRegistry:
        """All metrics as they are now."""
        for operation, calls in self._uncounted.items():
            self.runtime_operations.labels(operation).inc(calls)
            self._uncounted[operation] = 0
        return self._registry

    def exposition(self) -> bytes:
        """All metrics in the text format that /metrics serves."""
        return generate_latest(self.registry)

    def watch_listed(self, listed: Callable[[], Sequence[ListedPod]]) -> None:
        """Count running pods and containers in what `listed` gives, at each scrape."""
        self.running_pods.set_function(lambda: running_pods(listed()))
        for state in ContainerState:
            self._watch_state(state, listed)

    def _watch_state(self, state: ContainerState, listed: Callable[[], Sequence[ListedPod]]) -> None:
        self.running_containers.labels(state).set_function(lambda: containers_in(state, listed()))

    def set_working_pods(self, workers: Mapping[str, tuple[str, Pod | None]], wanted: Iterable[Pod]) -> None:
        """The workers by UID, each with its state and the spec that it has; `wanted` are the desired pods."""
        uids = {pods.uid(pod) for pod in wanted}
        working = [worker_labels(*worker, is_wanted=uid in uids) for uid, worker in workers.items()]
        if working == self._working:
            return
        self._working = working
        self.working_pods.clear()
        for labels in working:
            self.working_pods.labels(*labels).inc()

    def operation_began(self, operation: str) -> None:
        """Count a call of the runtime, such as start_container."""
        if operation in self._uncounted:
            self._uncounted[operation] += 1
        else:
            self._uncounted[operation] = 1
            self.runtime_operations.labels(operation)  # It says when it began.

    def operation_failed(self, operation: str) -> None:
        """Count a call of the runtime that failed."""
        self.runtime_operations_errors.labels(operation).inc()

    def probed(self, kind: ProbeKind, container: str, pod: Pod, *, healthy: bool) -> None:
        """Count an execution of a probe."""
        result = "successful" if healthy else "failed"
        self.probes.labels(kind, result, container, pods.name(pod), pods.namespace(pod)).inc()

    def _add_pods(self) -> None:
        self.running_pods = self._gauge("kubelet_running_pods", "Number of pods that have a running sandbox")
        self.running_containers = self._gauge(
            "kubelet_running_containers", "Number of containers by state", "container_state"
        )
        self.pod_worker_duration = self._histogram(
            "kubelet_pod_worker_duration_seconds", "Duration of one sync of one pod", _OPERATION
        )
        self.working_pods = self._gauge(
            "kubelet_working_pods", "Pods that have a worker", "lifecycle", "config", "static"
        )
        self.orphaned_runtime_pods = self._counter(
            "kubelet_orphaned_runtime_pods_total", "Pods found at the runtime that no worker knew"
        )
        self.restarted_pods = self._counter(
            "kubelet_restarted_pods_total", "Pods that came back with the same UID", "static"
        )

    def _add_relists(self) -> None:
        self.relist_duration = self._histogram("kubelet_pleg_relist_duration_seconds", "Duration of a relist")
        self.relist_interval = self._histogram(
            "kubelet_pleg_relist_interval_seconds", "From the beginning of one relist to that of the next"
        )
        # A gauge only because a counter would be given the suffix _total, which the kubelet's name lacks.
        self.pleg_discarded = self._gauge(
            "kubelet_pleg_discard_events", "Events that the sync loop was too far behind to take"
        )
        self.pleg_last_seen = self._gauge(
            "kubelet_pleg_last_seen_seconds", "When a relist last succeeded, in seconds since the epoch"
        )

    def _add_starts(self) -> None:
        self.started_pods = self._counter("kubelet_started_pods_total", "Attempts to create a sandbox")
        self.started_pods_errors = self._counter(
            "kubelet_started_pods_errors_total", "Sandboxes of desired pods that could not be created"
        )
        self.started_containers = self._counter(
            "kubelet_started_containers_total", "Attempts to start a container", _CONTAINER_TYPE
        )
        self.started_containers_errors = self._counter(
            "kubelet_started_containers_errors_total", "Failed starts, by reason", _CONTAINER_TYPE, "code"
        )

    def _add_runtime(self) -> None:
        self.runtime_operations = self._counter(
            "kubelet_runtime_operations_total", "Calls of the runtime", _OPERATION
        )
        self.runtime_operations_errors = self._counter(
            "kubelet_runtime_operations_errors_total", "Calls of the runtime that failed", _OPERATION
        )
        self.probes = self._counter(
            "prober_probe_total",
            "Executions of probes",
            "probe_type",
            "result",
            "container",
            "pod",
            "namespace",
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=_SECONDS, registry=self._registry)
