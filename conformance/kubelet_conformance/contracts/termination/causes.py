"""TERM: termination in special cases: no spec, a lost record, a probe, a pull or a restart in between."""

import math
from collections.abc import Iterator

import msgspec

from kubelet_conformance.contract import Container, Finding, Moment, Pod, Sandbox
from kubelet_conformance.contract.applicability import CRI, EVERY_STATUS, PODS, ByVersion, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, deleted, done, event, exited, failed, kubelet, pod_set
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.container import end_is_read, last_read_as
from kubelet_conformance.contracts.facts.kubelet import api_is_away
from kubelet_conformance.contracts.facts.probe import runs_probe
from kubelet_conformance.contracts.facts.timing import (
    KUBELET_START,
    REACTION,
    RETRY,
    RETRY_SLACK,
    ROUNDING,
    SAME_MOMENT,
)
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE, stop_row, stop_timeouts
from kubelet_conformance.trace.format.bodies import StopContainerRequest
from kubelet_conformance.trace.format.labels import Annotation
from kubelet_conformance.trace.format.manifests import Handler, Probe
from kubelet_conformance.trace.world.kubelet_view import kubelet_view


def _is_unknown(m: Moment) -> bool:
    pod, container = m.pod, m.container
    if pod is None or container is None or container.state != "unknown" or not container.born:
        return False
    return not pods.known_to_kubelet(pod, m.node)


@contract(
    "TERM-12",
    on=call("StopContainer").where(_is_unknown),
    needs=(CRI, PODS),
    versions=since("1.22"),
)
def grace_and_hook_are_read_back(m: Moment, container: Container) -> Findings:
    """A container of which only its record is left is stopped with the grace and the preStop hook that its
    annotations have.
    """
    annotations = container.config.annotations if container.config is not None else {}
    grace = annotations.get(Annotation.POD_DELETION_GRACE) or annotations.get(Annotation.POD_GRACE)
    if grace is None or not grace.isdecimal():
        return None
    command = _restored_hook(annotations)
    if command is None and annotations.get(Annotation.PRE_STOP_HANDLER):
        return None  # A hook that does not pass through the runtime.
    hook = next((one for one in reversed(container.hooks) if one.cmd == command), None)
    if command is not None and hook is None and int(grace) > 0:
        return broken(
            f"container {container.name} is stopped without its preStop hook", container.started_seq
        )
    waited = m.t - hook.call.t if hook is not None else 0.0
    row, got = stop_row("lost record"), m.request(StopContainerRequest).timeout
    if got not in stop_timeouts(row, int(grace), (0, math.ceil(waited + ROUNDING)), m.kubernetes):
        return broken(f"expected what {waited:.1f} s leave of its grace of {grace} s, got {got}")
    return KEPT


judges_waits(grace_and_hook_are_read_back)


def _restored_hook(annotations: dict[str, str]) -> list[str] | None:
    """The command of the preStop hook that is in the annotations."""
    try:
        raw = annotations.get(Annotation.PRE_STOP_HANDLER, "null")
        handler = msgspec.json.decode(raw, type=Handler | None)
    except msgspec.DecodeError:
        return None
    return list(handler.exec.command) if handler is not None and handler.exec is not None else None


def _is_foreign(container: Container, pod: Pod) -> bool:
    """The pod's spec, as it is now, has no container of that name."""
    return container.state == "running" and bool(pod.entries) and container.name not in pod.entries


@contract("TERM-13", on=call("StopContainer"), needs=(CRI, PODS), versions=since("1.22"), clause="no-guess")
def stranger_to_the_spec_is_not_stopped(m: Moment, pod: Pod, container: Container) -> Findings:
    """A container that the pod's spec does not name cannot be stopped by it: the kill of the pod fails, and
    is tried again.
    """
    if pods.may_be_unknown(pod, m.node) or not pod.born:
        return None
    if not _is_foreign(container, pod):
        return None
    return broken(
        f"container {container.name} is stopped, which the spec does not name", pod.spec_changed_seq
    )


