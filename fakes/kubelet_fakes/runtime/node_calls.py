"""The calls about the runtime itself: its version, its state, its configuration, and its statistics."""

from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.records import Container, Sandbox
from kubelet_fakes.runtime.settings import RuntimeSettings
from kubelet_fakes.runtime.store import has_labels


class NodeCalls:
    """What the runtime says of itself."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._settings = settings
        self.pod_cidr = ""
        """The last one that UpdateRuntimeConfig set."""
        self._version = cri.VersionResponse(
            version="0.1.0",
            runtime_name=settings.name,
            runtime_version=settings.version,
            runtime_api_version="v1",
        )
        self._config = cri.RuntimeConfigResponse(
            linux=cri.LinuxRuntimeConfiguration(cgroup_driver=cri.CGROUPFS)
        )
        self.set_conditions()

    def set_conditions(self, *, runtime_ready: bool = True, network_ready: bool = True) -> None:
        """What Status answers from now on."""
        self._status = cri.StatusResponse(
            status=cri.RuntimeStatus(
                conditions=[
                    _condition("RuntimeReady", ready=runtime_ready),
                    _condition("NetworkReady", ready=network_ready),
                ]
            ),
            runtime_handlers=[cri.RuntimeHandler(name=name) for name in ("", *self._settings.handlers)],
        )

    def version(self, request: cri.VersionRequest) -> cri.VersionResponse:
        """The version of the API is 0.1.0, whatever was asked (CRI-01)."""
        del request
        return self._version

    def status(self, request: cri.StatusRequest) -> cri.StatusResponse:
        """Both conditions, always (CRI-02)."""
        if not request.verbose:
            return self._status
        reply = cri.StatusResponse()
        reply.CopyFrom(self._status)
        reply.info["config"] = "{}"
        return reply

    def runtime_config(self, request: cri.RuntimeConfigRequest) -> cri.RuntimeConfigResponse:
        """The cgroup driver (CRI-42)."""
        del request
        return self._config

    def update_runtime_config(
        self, request: cri.UpdateRuntimeConfigRequest
    ) -> cri.UpdateRuntimeConfigResponse:
        """Note the pod CIDR."""
        self.pod_cidr = request.runtime_config.network_config.pod_cidr or self.pod_cidr
        return cri.UpdateRuntimeConfigResponse()


def _condition(kind: str, *, ready: bool) -> cri.RuntimeCondition:
    if ready:
        return cri.RuntimeCondition(type=kind, status=True)
    return cri.RuntimeCondition(type=kind, status=False, reason="Injected", message=f"{kind} is set to false")


_WORKING_SET = 10 << 20
_WRITABLE_LAYER = 1 << 20

#: A container uses one part in so many of a core.
_CPU_SHARE = 100


class Stats:
    """Answers the calls for statistics of a runtime; containers that do not run have none."""

    def __init__(self, core: RuntimeCore) -> None:
        self._core = core
        self._store = core.store

    def container_stats(self, request: cri.ContainerStatsRequest) -> cri.ContainerStatsResponse:
        """The statistics of one container."""
        return cri.ContainerStatsResponse(stats=self._of(self._core.container(request.container_id)))

    def list_container_stats(self, request: cri.ListContainerStatsRequest) -> cri.ListContainerStatsResponse:
        """The statistics of the running containers that meet the filter."""
        asked = request.filter
        found = [
            container
            for container in self._store.containers.values()
            if container.is_running
            and (not asked.id or container.id == asked.id)
            and (not asked.pod_sandbox_id or container.sandbox.id == asked.pod_sandbox_id)
            and has_labels(container.config.labels, asked.label_selector)
        ]
        return cri.ListContainerStatsResponse(stats=[self._of(container) for container in found])

    def pod_sandbox_stats(self, request: cri.PodSandboxStatsRequest) -> cri.PodSandboxStatsResponse:
        """The statistics of one sandbox."""
        return cri.PodSandboxStatsResponse(stats=self._of_sandbox(self._core.sandbox(request.pod_sandbox_id)))

    def list_pod_sandbox_stats(
        self, request: cri.ListPodSandboxStatsRequest
    ) -> cri.ListPodSandboxStatsResponse:
        """The statistics of the ready sandboxes that meet the filter."""
        asked = request.filter
        found = [
            sandbox
            for sandbox in self._store.sandboxes.values()
            if sandbox.ready
            and (not asked.id or sandbox.id == asked.id)
            and has_labels(sandbox.config.labels, asked.label_selector)
        ]
        return cri.ListPodSandboxStatsResponse(stats=[self._of_sandbox(sandbox) for sandbox in found])

    def list_pod_sandbox_metrics(
        self, request: cri.ListPodSandboxMetricsRequest
    ) -> cri.ListPodSandboxMetricsResponse:
        """An empty set of metrics for each sandbox: none are described (`ListMetricDescriptors`)."""
        del request
        return cri.ListPodSandboxMetricsResponse(
            pod_metrics=[
                cri.PodSandboxMetrics(pod_sandbox_id=sandbox.id) for sandbox in self._store.sandboxes.values()
            ]
        )

    def list_metric_descriptors(
        self, request: cri.ListMetricDescriptorsRequest
    ) -> cri.ListMetricDescriptorsResponse:
        """No metrics are described."""
        del request
        return cri.ListMetricDescriptorsResponse()

    def image_fs_info(self, request: cri.ImageFsInfoRequest) -> cri.ImageFsInfoResponse:
        """The file system of images and containers; its use is never left out."""
        del request
        used = sum(image.size for image in self._core.images.by_id.values())
        usage = self._usage(max(used, 1))
        return cri.ImageFsInfoResponse(image_filesystems=[usage], container_filesystems=[usage])

    @property
    def _now(self) -> int:
        return self._store.wall

    def _of(self, container: Container) -> cri.ContainerStats:
        config = container.config
        attributes = cri.ContainerAttributes(
            id=container.id, metadata=config.metadata, labels=config.labels, annotations=config.annotations
        )
        stats = cri.ContainerStats(attributes=attributes, writable_layer=self._usage(_WRITABLE_LAYER))
        if container.is_running:
            stats.cpu.CopyFrom(self._cpu([container]))
            stats.memory.CopyFrom(self._memory(1))
        return stats

    def _of_sandbox(self, sandbox: Sandbox) -> cri.PodSandboxStats:
        config = sandbox.config
        running = [container for container in sandbox.containers.values() if container.is_running]
        return cri.PodSandboxStats(
            attributes=cri.PodSandboxAttributes(
                id=sandbox.id, metadata=config.metadata, labels=config.labels, annotations=config.annotations
            ),
            linux=cri.LinuxPodSandboxStats(
                cpu=self._cpu(running),
                memory=self._memory(len(running)),
                network=cri.NetworkUsage(
                    timestamp=self._now, default_interface=cri.NetworkInterfaceUsage(name="eth0")
                ),
                process=cri.ProcessUsage(
                    timestamp=self._now, process_count=cri.UInt64Value(value=len(running))
                ),
                containers=[self._of(container) for container in running],
            ),
        )

    def _cpu(self, running: list[Container]) -> cri.CpuUsage:
        spent = sum(max(self._now - container.started_at, 0) for container in running) // _CPU_SHARE
        share = len(running) * (1_000_000_000 // _CPU_SHARE)
        return cri.CpuUsage(
            timestamp=self._now,
            usage_core_nano_seconds=cri.UInt64Value(value=spent),
            usage_nano_cores=cri.UInt64Value(value=share),
        )

    def _memory(self, processes: int) -> cri.MemoryUsage:
        used = cri.UInt64Value(value=_WORKING_SET * processes)
        return cri.MemoryUsage(timestamp=self._now, working_set_bytes=used, usage_bytes=used, rss_bytes=used)

    def _usage(self, used: int) -> cri.FilesystemUsage:
        return cri.FilesystemUsage(
            timestamp=self._now,
            fs_id=cri.FilesystemIdentifier(mountpoint=self._core.settings.mountpoint),
            used_bytes=cri.UInt64Value(value=used),
            inodes_used=cri.UInt64Value(value=10),
        )
