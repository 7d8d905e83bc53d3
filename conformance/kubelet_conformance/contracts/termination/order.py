"""TERM: the order of a pod's termination, from the first stop to the final status."""

import re
from collections.abc import Iterator

from kubelet_conformance.contract import Container, Exit, Finding, Moment, Note, Pod, Predicate, Sandbox, Stop
from kubelet_conformance.contract.applicability import CRI, EVENTS, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, deleted, done, event, exited, failed, pod_unset
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.container import creation_of, end_is_read, stop_to_remake
from kubelet_conformance.contracts.facts.kills import (
    failing_probe,
    reasons,
    stopped_for_itself,
    was_killed_alone,
)
from kubelet_conformance.contracts.facts.sandbox import stop_of_sandbox
from kubelet_conformance.contracts.facts.timing import CALL_TIMEOUT, REACTION, RETRY, RETRY_SLACK, TOGETHER
from kubelet_conformance.contracts.pod_workers.kill_pod import REVIVES_A_SIDECAR
from kubelet_conformance.contracts.status.events import printed_error
from kubelet_conformance.trace.format.bodies import StopContainerRequest
from kubelet_conformance.trace.format.records import ApiWrite, Event
from kubelet_conformance.trace.world.kubelet_view import informed_by

_STOPPED = done("StopContainer").either(failed("StopContainer"))


def _others(pod: Pod, container: Container) -> list[Container]:
    return [c for c in pod.every_container() if c is not container]


def _was_asked_since(container: Container, sandbox: Sandbox) -> bool:
    """A stop of the container was answered after the last pass that went on to the sandbox."""
    last_pass = sandbox.stops[-1].call.seq if sandbox.stops else 0
    answered_stops = [stop for stop in container.stops if stop.end_t is not None]
    return any(stop.call.seq > last_pass for stop in answered_stops)


@contract("TERM-01", on=call("StopPodSandbox"), clause="containers-first")
def containers_are_stopped_before_the_sandbox(m: Moment, sandbox: Sandbox) -> Findings:
    """A sandbox is stopped only after StopContainer was answered for each of its running containers, and then
    at once; the pod's object goes only after its sandbox was stopped.
    """
    if not (sandbox.born or m.node.born):
        return None
    life = m.node.started_t or 0.0
    left = _left_out(m, sandbox)
    if left is not None:
        text = f"container {left.name}, running for all the kubelet knew, was not stopped with its pod"
        return broken(text, left.started_seq)
    tested = False
    for container in sandbox.containers.values():
        open_stops = [s for s in container.stops if s.call.t >= life and _is_open(m.pod, s)]
        if open_stops:
            text = f"StopContainer of {container.name} was not answered before StopPodSandbox"
            return broken(text, open_stops[0].call.seq)
        is_named = m.pod is None or not m.pod.entries or container.name in m.pod.entries  # TERM-13
        if container.state == "running" and is_named and not _was_asked_since(container, sandbox):
            return broken(
                f"container {container.name} runs and was not stopped before its sandbox", container.start
            )
        tested = tested or bool(container.stops)
    return KEPT if tested else None


def _is_open(pod: Pod | None, stop: Stop) -> bool:
    """The stop is not answered yet, and the kubelet that sent it has not gone meanwhile."""
    return stop.end_t is None and (pod is None or stop.call.id in pod.calls_open)


class _Kill(Note):
    """The containers that the kubelet believed to be running when it began to kill their pod.

    Attributes:
        of: these.
        whole: it is the kill of all that was asked for, and not that of one container for itself just then.
        life: the kubelet instance that began it; the next begins anew with what it reads.
    """

    of: tuple[Container, ...] = ()
    whole: bool = False
    life: int = 0


def _left_out(m: Moment, sandbox: Sandbox) -> Container | None:
    """A container that the kill should have stopped, and did not."""
    pod = m.pod
    if pod is None or pods.may_be_unknown(pod, m.node):
        return None  # Of a pod without a source the kubelet kills what its list shows as running.
    kill = pod.note(_Kill)
    running, kill.of = kill.of, ()
    # What was read as ended since then needs no stop any more: a kill of one container was no kill of all.
    if kill.life != m.node.lives:
        running = tuple(c for c in running if pods.believed_running(c))
    elif not kill.whole:
        running = tuple(c for c in running if not (_ended_by_itself(c) and not pods.believed_running(c)))
    believed = [c for c in sandbox.containers.values() if pods.believed_running(c) and c.state == "exited"]
    every = (
        c for c in (*running, *believed) if not c.vanished and (c.name in pod.entries or not pod.entries)
    )
    return next((c for c in every if not c.stops and c.sandbox is sandbox), None)


def _ended_by_itself(container: Container) -> bool:
    return container.exit is not None and not container.exit.commanded


