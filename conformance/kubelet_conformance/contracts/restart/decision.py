"""RESTART: whether an app container that ended, or must end, is run again.

RESTART: nothing of a pod that is being terminated is run again.
"""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Exit, Finding, Moment, Pattern, Pod
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import (
    call,
    done,
    event,
    exited,
    failed,
    happened,
    pod_set,
    read_as,
)
from kubelet_conformance.contracts.facts import backoff as backoffs
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.kills import stopped_for_itself
from kubelet_conformance.contracts.facts.timing import REACTION, RELIST, RESYNC, SAME_MOMENT
from kubelet_conformance.contracts.tables.container import APPS, AppAct, AppSeen
from kubelet_conformance.contracts.termination.deadline import time_may_be_over
from kubelet_conformance.trace.format.bodies import ContainerConfig, ContainerStatusReply
from kubelet_conformance.trace.world.in_flight import since_when_at_work
from kubelet_conformance.trace.world.kubelet_view import informed_by


def _app_exit(m: Moment) -> Container | None:
    """The app container that ended here by itself (OWN_END), where it may be made again in its sandbox."""
    container = m.container
    if container is None or m.exit is None or m.exit.code is None or container.kind != "app":
        return None
    return (
        container if containers.in_place(container) and not containers.waits_for_sidecars(container) else None
    )


def _has_kill_probe(container: Container) -> bool:
    spec = container.spec
    return spec is not None and bool(spec.liveness_probe or spec.startup_probe)


@contract("RESTART-01", on=happened("removed"), needs=(CRI, PODS))
def no_record_means_start(m: Moment, pod: Pod, container: Container) -> Findings:
    """An app container that has no record is started, even if it ran before and its record was lost."""
    if container.kind != "app" or not containers.to_watch(m):
        return None
    if container is not pod.newest(container.name) or not containers.in_place(container):
        return None
    if pods.at_its_end(pod):
        return None
    return answered(
        by=containers.start_of(container.name),
        within=REACTION,
        unless=containers.HELD_UP.either(containers.INIT_FIRST),
        text=f"{container.name} is made again after its record was lost",
    )


@contract("RESTART-02", on=containers.REMAKING, needs=(CRI, PODS))
def running_one_is_left(m: Moment, pod: Pod) -> Findings:
    """A running app container is replaced only for a reason, and stopped before.

    Reasons are a changed definition, a failing liveness or startup probe, a failed postStart hook, an unknown
    state, a resize policy, and the end of its sandbox.
    """
    newest = containers.recorded(pod, containers.asked(m).metadata.name)
    if newest is None or not newest.born or newest.kind != "app":
        return None
    if newest.state == "running":
        return broken(f"{newest.name} is made though its instance {newest.attempt} runs", newest.create)
    # It may end by itself just before it is stopped for a reason.
    if containers.unread_end(m, newest):
        return broken(f"{newest.name} is made though the kubelet has not read its end", newest.create)
    # One that the kubelet before stopped was stopped for a reason that nobody remembers.
    stopped = any(stop.call.seq > m.node.started_seq for stop in newest.stops)
    if newest.exit is None or not newest.exit.commanded or not stopped:
        return None
    if newest.sandbox is not m.sandbox or _reason_to_replace(newest, containers.asked(m)):
        return KEPT
    return broken(f"{newest.name} was stopped and is made again for no reason in sight", newest.create)


def _reason_to_replace(container: Container, config: ContainerConfig) -> bool:
    spec, unknown = container.spec, containers.was_unknown(container)
    hook = spec is None or spec.lifecycle.post_start is not None
    sandbox = container.sandbox
    # It was stopped with its pod, whose kill may have failed.
    dead = sandbox is not None and (sandbox.state != "ready" or bool(sandbox.stops))
    resized = spec is not None and bool(spec.resize_policy)
    stopped_for = (
        containers.was_changed(container)
        or containers.was_going(container)
        or containers.changed(container, config)
    )
    return hook or unknown or dead or resized or _has_kill_probe(container) or stopped_for


