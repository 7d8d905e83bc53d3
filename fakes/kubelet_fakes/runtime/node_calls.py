"""The calls about the runtime itself: its version, its state, its configuration."""

from __future__ import annotations

from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.settings import RuntimeSettings


class NodeCalls:
    """What the runtime says of itself."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._settings = settings
        self.pod_cidr = ""
        """The last one that UpdateRuntimeConfig told."""
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