@observer(on=call("StopContainer", "ExecSync"))
def kill_is_remembered(m: Moment, pod: Pod, container: Container) -> None:
    """Remember which containers the kill of a pod concerns."""
    if not pod.born:
        return
    kill = pod.note(_Kill)
    if kill.of and kill.life == m.node.lives:
        return
    if m.call.rpc == "ExecSync" and not pods.runs_pre_stop(m):
        return
    dead = container.sandbox is not None and container.sandbox.state == "notready"
    if pod.termination is not None or pods.at_its_end(pod) or dead:
        kill.of = tuple(c for c in pod.every_container() if c.born and pods.believed_running(c))
        kill.life = m.node.lives
        is_new = pod.termination is not None and m.t - pod.termination.t <= TOGETHER
        kill.whole = is_new and all(reason.pod_goes for reason in reasons(m))


@observer(on=call("CreateContainer"))
def kill_was_of_one(_: Moment, pod: Pod) -> None:
    """The sync that stopped a container goes on: the kill of the whole pod is yet to come."""
    pod.note(_Kill).of = ()


@containers_are_stopped_before_the_sandbox.clause("sandbox-next", on=_STOPPED)
def sandbox_is_stopped_once_all_containers_are(m: Moment, pod: Pod, container: Container) -> Findings:
    """When the last StopContainer of the kill of a pod is answered, StopPodSandbox follows."""
    if pod.sandbox is None:
        return None
    whole_pod = bool(pod.note(_Kill).of)
    if pod.termination is None and (not whole_pod or was_killed_alone(pod, container)):
        return None
    if pod.sandbox.state == "removed" or container.sandbox is not pod.sandbox or not pod.sandbox.born:
        return None
    if pod.sandbox.died_t is not None and pods.may_be_unknown(pod, m.node):
        # Only running containers of a pod without a source are killed, and a dead sandbox does not run.
        return None
    if any(c.state == "running" or c.stopping for c in _others(pod, container)):
        return None
    return answered(
        by=stop_of_sandbox(pod.sandbox),
        within=TOGETHER if whole_pod and not stopped_for_itself(m, pod, container) else REACTION,
        unless=pods.goes_on_in(pod.sandbox),
        text=f"the sandbox of {pod.name} is stopped after its last container",
    )


@containers_are_stopped_before_the_sandbox.clause("object-last", on=deleted())
def object_goes_after_the_sandbox(_: Moment, pod: Pod) -> Findings:
    """A gracefully deleted pod's object is there until its sandbox was stopped."""
    if not pod.born or pod.static or pod.termination is None or pod.sandbox is None:
        return None
    if pod.termination.cause != "deleted" or not pod.termination.grace:
        return None
    if pod.sandbox.state == "ready":
        return broken("expected the sandbox to be stopped before the pod's object goes", pod.sandbox.run)
    return KEPT


@contract("TERM-02", on=call("StopContainer"), needs=(CRI, PODS))
def containers_are_stopped_together(m: Moment, pod: Pod, container: Container) -> Findings:
    """When a pod is terminated, its containers without an order among them are stopped at one time."""
    if pod.termination is None or container.kind == "sidecar" or pod.spec is None:
        return None
    since = max(pod.termination.t, m.node.started_t or 0.0)
    siblings = [
        one for one in _others(pod, container) if pods.believed_running(one) and one.kind != "sidecar"
    ]
    # One that the spec does not name cannot be stopped by itself (TERM-13).
    siblings = [one for one in siblings if one.name in pod.entries and not pods.stop_asked(one, since)]
    if not siblings or not pod.born or failing_probe(pod, container) or stopped_for_itself(m, pod, container):
        return None
    return [
        answered(
            by=call("StopContainer", "ExecSync").where(pods.about(sibling)),
            within=TOGETHER,
            unless=end_is_read(sibling),
            text=f"container {sibling.name} is stopped together with {container.name}",
        )
        for sibling in siblings
    ]


@contract("TERM-10", on=failed("StopContainer", "StopPodSandbox"), needs=(CRI, PODS))
def not_found_is_as_good_as_stopped(m: Moment, pod: Pod) -> Findings:
    """A stop answered by NOT_FOUND counts as done: the pod goes on terminating."""
    if m.reply.error is None or m.reply.error.code != "NOT_FOUND":
        return None
    end = pod.termination
    if end is None or end.cause != "deleted" or not end.grace or pod.static or pod.deleted_t is not None:
        return None
    if m.call.rpc == "StopPodSandbox":
        return answered(
            by=deleted(), within=RETRY + RETRY_SLACK, text=f"pod {pod.name} goes, its sandbox being unknown"
        )
    stopped = m.container
    if stopped is None or any(c.state == "running" or c.stopping for c in _others(pod, stopped)):
        return None
    return answered(
        by=call("StopPodSandbox"),
        within=REACTION,
        not_before=call("StopContainer").where(pods.about(stopped)),
        text="the sandbox is stopped, the container being unknown",
    )


