"""RESTARTKUBELET: a kubelet of another version that takes the place of the one before, newer or older."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Pod
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, kubelet
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.kubelet import api_is_away, is_of_another_version
from kubelet_conformance.contracts.facts.timing import KUBELET_START
from kubelet_conformance.contracts.sync_loop.kubelet_restart import (
    LIFE_ENDS,
    kept_containers,
    unexplained_stop,
)

_GOES_ON = 60.0
"""What a kubelet finds on its disk it has read by then."""


@contract("RESTARTKUBELET-17", on=call("StopContainer"), needs=(CRI, PODS), clause="no-stop")
def running_containers_are_taken_over(m: Moment, pod: Pod, container: Container) -> Findings:
    """A kubelet of another version takes over what runs: it stops no healthy container whose hash is the same
    to it, be it newer or older than the one before.
    """
    return unexplained_stop(m, pod, container) if is_of_another_version(m) else None


@running_containers_are_taken_over.clause("lives-on", on=LIFE_ENDS)
def taken_over_containers_live_on(m: Moment) -> Iterator[Finding]:
    """A container that ran under the kubelet before continues to run."""
    if is_of_another_version(m):
        yield from kept_containers(m)


@contract("RESTARTKUBELET-18", on=kubelet("started"), needs=(CRI, PODS))
def otherwise_hashed_containers_are_restarted(m: Moment) -> Iterator[Finding]:
    """A kubelet whose hash of a container covers something else than that of the one before (1.30 and older,
    1.31 and newer) finds each definition changed: it creates each running container again, once.
    """
    if api_is_away(m):
        return
    for pod in list(m.world.pods.values()):
        if not pod.born or not pod.wanted or pod.termination or pod.finished or pod.static:
            continue
        sandbox = pod.sandbox
        if sandbox is None or sandbox.state != "ready" or pod.spec is None:
            continue
        for container in list(pod.of_kind("app")):
            if (
                not containers.is_hashed_otherwise(m, container)
                or container.state != "running"
                or container is not pod.newest(container.name)
            ):
                continue
            yield answered(
                by=containers.creation_of(container.name).where(pods.of(pod)),
                within=KUBELET_START + pod.spec.grace_seconds,
                unless=pods.TERMINATION_ASKED.either(pods.FAULT, call("StopPodSandbox")).where(pods.of(pod)),
                text=f"container {container.name}, whose hash covers something else now, is made again",
            )


@contract("RESTARTKUBELET-19", on=kubelet("ended"), needs=(CRI,), clause="ends")
def files_of_another_version_end_no_kubelet(m: Moment) -> Findings:
    """A kubelet starts with what one of another version has left on its disk, and goes on: it passes over
    what it cannot read.
    """
    started_t = m.node.started_t
    if not is_of_another_version(m) or started_t is None or m.t - started_t > _GOES_ON:
        return None
    return broken(f"the kubelet ended {m.t - started_t:.0f} s after its start", m.node.started_seq)


@files_of_another_version_end_no_kubelet.clause("goes-on", on=LIFE_ENDS)
def kubelet_goes_on(m: Moment) -> Findings:
    """It lists what runs."""
    is_over = m.keys[0] != "kubelet:ended"
    return KEPT if is_over and is_of_another_version(m) and m.node.relisted_t is not None else None
