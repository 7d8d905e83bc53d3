"""Records of init containers that could not be removed, and stand beside the pod's next sandbox.

Before a new sandbox is run they are purged, and what fails of that is only logged (kuberuntime_container.go
purgeInitContainers). The kubelet looks containers up by name, whatever sandbox they are of: so by such a
record it takes the new sandbox for as far initialized as the one before.
"""

from __future__ import annotations

from kubelet_conformance.contract.frame import observer
from kubelet_conformance.contract.words import Pattern, call, failed
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.views import Container, Pod, Sandbox

PURGES: Pattern = failed("RemoveContainer", "ContainerStatus").either(call("RunPodSandbox"))


class _Removal:
    """Whether the removal of a container was tried and failed."""

    def __init__(self) -> None:
        self.tried = False


class _Beside:
    """The latest RunPodSandbox of a pod beside which such records stood."""

    def __init__(self) -> None:
        self.run_seq = 0


@observer(on=PURGES)
def take_purges(m: Moment) -> None:
    """Take in which removals fail, and which sandboxes are run all the same."""
    pod, container = m.pod, m.container
    if m.call.rpc == "RunPodSandbox":
        if pod is not None and any(_stands(one) for one in pod.of_kind("init", "sidecar")):
            pod.note(_Beside).run_seq = m.seq
    elif container is not None and (m.call.rpc == "RemoveContainer" or _was_stopped(m)):
        container.note(_Removal).tried = True


def _was_stopped(m: Moment) -> bool:
    """Where its record cannot be read its log is not found, and it is not removed (removeContainerLog)."""
    stops = m.sandbox.stops if m.sandbox is not None else ()
    return any(stop.end_t is not None and stop.end_t <= m.call.t for stop in stops)


def _stands(container: Container) -> bool:
    return container.state != "removed" and was_tried(container)


def was_tried(container: Container) -> bool:
    """Its removal was tried and failed."""
    return container.note(_Removal).tried


def is_misled(pod: Pod, sandbox: Sandbox | None) -> bool:
    """A record of an init container stood when this sandbox was run, as it could not be removed."""
    run = sandbox.run if sandbox is not None else None
    return run is not None and run.seq == pod.note(_Beside).run_seq