def _no_stray_stops(m: Moment) -> bool:
    """Up to 1.26 housekeeping may stop what is dead already, once more (CLEANUP-02)."""
    return m.kubernetes is not None and m.kubernetes >= (1, 28)


def _nothing_runs(pod: Pod) -> bool:
    return not any(c.state == "running" or c.stopping for c in pod.every_container())


def _has_no_work(pod: Pod) -> bool:
    return not pod.sandboxes and not pod.containers and not pods.worker_is_busy(pod)


@contract("TERM-21", on=exited(), needs=(CRI, PODS))
def finished_pod_gives_up_its_sandbox(m: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """When nothing of a pod is left to run, its sandbox is stopped without waiting for a deletion; sidecars
    that still run are stopped first, with their grace.
    """
    if ended.code is None or ended.commanded:
        return None  # What is killed for a change or a probe may be made again in the same sync.
    stays = pod.termination is not None or not m.node.kubelet_up or not pod.born
    if stays or not _ends_the_pod(pod, container, ended.code):
        return None
    sidecars = any(c.state == "running" for c in pod.of_kind("sidecar", "ephemeral"))
    grace = pod.spec.grace_seconds if pod.spec and sidecars else 0
    return answered(
        by=call("StopPodSandbox"),
        within=REACTION + grace,
        unless=pods.TERMINATION_ASKED.either(REVIVES_A_SIDECAR, stop_to_remake(container)),
        text=f"the sandbox of the finished pod {pod.name} is stopped",
    )


def _ends_the_pod(pod: Pod, container: Container, code: int) -> bool:
    if container is not pod.newest(container.name):
        return False
    if container.kind == "init":
        return pod.restart_policy == "Never" and code != 0
    return container.kind == "app" and pods.at_its_end(pod, container, code)


def _has_read_all_ends(pod: Pod) -> bool:
    """The pod has ended, and the exit of every container was reported to the kubelet."""
    reported = [container.record for container in pod.every_container()]
    return pods.at_its_end(pod) and all(
        one is not None and one.state == "CONTAINER_EXITED" for one in reported
    )


@contract("TERM-22", on=pods.TERMINATION_ASKED, needs=(CRI, PODS))
def finished_pod_goes_quickly(m: Moment, pod: Pod) -> Findings:
    """Deleting a pod that has finished takes no StopContainer, and its object goes soon."""
    if not pod.born or pod.static or "deleted" in m.keys:
        return None
    if pod.manifest is not None and pod.manifest.metadata.finalizers:
        return None  # The object stays until they are removed; STATUS-19 asks that the kubelet deletes it.
    if pod.termination is not None or not _nothing_runs(pod) or not (pod.finished or _has_read_all_ends(pod)):
        return None
    return answered(
        by=deleted(),
        within=RETRY + RETRY_SLACK,
        unless=pods.FAULT,
        not_before=call("StopContainer").where(_no_stray_stops),
        text=f"the finished pod {pod.name} goes without another stop",
    )


class _FailedRuns(Note):
    """How many times the sandbox of a pod could not be run, as far as the kubelet was told."""

    count: int = 0


@observer(on=failed("RunPodSandbox"))
def _count_failed_run(_: Moment, pod: Pod) -> None:
    """Count it: the runtime may have made the sandbox all the same."""
    pod.note(_FailedRuns).count += 1


@contract("TERM-24", on=pods.TERMINATION_ASKED, needs=(CRI, PODS))
def pod_that_never_started_goes_without_stops(m: Moment, pod: Pod) -> Findings:
    """A deleted pod of which nothing was ever made goes without a stop of anything."""
    if not pod.born or pod.static or "deleted" in m.keys or not m.node.kubelet_up:
        return None
    if pod.termination is not None or not _has_no_work(pod) or informed_by(m, m.t) > m.t:
        return None
    if pod.note(_FailedRuns).count:
        return None
    # A forced deletion removes the object at once: the client does, and not the kubelet.
    return answered(
        by=deleted().either(pod_unset()),
        within=RETRY + RETRY_SLACK + _wait_for_volumes(m, pod),
        unless=call("RunPodSandbox"),
        not_before=call("StopContainer", "StopPodSandbox"),
        text=f"pod {pod.name}, of which nothing was made, goes",
    )


def _wait_for_volumes(m: Moment, pod: Pod) -> float:
    """How long a sync may still wait for volumes: up to 1.26 nothing cuts that wait (WORK-06)."""
    is_old = m.kubernetes is not None and m.kubernetes < (1, 27)
    return CALL_TIMEOUT if is_old and pod.spec is not None and pod.spec.volumes else 0.0


@contract("TERM-25", on=failed("StopPodSandbox"), needs=(CRI, PODS, EVENTS))
def failed_kill_is_reported(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A kill that fails gives a FailedKillPod event.

    The stop of a sandbox that no longer ran may be that of garbage collection, which sends no event.
    """
    error, end = m.reply.error, pod.termination
    if error is None or error.code == "NOT_FOUND" or end is None or m.call.seq < end.seq:
        return None
    if sandbox.died_t is not None or len(sandbox.stops) > 1:
        return None
    return answered(by=event("FailedKillPod"), within=RETRY, text="a FailedKillPod event is sent")


class _NotKilled(Note):
    """With which errors the runtime has refused to stop something of the pod, and when; "" is no answer."""

    errors: dict[str, float] = {}


@observer(on=failed("StopContainer", "StopPodSandbox"))
def _stop_is_refused(m: Moment, pod: Pod) -> None:
    # The event quotes it: what is quoted in it has other quotation marks there.
    text = printed_error(m.reply).partition('"')[0]
    if m.reply.error is not None and m.reply.error.code != "NOT_FOUND":
        pod.note(_NotKilled).errors |= {text: m.t}


_FAILED_KILL = re.compile(r'failed to "Kill(?:Container|PodSandbox)" for ')


@failed_kill_is_reported.clause("text", on=event("FailedKillPod"))
def event_has_the_error_of_the_runtime(m: Moment, pod: Pod, event: Event) -> Findings:
    """The event says with which error the runtime has refused it; several are in brackets."""
    refused = pod.note(_NotKilled)
    errors, refused.errors = [text for text, t in refused.errors.items() if m.t - t <= REACTION], {}
    several = len(_FAILED_KILL.findall(event.message)) > 1
    if event.message.startswith("error killing pod: [") != several:
        return broken(f"the event says {event.message!r}, which is {'several' if several else 'one'}")
    if not errors or "" in errors:
        return None  # Where a stop was not answered, the event has the client's own words for that.
    # Where secrets are digests, so are errors.
    is_right = m.header.redacted or any(text in event.message for text in errors)
    return KEPT if is_right else broken(f"the event says {event.message!r}, expected {errors[-1]!r}")


@contract("TERM-29", on=exited(), needs=(CRI, PODS))
def exit_in_the_grace_is_final(m: Moment, pod: Pod, container: Container) -> Findings:
    """A container that exits in its grace period is not started again, and the others keep their grace."""
    if pod.termination is None or not pod.born:
        return None
    siblings = [one for one in _others(pod, container) if one.state == "running" and one.stopping]
    siblings = [one for one in siblings if not one.stops[-1].failed]
    return _graces_kept(m, container, siblings) if siblings else None


def _graces_kept(m: Moment, gone: Container, siblings: list[Container]) -> Iterator[Finding]:
    for sibling in siblings:
        if sibling.stops[-1].call.t < (m.node.started_t or 0.0):
            continue  # The kubelet that stopped it is gone; this one does so anew.
        timeout = sibling.stops[-1].timeout
        yield answered(
            by=_STOPPED.either(exited()).where(pods.about(sibling)),
            # Its own sandbox: one from before may be removed meanwhile.
            not_before=stop_of_sandbox(sibling.sandbox).either(
                creation_of(gone.name),
                call("StopContainer").where(pods.about(sibling)).where(_shorter_than(timeout)),
            ),
            text=f"container {sibling.name} keeps its grace after {gone.name} exited",
        )


def _shorter_than(timeout: int | None) -> Predicate:
    return lambda m: timeout is not None and m.request(StopContainerRequest).timeout < timeout


@contract("TERM-20", on=pods.END, needs=(CRI, PODS), clause="stays")
def finished_pod_keeps_its_object(m: Moment) -> Iterator[Finding]:
    """The object of a pod that finished by itself is deleted only by its owner."""
    for pod in m.world.pods.values():
        finished = pod.status if pod.finished else None
        if finished is None or not pod.born or pod.static or pod.termination is not None:
            continue
        if pod.status_t is not None and m.t - pod.status_t >= 1.0:
            yield KEPT


@finished_pod_keeps_its_object.clause("not-deleted", on=pods.API_DELETE)
def finished_object_is_not_deleted(m: Moment) -> Findings:
    """The kubelet sends no DELETE for a pod that finished by itself."""
    pod, write = pods.pod_of_write(m), m.record
    if pod is None or not pod.born or not pod.finished or pod.static or not isinstance(write, ApiWrite):
        return None
    if write.code is not None and write.code >= 400:  # noqa: PLR2004 - HTTP: it did not delete anything
        return None
    if pod.termination is not None and (pod.termination.cause == "deleted" or pod.termination.t < m.t):
        return None
    return broken(f"expected the object of finished pod {pod.name} to stay", pod.status_seq)
