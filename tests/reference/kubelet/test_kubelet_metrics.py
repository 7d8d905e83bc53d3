"""The kubelet's metrics."""

from observation import ScriptedRuntime, clock, failure, listed
from on_loop import in_virtual_time

from kubelet_reference.api.metrics import Metrics
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pleg.generic import Pleg


def _lines(metrics: Metrics) -> list[str]:
    return [line for line in metrics.exposition().decode().splitlines() if not line.startswith("#")]


def test_names_are_the_kubelets() -> None:
    """Dashboards made for a kubelet find what they ask for."""
    metrics = Metrics()
    metrics.started_pods.inc()
    metrics.started_containers.labels("init_container").inc()
    metrics.started_containers_errors.labels("container", "ErrImagePull").inc()
    metrics.pod_worker_duration.labels("sync").observe(0.2)
    lines = _lines(metrics)

    assert "kubelet_started_pods_total 1.0" in lines
    assert "kubelet_started_pods_errors_total 0.0" in lines
    assert 'kubelet_started_containers_total{container_type="init_container"} 1.0' in lines
    errors = 'kubelet_started_containers_errors_total{code="ErrImagePull",container_type="container"} 1.0'
    assert errors in lines
    assert 'kubelet_pod_worker_duration_seconds_bucket{le="0.25",operation_type="sync"} 1.0' in lines


def test_calls_of_the_runtime_are_counted() -> None:
    """Every call counts, and a failed one among the errors as well."""
    metrics = Metrics()
    for _ in range(3):
        metrics.operation_began("list_containers")
    metrics.operation_failed("list_containers")
    lines = _lines(metrics)

    assert 'kubelet_runtime_operations_total{operation_type="list_containers"} 3.0' in lines
    assert 'kubelet_runtime_operations_errors_total{operation_type="list_containers"} 1.0' in lines


def test_two_kubelets_do_not_share_metrics() -> None:
    """Each kubelet of a process counts for itself."""
    one, other = Metrics(), Metrics()
    one.started_pods.inc()

    assert "kubelet_started_pods_total 0.0" in _lines(other)


@in_virtual_time
async def test_the_pleg_is_measured() -> None:
    """Relists, their interval, and what they found to be running."""
    metrics = Metrics()
    found = (listed("u", a="RUNNING", b="EXITED"), listed("v", sandbox="EXITED", c="EXITED"))
    runtime, time = ScriptedRuntime(*found), clock()
    pleg = Pleg(runtime, PodCache(), time, metrics)
    await pleg.relist()
    await time.sleep(2)
    await pleg.relist()
    runtime.list_error = failure()
    await pleg.relist()
    lines = _lines(metrics)

    assert "kubelet_running_pods 1.0" in lines
    assert 'kubelet_running_containers{container_state="running"} 1.0' in lines
    assert 'kubelet_running_containers{container_state="exited"} 2.0' in lines
    assert "kubelet_pleg_relist_duration_seconds_count 2.0" in lines
    assert "kubelet_pleg_relist_interval_seconds_sum 2.0" in lines
    assert "kubelet_pleg_last_seen_seconds 1.767225602e+09" in lines
