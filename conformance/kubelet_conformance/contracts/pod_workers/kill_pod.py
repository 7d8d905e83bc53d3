"""SYNC: a pod that has ended is only reported and terminated.

SYNC: a healthy pod is left alone, and a kill that fails ends the sync.
"""

from kubelet_conformance.contract import Answered, Container, Exit, Moment, Note, Pattern, Pod, Sandbox
from kubelet_conformance.contract.applicability import CRI, EVENTS, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, exited, failed
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.kills import (
    KILL_IS_REPORTED,
    fails_as_a_whole,
    reasons,
    to_be_explained,
)
from kubelet_conformance.contracts.facts.sandbox import FINISHED, GONE, lost_its_cgroup, why_replaced
from kubelet_conformance.contracts.facts.static_pod import run_before_removal_was_noticed
from kubelet_conformance.contracts.facts.status import terminal_phase_sent
from kubelet_conformance.contracts.facts.timing import POLLED, RETRY, RETRY_SLACK
from kubelet_conformance.contracts.garbage.containers import most_in_all
from kubelet_conformance.trace.format.bodies import PullImageRequest
from kubelet_conformance.trace.format.manifests import ContainerSpec, PodSpec
from kubelet_conformance.trace.format.records import Call
from kubelet_conformance.trace.world.disruption import events_may_be_missing


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
        return pod.kind_of(containers.asked(m).metadata.name) == "sidecar"
    return m.call.rpc == "PullImage" or (m.container is not None and m.container.kind == "sidecar")


REVIVES_A_SIDECAR: Pattern = call("CreateContainer").where(revives_a_sidecar)


def makes_another_again(m: Moment, last: Container) -> bool:
    """A sync that may not have known of the end of the `last` container makes another that does not run."""
    pod = last.pod
    if pod is None or m.call.rpc == "RunPodSandbox" or not containers.decided_before_end(m, last):
        return False
    names = set(pod.entries) - {last.name}
    if m.call.rpc == "CreateContainer":
        names &= {containers.asked(m).metadata.name}
    elif m.container is not None:
        names &= {m.container.name}
    newest = (pod.newest(name) for name in names)
    return any(one is None or one.state != "running" for one in newest)


class _End(Note):
    """The end after which nothing of a pod is left to run, and what was begun for the pod after it."""

    seq: int = 0
    t: float = 0.0
    last: Container | None = None
    begun: Call | None = None


def _is_forgotten(m: Moment, pod: Pod, end: _End) -> bool:
    """No record of the pod's app containers is left, and the kubelet may not know of their end otherwise.

    It has started since without an API server, or an operator allows only so many dead containers in all.
    """
    is_new = m.node.started_t is not None and m.node.started_t >= end.t and m.header.channels.api == "served"
    if not is_new and most_in_all(m) < 0:
        return False
    return all(container.state == "removed" for container in pod.of_kind("app"))


