"""SYNC: a pod that has come to its end is only reported and terminated."""

from __future__ import annotations

from kubelet_conformance.contract import Container, Exit, Moment, Pod
from kubelet_conformance.contract.frame import KEPT, Findings, broken, contract, observer
from kubelet_conformance.contract.needs import CRI, PODS, STATUS
from kubelet_conformance.contract.words import Pattern, call, exited
from kubelet_conformance.contracts.instances import asked
from kubelet_conformance.contracts.sandboxes import FINISHED
from kubelet_conformance.contracts.situations import (
    at_its_end,
    end_is_forgotten,
    has_ended,
    starts_or_creates,
    to_run,
)
from kubelet_conformance.trace.records import Call


def revives_a_sidecar(m: Moment) -> bool:
    """A sidecar is begun anew, as the last init container is one that does not run.

    Then the kubelet takes the pod for one that is not initialized, though its app containers have all ended:
    only one that runs would prove it. They are looked at when the sidecar runs (SIDECAR-26).
    """
    pod = m.pod
    last = pod.spec.init_containers[-1] if pod is not None and pod.spec and pod.spec.init_containers else None
    if pod is None or last is None or pod.kind_of(last.name) != "sidecar":
        return False
    newest = pod.newest(last.name)
    if newest is not None and newest.state == "running" and last.startup_probe is None:
        return False
    if m.call.rpc == "CreateContainer":
        return pod.kind_of(asked(m).metadata.name) == "sidecar"
    return m.call.rpc == "PullImage" or (m.container is not None and m.container.kind == "sidecar")


REVIVES_A_SIDECAR: Pattern = call("CreateContainer").where(revives_a_sidecar)


class _End:
    """The end after which nothing of a pod is left to run, and what was begun for the pod after it."""

    def __init__(self) -> None:
        self.seq = 0
        self.begun: Call | None = None


@contract("SYNC-08", on=FINISHED, needs=(CRI, PODS, STATUS))
def nothing_is_started_for_a_finished_pod(_: Moment, pod: Pod) -> Findings:
    """A pod that has come to its end is only reported and terminated.

    After the last of its containers ended no sandbox is run, no image pulled and no container made or
    started.
    """
    if not pod.born or pod.finished or pod.termination is not None:
        return None
    end = pod.note(_End)
    if not end.seq:
        return None
    if end.begun is None:
        return KEPT
    text = f"{end.begun.rpc} after the last container of the pod had ended"
    return broken(text, end.seq, end.begun.seq)


@observer(on=exited())
def _a_container_ended(m: Moment, container: Container, ended: Exit) -> None:
    pod = m.pod
    if pod is None or container.kind != "app":
        return
    # One that is killed for its probe or for a change may be made again, whatever its exit code.
    if not ended.commanded and at_its_end(pod, container, ended.code) and to_run(m):
        pod.note(_End).seq = m.seq


def _is_of_an_ephemeral(m: Moment) -> bool:
    pod = m.pod
    if pod is not None and m.call.rpc == "CreateContainer":
        return pod.kind_of(asked(m).metadata.name) == "ephemeral"
    if pod is not None and m.call.rpc == "PullImage":
        return "ephemeral" in (pod.traits or ())
    return m.container is not None and m.container.kind == "ephemeral"


@observer(on=starts_or_creates())
def _something_is_begun(m: Moment, pod: Pod) -> None:
    end = pod.note(_End)
    if not end.seq or end.begun is not None or _is_of_an_ephemeral(m):
        return
    if not revives_a_sidecar(m):
        end.begun = m.call


@nothing_is_started_for_a_finished_pod.clause("after", on=starts_or_creates().where(has_ended))
def nothing_follows_the_terminal_phase(m: Moment, pod: Pod) -> Findings:
    """Nor after its terminal phase was written."""
    if not pod.born or not pod.finished or end_is_forgotten(pod, m.node):
        return None
    return broken(f"{m.call.rpc} for a pod that is {pod.finished}", pod.status_seq)