@contract("RESTART-03", on=failed("StartContainer"), needs=(CRI, PODS))
def created_one_is_started_again(m: Moment, container: Container) -> Findings:
    """An app container that was made but could not be started gets a new instance under every policy."""
    if container.kind != "app" or not containers.to_watch(m):
        return None
    if not containers.in_place(container) or container.state != "created" or pods.was_seen_started(container):
        return None
    return answered(
        by=containers.start_of(container.name),
        within=backoffs.retry_bound(m, container.name),
        unless=containers.HELD_UP.either(
            containers.left_created_state(container), pods.another_image(container)
        ),
        text=f"{container.name} is made again after its start failed",
    )


@contract("RESTART-04", on=containers.REMAKING, needs=(CRI, PODS))
def unknown_one_is_stopped_first(m: Moment, pod: Pod) -> Findings:
    """A container whose state is unknown is stopped before another instance of it is made."""
    newest = containers.recorded(pod, containers.asked(m).metadata.name)
    if newest is None or not containers.last_read_as(newest, "UNKNOWN"):
        return None
    if newest.kind not in {"app", "sidecar"} or newest.sandbox is not m.sandbox:
        return None
    if not any(stop.is_done for stop in newest.stops):
        return broken(f"{newest.name} is made before its unknown instance was stopped", newest.create)
    return KEPT


@unknown_one_is_stopped_first.clause("replaced", on=read_as("unknown"))
def _(m: Moment, container: Container) -> Findings:
    """A container that is read as unknown is stopped, by the next resync at the latest."""
    reported = m.response(ContainerStatusReply).status
    if reported is None or reported.state != "CONTAINER_UNKNOWN" or container.kind != "app":
        return None
    if containers.last_read_as(container, "UNKNOWN") or not containers.to_watch(m):
        return None
    if not containers.in_place(container):
        return None
    return answered(
        # A pod of policy Never in which nothing else runs has failed, and is killed as it is (PHASE-07).
        by=containers.stop_of(container).either(containers.given_up_with_its_pod(container)),
        # No event reports an unknown state (PLEG-03): the next resync finds it.
        within=RESYNC,
        unless=containers.HELD_UP,
        not_before=containers.creation_of(container.name),
        text=f"{container.name}, whose state is unknown, is stopped",
    )


def _replaced(container: Container) -> Pattern:
    """Another instance is made though the record of this one forbids it."""
    return containers.creation_of(container.name).where(lambda _: container.state == "exited")


@contract("RESTART-05", on=containers.OWN_END, needs=(CRI, PODS))
def policy_and_code_decide(m: Moment, pod: Pod, ended: Exit) -> Findings:
    """An app container that exited is run again under Always, and under OnFailure after a failure."""
    container = _app_exit(m)
    if container is None:
        return None
    spec = container.spec
    if spec is None or spec.restart_policy is not None:
        return None
    if pods.will_not_run_again(pod, container.name, ended.code):
        return answered(
            by=done("StopPodSandbox"),
            unless=pod_set().either(containers.stop_to_remake(container)),
            not_before=_replaced(container),
            text=f"{container.name} is left after code {ended.code} under {pod.restart_policy}",
        )
    return answered(
        by=containers.start_of(container.name),
        within=backoffs.restart_bound(m, container.name),
        unless=containers.HELD_UP.either(containers.SIDECAR_ENDS, pods.another_image(container)),
        text=f"{container.name} is made again after code {ended.code} under {pod.restart_policy}",
    )


@policy_and_code_decide.clause("left", on=containers.REMAKING)
def _(m: Moment, pod: Pod) -> Findings:
    """An app container that its policy and exit code leave ended is not made again."""
    newest = containers.recorded(pod, containers.asked(m).metadata.name)
    if newest is None or newest.exit is None or newest.state != "exited" or newest.kind != "app":
        return None
    if newest.exit.commanded or newest.sandbox is not m.sandbox:
        return None
    if containers.wants_restart(pod, newest) is not False:
        return None
    is_taken_to_run = newest.stops or not newest.born or containers.uninspected_end(m, newest)
    if is_taken_to_run and containers.changed(newest, containers.asked(m)):
        return None  # For all the kubelet knows it ran until it was stopped for its new definition.
    if newest.stops and _has_kill_probe(newest):
        return None  # It ended while it was being killed for its probe, if only by its preStop hook.
    code = newest.exit.code
    return broken(
        f"{newest.name} is made again after code {code} under {pod.restart_policy}", newest.exit.seq
    )


