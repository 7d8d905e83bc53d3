"""Runtimes whose events, stamped statuses and logs are not what their readers are promised."""

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.events import Events
from kubelet_fakes.runtime.logs import Logs
from kubelet_fakes.runtime.records import Container, Sandbox
from kubelet_fakes.runtime.settings import RuntimeSettings
from kubelet_fakes.runtime.store import Store


class _TwoEnds(Events):
    """Reports an end when the process has exited, and again when the exit is recorded."""

    def publish(
        self, kind: cri.ContainerEventType.ValueType, record_id: str, sandbox: Sandbox, created_at: int
    ) -> None:
        super().publish(kind, record_id, sandbox, created_at)
        if kind == cri.CONTAINER_STOPPED_EVENT:
            super().publish(kind, record_id, sandbox, created_at)


@bug("MUT-CRI-30", breaks="CRI-30")
class TellsTwice(Store):
    """The end of a container is reported twice."""

    def __init__(self, settings: RuntimeSettings, *, epoch_ns: int = 0) -> None:
        super().__init__(settings, epoch_ns=epoch_ns)
        self.events = _TwoEnds()


class _NoEnds(Events):
    """Reports no end."""

    def publish(
        self, kind: cri.ContainerEventType.ValueType, record_id: str, sandbox: Sandbox, created_at: int
    ) -> None:
        if kind != cri.CONTAINER_STOPPED_EVENT:
            super().publish(kind, record_id, sandbox, created_at)


@bug("MUT-CRI-30-B", breaks="CRI-30")
class EndsInSilence(Store):
    """No event reports the end of a container."""

    def __init__(self, settings: RuntimeSettings, *, epoch_ns: int = 0) -> None:
        super().__init__(settings, epoch_ns=epoch_ns)
        self.events = _NoEnds()


@bug("CTRD-11312", breaks="CRI-31", aliases=("CTRD-10728", "CTRD-10740", "K8S-129818", "K8S-129990"))
class StampAlone(RuntimeCore):
    """A sandbox's status has a time stamp and no containers."""

    def pod_sandbox_status(self, request: cri.PodSandboxStatusRequest) -> cri.PodSandboxStatusResponse:
        reply = cri.PodSandboxStatusResponse()
        reply.CopyFrom(super().pod_sandbox_status(request))
        del reply.containers_statuses[:]
        return reply


class _Raw(Logs):
    """Writes what is printed as it is printed."""

    def say(self, container: Container, at_ns: int) -> None:
        if self.files is not None and container.log_path:
            for line in container.script.says:
                self.files.append(container.log_path, f"{line}\n".encode())


@bug("MUT-CRI-36", breaks="CRI-36")
class WritesRaw(Store):
    """The log of a container holds nothing but what was printed."""

    def __init__(self, settings: RuntimeSettings, *, epoch_ns: int = 0) -> None:
        super().__init__(settings, epoch_ns=epoch_ns)
        self.logs = _Raw()


@bug("MUT-CRI-29", breaks="CRI-29")
class OpensFirst(RuntimeCore):
    """A log that cannot be reopened is made anew all the same."""

    def reopen_container_log(self, request: cri.ReopenContainerLogRequest) -> cri.ReopenContainerLogResponse:
        try:
            self.store.logs.open(self.container(request.container_id))
        except OSError as error:
            raise CallError(grpc.StatusCode.INTERNAL, f"the log was not reopened: {error}") from error
        return super().reopen_container_log(request)
