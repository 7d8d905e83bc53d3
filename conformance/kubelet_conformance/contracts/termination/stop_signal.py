"""TERM: the signal that asks a container to end."""

from collections.abc import Iterator

from kubelet_conformance.contract import Finding, Moment, Pod, PodStatus
from kubelet_conformance.contract.applicability import CRI, PODS, since
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, kept_if
from kubelet_conformance.contract.patterns import call, status
from kubelet_conformance.contracts.facts.container import asked


@contract(
    "TERM-28",
    on=call("CreateContainer"),
    needs=(CRI, PODS),
    versions=since("1.33"),
    gate="ContainerStopSignals",
    clause="request",
)
def stop_signal_is_passed_on(m: Moment) -> Findings:
    """A container's own stop signal is passed to the runtime, and shown in its status."""
    wanted = _wanted(m.pod, asked(m).metadata.name) if m.pod is not None else ""
    if not wanted:
        return None
    got = asked(m).stop_signal or "none"
    return KEPT if got == wanted else broken(f"stop signal {got}, expected {wanted}")


@stop_signal_is_passed_on.clause("status", on=status())
def stop_signal_is_reported(_: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """The status of a running container names its stop signal."""
    for one in status.container_statuses or ():
        wanted = _wanted(pod, one.name)
        if wanted and one.state.running is not None:
            reported = one.stop_signal or "none"
            yield kept_if(
                reported == wanted, f"{one.name} has stop signal {reported} in its status, expected {wanted}"
            )


def _wanted(pod: Pod, name: str) -> str:
    spec = pod.container_spec(name)
    return spec.lifecycle.stop_signal if spec is not None else ""