@contract("SYNC-08", on=FINISHED, needs=(CRI, PODS, STATUS))
def nothing_is_started_for_a_finished_pod(_: Moment, pod: Pod) -> Findings:
    """A pod that has ended is only reported and terminated.

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
def _a_container_ended(m: Moment, pod: Pod, container: Container, ended: Exit) -> None:
    if container.kind != "app":
        return
    # One that is killed for its probe or for a change may be made again, whatever its exit code.
    if not ended.commanded and pods.at_its_end(pod, container, ended.code) and pods.to_run(m):
        end = pod.note(_End)
        end.seq, end.t, end.last = m.seq, m.t, container


@observer(on=call("StopContainer"))
def _ended_unseen(_: Moment, pod: Pod, container: Container) -> None:
    """A container that ended unseen is killed for its new definition, and made again all the same."""
    if container.ended and containers.changed(container):
        pod.note(_End).seq = 0


def _is_of_an_ephemeral(m: Moment) -> bool:
    pod = m.pod
    if pod is not None and m.call.rpc == "CreateContainer":
        return pod.kind_of(containers.asked(m).metadata.name) == "ephemeral"
    if pod is not None and m.call.rpc == "PullImage":
        return "ephemeral" in (pod.traits or ())
    return m.container is not None and m.container.kind == "ephemeral"


@observer(on=pods.starts_or_creates())
def _something_is_begun(m: Moment, pod: Pod) -> None:
    end = pod.note(_End)
    if _is_forgotten(m, pod, end):
        end.seq = 0
    if not end.seq or end.begun is not None or _is_of_an_ephemeral(m):
        return
    if end.last is not None and makes_another_again(m, end.last):
        return
    if not revives_a_sidecar(m):
        end.begun = m.call


@nothing_is_started_for_a_finished_pod.clause("after", on=pods.starts_or_creates().where(pods.has_ended))
def nothing_follows_the_terminal_phase(m: Moment, pod: Pod) -> Findings:
    """After the terminal phase of a pod was written nothing of it is begun either."""
    if not pod.born or not pod.finished or pods.end_is_forgotten(pod, m.node):
        return None
    return broken(f"{m.call.rpc} for a pod that is {pod.finished}", pod.status_seq)


LATE_REASONS = GONE.either(KILL_IS_REPORTED)
"""Reasons for a kill that a trace may report late, as polls show them."""


def _explained_late(m: Moment, text: str) -> Answered:
    if events_may_be_missing(m):
        return to_be_explained(m, text)
    return answered(by=LATE_REASONS, within=POLLED, unless=pods.NOBODY, text=text)


def _unseen_probe(spec: ContainerSpec) -> bool:
    """A probe that no call shows, or that looks like another, may be the reason."""
    probes = (spec.liveness_probe, spec.startup_probe)
    if any(probe is not None and probe.exec is None for probe in probes):
        return True
    every = [probe for probe in (*probes, spec.readiness_probe) if probe is not None and probe.exec]
    return any(probe is not None for probe in probes) and len(every) > 1


def _pod_is_over(pod: Pod) -> bool:
    """Nothing of the pod is left to run, or its end was set beforehand."""
    if pod.spec is None or pod.spec.active_deadline_seconds is not None or pods.at_its_end(pod):
        return True
    if pod.restart_policy != "Never":
        return False
    inits = (pod.newest(spec.name) for spec in containers.regular_inits(pod))
    return any(one is not None and (one.state == "unknown" or containers.failed_run(one)) for one in inits)


def _may_be_stopped(m: Moment, container: Container) -> bool:
    """The trace shows a reason for the stop, or cannot show one that there may be."""
    pod, spec = container.pod, container.spec
    if pod is None or spec is None or container.create is None:
        return True
    if reasons(m) or _pod_is_over(pod) or why_replaced(pod) is not None or _unseen_probe(spec):
        return True
    if container.sandbox is not pod.sandbox or fails_as_a_whole(pod) or pods.has_unseen_hook(spec):
        return True
    return pod.changed_t is not None and pod.changed_t > container.create.t


@contract("SYNC-13", on=call("StopContainer"), needs=(CRI, PODS, STATUS, EVENTS))
def running_container_is_stopped_for_a_reason(m: Moment, container: Container) -> Findings:
    """A pod for which nothing is to be done is left alone.

    A running container or a ready sandbox of a pod that is to run is stopped, a container made and an image
    pulled only for a reason.
    """
    if not container.born or container.state != "running":
        return None
    if not pods.to_run(m) or _may_be_stopped(m, container):
        return KEPT
    return _explained_late(m, f"{container.name}, which runs, is stopped for a reason that the trace shows")


@running_container_is_stopped_for_a_reason.clause("sandbox", on=call("StopPodSandbox"))
def ready_sandbox_is_stopped_for_a_reason(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A ready sandbox is stopped only with its pod."""
    if not sandbox.born or sandbox.state != "ready":
        return None
    if not pods.to_run(m) or _pod_is_over(pod) or why_replaced(pod) is not None or sandbox is not pod.sandbox:
        return KEPT
    if terminal_phase_sent(pod):
        return KEPT
    if lost_its_cgroup(sandbox) or run_before_removal_was_noticed(m, pod, sandbox):
        return KEPT
    return _explained_late(m, "the ready sandbox is stopped for a reason that the trace shows")


@running_container_is_stopped_for_a_reason.clause("container", on=containers.REMAKING)
def running_container_is_not_made_again(m: Moment, pod: Pod) -> Findings:
    """A container that runs is not made a second time."""
    name = containers.asked(m).metadata.name
    newest = pod.newest(name)
    if newest is None or not newest.born:
        return None
    if newest.state == "running":
        return broken(f"{name} runs, and is made again", newest.start)
    return KEPT


@running_container_is_stopped_for_a_reason.clause("image", on=call("PullImage"))
def image_of_running_containers_is_not_pulled(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """An image is pulled only for a container that does not run."""
    image = m.request(PullImageRequest).image.image
    if not pod.born:
        return None
    every = (*spec.containers, *(spec.init_containers or ()), *(spec.ephemeral_containers or ()))
    users = [pod.newest(one.name) for one in every if one.image == image]
    if not users:
        return None
    waiting = any(one is None or one.state != "running" for one in users)
    return KEPT if waiting else broken(f"{image} is pulled, and all its containers run")


def _failed_kill(m: Moment) -> Container | None:
    """The running container of which a kill has failed in a sync that goes on to restart it."""
    container, error = m.container, m.reply.error
    if container is None or container.sandbox is None or not pods.to_run(m) or container.state != "running":
        return None
    if error is None or error.code == "NOT_FOUND" or container.sandbox.state != "ready":
        return None
    spec = container.spec
    return None if spec is None or spec.lifecycle.post_start is not None else container


def _again(container: Container) -> Pattern:
    """The kill is tried again, or the container ends without it."""
    stop = call("StopContainer").either(exited()).where(lambda m: m.container is container)
    return stop.either(call("StopPodSandbox"))


@contract("SYNC-06", on=failed("StopContainer"), needs=(CRI, PODS))
def container_is_not_replaced_after_a_failed_kill(m: Moment) -> Findings:
    """When the kill of a container fails, it is tried again within 16 s.

    Before that, or before it has ended, the container is not made again.
    """
    container = _failed_kill(m)
    if container is None:
        return None
    return answered(
        by=_again(container),
        not_before=containers.creation_of(container.name),
        within=RETRY + RETRY_SLACK,
        unless=GONE,
        text=f"the failed kill of {container.name} is tried again",
    )


@contract("SYNC-24", on=failed("StopContainer"), needs=(CRI, PODS))
def nothing_is_made_after_a_failed_kill(m: Moment) -> Findings:
    """When a kill fails, nothing of the pod is made in that sync: no sandbox and no container."""
    container = _failed_kill(m)
    if container is None:
        return None
    return answered(
        by=_again(container),
        not_before=call("RunPodSandbox", "CreateContainer"),
        unless=GONE,
        text="the failed kill is tried again",
    )