@stranger_to_the_spec_is_not_stopped.clause("fails", on=call("StopPodSandbox"))
def kill_with_a_stranger_fails(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A FailedKillPod event reports the failed kill."""
    if pod.termination is None or pods.may_be_unknown(pod, m.node):
        return None
    if not any(_is_foreign(c, pod) for c in sandbox.containers.values()):
        return None
    if m.header.channels.events == "none":
        return None
    return answered(
        by=event("FailedKillPod").either(call("StopPodSandbox")),
        within=RETRY + RETRY_SLACK,
        whole_node=True,
        text=f"the kill of {pod.name} fails, and is tried again",
    )


def _only(probe: Probe | None, *others: Probe | None) -> list[str] | None:
    """The command of an exec probe that no other one of the container has."""
    command = probe.exec.command if probe is not None and probe.exec is not None else None
    if command is None or any(one and one.exec and one.exec.command == command for one in others):
        return None
    return command


_STOPS = call("StopContainer")


@contract("TERM-14", on=_STOPS, needs=(CRI, PODS), versions=since("1.22"), clause="readiness")
def readiness_is_probed_to_the_end(m: Moment, pod: Pod, container: Container) -> Findings:
    """While a deleted pod's container is being stopped its readiness is still probed, its liveness and its
    start-up are not.
    """
    if not _is_stopped_first(m) or container.spec is None:
        return None
    spec = container.spec
    command = _only(spec.readiness_probe, spec.liveness_probe, spec.startup_probe)
    if command is None or spec.readiness_probe is None or spec.startup_probe is not None:
        return None
    probe = spec.readiness_probe
    return answered(
        by=runs_probe(container, probe),
        within=probe.period_seconds + probe.initial_delay_seconds + probe.timeout_seconds + REACTION,
        unless=exited()
        .where(pods.about(container))
        .either(end_is_read(container), done("StopContainer").where(pods.of(pod))),
        text=f"the readiness of {container.name} is probed while it is stopped",
    )


@readiness_is_probed_to_the_end.clause("liveness", on=_STOPS)
def liveness_is_not_probed_any_more(m: Moment, container: Container) -> Findings:
    """No liveness probe begins any more."""
    if not _is_stopped_first(m) or container.spec is None:
        return None
    if container.kind == "sidecar":
        return None  # See SIDECAR-25.
    spec = container.spec
    command = _only(spec.liveness_probe, spec.readiness_probe)
    if command is None or spec.liveness_probe is None:
        return None
    if command == pods.hook_command(container, "pre_stop"):
        return None
    if any(one.end_t is None for one in container.probes.values()):
        return None  # What is in progress may be tried once more.
    # One at the same moment was on its way before the stop.
    later = runs_probe(container, spec.liveness_probe).where(lambda n: n.t - m.t > SAME_MOMENT)
    return answered(
        by=done("StopContainer").either(failed("StopContainer")).where(pods.about(container)),
        unless=exited().where(pods.about(container)),
        not_before=later,
        text=f"container {container.name} ends",
    )


def _is_stopped_first(m: Moment) -> bool:
    """The first stop of a container that runs, of a pod that was asked to go."""
    pod, container = m.pod, m.container
    if pod is None or container is None or pod.termination is None or not pod.born or pod.static:
        return False
    return container.state == "running" and not container.stops and not pods.may_be_unknown(pod, m.node)


@contract("TERM-17", on=pods.API_DELETE, needs=(CRI, PODS, EVERY_STATUS), versions=since("1.27"))
def lost_container_has_ended_somehow(m: Moment) -> Iterator[Finding]:
    """A container of a deleted pod that ran and whose record is lost is reported, before the object goes, as
    terminated with 137 for the reason ContainerStatusUnknown.
    """
    pod = pods.pod_of_write(m)
    now = pod.status if pod is not None else None
    if pod is None or now is None or pod.termination is None or pod.static or now.reason:
        return
    shown = {one.name: one for one in now.container_statuses or ()}
    for container in pod.of_kind("app"):
        if not container.vanished or container is not pod.newest(container.name):
            continue
        if not last_read_as(container, "RUNNING"):
            continue  # Its exit was read.
        end = shown[container.name].state.terminated if container.name in shown else None
        if end is None:
            yield broken(f"{container.name}, which was lost, is not reported as terminated", pod.status_seq)
        elif (end.exit_code, end.reason) != (137, "ContainerStatusUnknown"):
            got = f"{end.exit_code} ({end.reason})"
            yield broken(f"{container.name} was lost, expected 137 (ContainerStatusUnknown), got {got}")
        else:
            yield KEPT


@lost_container_has_ended_somehow.clause("unstarted", on=pods.API_DELETE)
def what_never_started_ends_with_its_pod(m: Moment) -> Findings:
    """So is an app container that never started, if its pod was initialized; in another pod it waits to the
    end.
    """
    pod = pods.pod_of_write(m)
    now = pod.status if pod is not None else None
    if pod is None or now is None or pod.termination is None or pod.static or now.reason or not pod.born:
        return None
    unstarted = [one for one in now.container_statuses or () if one.name not in pod.containers]
    inits = (pod.spec.init_containers if pod.spec is not None else None) or []
    if not unstarted or len(pod.sandboxes) != 1 or any(one.is_sidecar for one in inits):
        return None
    if kubelet_view(m).api_was_faulty(pod.set_t or 0.0):
        return None
    times = [one.started_t for one in pod.of_kind("app") if one.started_t is not None]
    if inits:
        last = pod.containers.get(inits[-1].name, [])
        times += [one.exit.t for one in last if one.exit is not None and one.exit.code == 0]
    if times and min(times) > pod.termination.t - REACTION:
        return None  # It may not have been reported before the pod was deleted.
    ended = [one.name for one in unstarted if one.state.terminated is not None]
    was_initialized = bool(times) or not inits
    if len(ended) == (len(unstarted) if was_initialized else 0):
        return KEPT
    text = f"{pod.name} was {'' if was_initialized else 'not '}initialized"
    return broken(f"{text}, and reported as ended: {', '.join(ended) or 'nothing'}", pod.status_seq)


def _needs_no_grace(m: Moment) -> bool:
    return m.manifest is not None and m.manifest.metadata.deletion_grace_period_seconds == 0


_FORCED = pod_set().where(_needs_no_grace)
"""A client deletes it once more, by force: its object goes at once, and not by the kubelet."""


@contract("TERM-23", on=kubelet("started"), needs=(CRI, PODS), clause="again")
def new_kubelet_ends_what_is_ending(m: Moment) -> Iterator[Finding]:
    """A kubelet that starts during the grace period of a pod begins its termination again, with the whole
    recorded grace.
    """
    if api_is_away(m):
        return
    for pod in m.world.pods.values():
        end = pod.termination
        if pod.static or not pod.wanted or not pod.born or end is None or end.cause != "deleted":
            continue
        for container in pod.of_kind("app"):
            if container.state == "running" and container.born:
                yield answered(
                    by=call("StopContainer", "ExecSync").where(pods.about(container)).where(_ends_it),
                    within=KUBELET_START + RETRY,
                    unless=pods.FAULT.either(
                        exited().where(pods.about(container)), end_is_read(container), _FORCED
                    ),
                    not_before=deleted().where(pods.of(pod)),
                    whole_node=True,
                    text=f"container {container.name} of {pod.name} is stopped again",
                )


def _ends_it(m: Moment) -> bool:
    return m.call.rpc == "StopContainer" or pods.runs_pre_stop(m)


@new_kubelet_ends_what_is_ending.clause("grace", on=_STOPS)
def grace_begins_again(m: Moment, pod: Pod, container: Container) -> Findings:
    """The grace is the one that was asked for."""
    started = m.node.started_t
    if started is None or container.state != "running":
        return None
    end, spec = pod.termination, container.spec
    if pod.static or not pod.wanted or end is None or end.cause != "deleted" or not end.grace:
        return None
    if end.t >= started or spec is None or spec.lifecycle.pre_stop is not None or container.kind != "app":
        return None
    expected, got = max(end.grace, MINIMUM_GRACE), m.request(StopContainerRequest).timeout
    if got not in {expected, end.grace}:
        return broken(f"expected the whole grace of {end.grace} s, got {got}", end.seq)
    return KEPT


_PULLED = done("PullImage").either(failed("PullImage"))


@contract(
    "TERM-26", on=_PULLED, needs=(CRI, PODS), versions=ByVersion({"1.26..1.32": True}), clause="awaited"
)
def pull_is_awaited(m: Moment, pod: Pod) -> Findings:
    """A pull that is in progress when its pod is to go is awaited: nothing of the pod is stopped before, and
    the pull is not given up.
    """
    if pod.termination is None or not pod.born or m.call.seq > pod.termination.seq:
        return None
    error = m.reply.error
    if error is not None and error.code in {"CANCELLED", "CANCELED"}:
        return broken("the pull was given up when the pod was to go", pod.termination.seq)
    return KEPT


@pull_is_awaited.clause("no-stop", on=call("StopContainer", "StopPodSandbox"))
def nothing_is_stopped_during_the_pull(m: Moment, pod: Pod) -> Findings:
    """No stop begins meanwhile."""
    if pod.termination is None or not pod.born or pods.may_be_unknown(pod, m.node):
        return None
    if m.sandbox is not None and m.sandbox is not pod.sandbox:
        return None
    pull = next((one for one in pod.calls_open.values() if one.rpc == "PullImage"), None)
    if pull is None or pull.seq > pod.termination.seq or pull.t < (m.node.started_t or 0.0):
        return None
    return broken(f"{m.call.rpc} before the pull was answered", pull.seq, pod.termination.seq)