@contract("RESTART-07", on=containers.FREE_CHANGE, needs=(CRI, PODS))
def changed_definition_restarts(m: Moment) -> Iterator[Finding]:
    """A running app container whose definition changed is stopped and made again, under every policy."""
    for newest in containers.newly_imaged(m, "running"):
        if containers.in_place(newest):
            yield answered(
                by=containers.stop_of(newest),
                within=REACTION,
                unless=containers.HELD_UP.either(exited(), containers.image_is_back(newest)),
                not_before=containers.creation_of(newest.name),
                text=f"{newest.name} is stopped for its new image",
            )


def _is_restart(m: Moment) -> bool:
    """A running app container was stopped in a pod that goes on."""
    pod, container = m.pod, m.container
    if pod is None or container is None or container.kind != "app" or not containers.in_place(container):
        return False
    if container.start is None or container.start_failed or container is not pod.newest(container.name):
        return False
    return containers.to_watch(m) and not backoffs.may_stay_stopped(m, container)


_STOPPED = done("StopContainer").where(_is_restart)
_IMAGE_UNREAD = event("InspectFailed")
"""The runtime did not say whether it has the image: the sync that has stopped the container cannot go on."""


@changed_definition_restarts.clause("replaced", on=_STOPPED)
def _(m: Moment) -> Findings:
    """An app container that was stopped for its new definition is made again."""
    container = m.container
    is_changed = container is not None and _has_changed(m, container)
    return _made_again(container, REACTION, "for its new image") if container and is_changed else None


def _has_changed(m: Moment, container: Container) -> bool:
    """The kubelet finds that the container's definition is not that of the spec."""
    return containers.changed(container) or containers.is_hashed_otherwise(m, container)


def _made_again(container: Container, within: float, why: str, or_not: Pattern | None = None) -> Finding:
    called_off = containers.HELD_UP.either(
        call("StopPodSandbox"), pods.another_image(container), _IMAGE_UNREAD
    )
    return answered(
        by=containers.start_of(container.name),
        within=within,
        unless=called_off if or_not is None else called_off.either(or_not),
        text=f"{container.name} is made again {why}",
    )


def _probe_kill(m: Moment) -> Container | None:
    """The container that was stopped just now for its liveness or startup probe, as far as is in sight."""
    container, spec = m.container, m.container.spec if m.container is not None else None
    if container is None or spec is None or spec.lifecycle.post_start is not None:
        return None
    return container if _has_kill_probe(container) and not _has_changed(m, container) else None


def _becomes(m: Moment) -> AppAct:
    """What is done about the running container that was stopped just now, as far as is in sight."""
    if m.pod is None or m.container is None:
        return "nothing"
    given_up = _probe_kill(m) is not None
    seen = AppSeen("running", m.pod.restart_policy, changed=_has_changed(m, m.container), given_up=given_up)
    return APPS.decide(seen)


@contract("RESTART-09", on=_STOPPED, needs=(CRI, PODS))
def probe_kill_restarts(m: Moment) -> Findings:
    """A container killed for its probe is run again whatever its exit code, unless the policy is Never."""
    container = _probe_kill(m)
    if container is None or _becomes(m) != "stop and start":
        return None
    # Only the sync that stopped it starts it whatever its code: the next one goes by the policy.
    refused = event("BackOff").either(failed("CreateContainer", "StartContainer", "PullImage"))
    may_be_done = m.pod is not None and m.pod.restart_policy == "OnFailure"
    ended_well = container.exit is None or container.exit.code in {0, None}
    or_not = refused if may_be_done and ended_well else pods.NOBODY
    if backoffs.most_delay(
        m, container.name
    ):  # It may be left to a later sync, for which the sidecars come first.
        if containers.waits_for_sidecars(container):
            return None
        or_not = or_not.either(containers.SIDECAR_ENDS)
    return _made_again(container, backoffs.restart_bound(m, container.name), "after its probe failed", or_not)


@contract("RESTART-10", on=_STOPPED, needs=(CRI, PODS))
def probe_kill_under_never(m: Moment) -> Findings:
    """Under policy Never a container killed for its probe is not run again."""
    container = _probe_kill(m)
    if container is None or _becomes(m) != "stop":
        return None
    return answered(
        by=done("StopPodSandbox"),
        not_before=_replaced(container),
        text=f"{container.name} is left after its probe failed under policy Never",
    )


@contract("RESTART-11", on=_STOPPED, needs=(CRI, PODS))
def kill_and_restart_in_one_sync(m: Moment, pod: Pod, container: Container) -> Findings:
    """Kill and restart are one sync: CreateContainer follows StopContainer and waits for no relist."""
    if _becomes(m) != "stop and start":
        return None
    # Its back-off is that of the instance before, if the sync has seen a record of that, which may be gone.
    every, took = pod.containers.get(container.name, ()), m.t - since_when_at_work(pod, m.t)
    is_held_up = any(one.state == "exited" for one in every if one is not container)
    if not containers.changed(container) and (
        is_held_up or (took > SAME_MOMENT and backoffs.most_delay(m, container.name))
    ):
        return None
    return _made_again(container, RELIST, "in the same sync")


@contract("RESTART-12", on=_STOPPED, needs=(CRI, PODS))
def first_probe_kill_has_no_delay(m: Moment) -> Findings:
    """The back-off after a kill is that of the instance that ended before it.

    So a container that never ended by itself comes back at once, however often it is killed first.
    """
    container = _probe_kill(m)
    if container is None or _becomes(m) != "stop and start" or container.attempt:
        return None
    return _made_again(container, REACTION, "at once")


def _goes_on(m: Moment) -> bool:
    return m.pod is not None and m.pod.termination is None and not time_may_be_over(m, m.pod)


@contract("RESTART-17", on=containers.OWN_END, needs=(CRI, PODS))
def siblings_are_untouched(m: Moment, pod: Pod, ended: Exit) -> Findings:
    """The restart of one app container does not touch the others."""
    container = _app_exit(m)
    if container is None:
        return None
    others = [one for one in pod.of_kind("app") if one.name != container.name and one.state == "running"]
    if not others or pods.will_not_run_again(pod, container.name, ended.code):
        return None
    return [
        answered(
            by=containers.start_of(container.name),
            unless=containers.CALLED_OFF.either(exited(), pod_set()),
            not_before=containers.stop_of(other).where(_goes_on),
            text=f"{other.name} is not stopped while {container.name} is made again",
        )
        for other in others
        if not other.stops and not _has_kill_probe(other) and not containers.changed(other)
    ]


@contract("RESTART-18", on=containers.OWN_END, needs=(CRI, PODS))
def pod_without_work_is_killed(m: Moment, pod: Pod, ended: Exit) -> Findings:
    """When every app container has ended for good, the pod is killed: its sandbox is stopped."""
    container = _app_exit(m)
    if container is None or not pods.at_its_end(pod, container, ended.code):
        return None
    still = [one for one in pod.of_kind("sidecar", "ephemeral") if one.state == "running"]
    grace = pod.spec.grace_seconds if still and pod.spec else 0
    return answered(
        by=call("StopPodSandbox"),
        within=REACTION + grace,
        unless=happened("removed").either(pod_set(), containers.stop_to_remake(container)),
        text="the sandbox is stopped after the last app container has ended",
    )


_WANTED_AGAIN = pod_set().where(lambda m: m.pod is not None and not m.pod.wanted)


@contract("RESTART-06", on=exited(), needs=(CRI, PODS))
def nothing_restarts_in_termination(m: Moment, pod: Pod, container: Container) -> Findings:
    """A container that ends while its pod is being terminated is not run again."""
    if m.exit is None or pod.termination is None:
        return None
    asked_t = pod.termination.t
    is_reported = m.t - (asked_t if pod.static else informed_by(m, asked_t)) >= 2 * RELIST
    aware = bool(container.stops) or is_reported
    if not aware or container.kind not in {"app", "init"} or stopped_for_itself(m, pod, container):
        return None
    return answered(
        by=done("StopPodSandbox"),
        unless=_WANTED_AGAIN,
        not_before=containers.creation_of(container.name),
        text=f"{container.name} is not made again in a pod that goes",
    )
