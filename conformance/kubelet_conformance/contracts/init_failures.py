"""INIT: what becomes of a regular init container that failed."""

from __future__ import annotations

from kubelet_conformance.contract import Container, Exit, Moment, Pod, PodStatus
from kubelet_conformance.contract.frame import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.needs import CRI, PODS
from kubelet_conformance.contract.words import call, exited, failed, read_as
from kubelet_conformance.contracts.backoffs import restart_bound
from kubelet_conformance.contracts.instances import (
    HELD_UP,
    OWN_END,
    REMAKING,
    asked,
    creation_of_kind,
    failed_run,
    in_place,
    recorded,
    regular_inits,
    removal_of,
    start_of,
    to_watch,
    told_otherwise,
    unread_end,
)
from kubelet_conformance.contracts.left_over import is_misled
from kubelet_conformance.contracts.sandboxes import FINISHED
from kubelet_conformance.contracts.situations import TERMINATION_ASKED, another_image, was_seen_started
from kubelet_conformance.contracts.tables.container import INITS, InitAct, InitSeen
from kubelet_conformance.contracts.timing import REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.trace.bodies import ContainerStatusReply


def _seq(container: Container) -> int | None:
    return container.create.seq if container.create else None


def _becomes(pod: Pod, code: int | None) -> InitAct | None:
    """What is done about a regular init container that ended with `code`; None where nobody knows that."""
    if code is None:
        return None
    return INITS.decide(InitSeen("exited", pod.restart_policy, failed=code != 0))


@contract("INIT-07", on=OWN_END, needs=(CRI, PODS))
def failed_one_is_retried(m: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """Unless the policy is Never, a failed init container is run again after its back-off.

    None after it is made before. Where its sandbox has died, a new one begins with the first of them.
    """
    if container.kind != "init":
        return None
    if _becomes(pod, ended.code) != "start" or not in_place(container) or is_misled(pod, container.sandbox):
        return None
    return answered(
        by=start_of(container.name),
        within=restart_bound(m, container.name),
        unless=HELD_UP.either(another_image(container)),
        not_before=creation_of_kind("init", "app", besides=container.name),
        text=f"{container.name} is made again after it failed",
    )


@failed_one_is_retried.clause("end-was-read", on=REMAKING)
def _(m: Moment, pod: Pod) -> Findings:
    one = recorded(pod, asked(m).metadata.name)
    if one is None or one.kind != "init" or not unread_end(m, one):
        return None
    return broken(f"{one.name} is made again though the kubelet has not read its end", _seq(one))


@contract("INIT-08", on=OWN_END, needs=(CRI, PODS))
def failure_under_never_ends_the_pod(_: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """Under policy Never a failed init container is not retried: the pod is killed and ends as Failed."""
    if container.kind != "init":
        return None
    if _becomes(pod, ended.code) != "end the pod":
        return None
    return answered(
        by=call("StopPodSandbox"),
        within=REACTION,
        unless=TERMINATION_ASKED,
        not_before=creation_of_kind("init", "app"),
        text="the pod is killed after its init container failed",
    )


@failure_under_never_ends_the_pod.clause("never-retried", on=call("CreateContainer"))
def _(m: Moment, pod: Pod) -> Findings:
    if pod.restart_policy != "Never" or pod.kind_of(asked(m).metadata.name) not in {"init", "app"}:
        return None
    inits = (recorded(pod, spec.name) for spec in regular_inits(pod))
    bad = next((one for one in inits if one is not None and one.state == "exited" and failed_run(one)), None)
    if bad is None or bad.exit is None or bad.exit.commanded:
        return None
    return broken(
        f"{asked(m).metadata.name} is made though {bad.name} failed under policy Never", bad.exit.seq
    )


@failure_under_never_ends_the_pod.clause("phase", on=FINISHED)
def _(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    if not status.terminal or pod.restart_policy != "Never":
        return None
    for told in status.init_container_statuses or ():
        ended = told.state.terminated
        if pod.kind_of(told.name) == "init" and ended and ended.exit_code:
            if status.phase != "Failed":
                return broken(f"phase {status.phase} though {told.name} exited with {ended.exit_code}")
            return KEPT
    return None


@contract("INIT-09", on=read_as("exited"), needs=(CRI, PODS))
def out_of_memory_is_a_failure(m: Moment, pod: Pod, container: Container) -> Findings:
    """An init container with reason OOMKilled failed, whatever its exit code.

    It is run again, or under policy Never the pod is killed.
    """
    told = m.response(ContainerStatusReply).status
    if told is None or told.reason != "OOMKilled":
        return None
    if told.state != "CONTAINER_EXITED" or told.exit_code or container.kind != "init" or not to_watch(m):
        return None
    if not in_place(container):
        return None
    if container.record is not None and container.record.state == "CONTAINER_EXITED":
        return None
    never = INITS.decide(InitSeen("exited", pod.restart_policy, failed=True)) == "end the pod"
    return answered(
        by=call("StopPodSandbox") if never else start_of(container.name),
        within=REACTION if never else restart_bound(m, container.name),
        unless=HELD_UP,
        not_before=creation_of_kind("init", "app", besides="" if never else container.name),
        text=f"{container.name} counts as failed",
    )


@contract("INIT-11", on=REMAKING, needs=(CRI, PODS))
def unknown_one_is_stopped_first(m: Moment, pod: Pod) -> Findings:
    """An init container whose state is unknown is stopped before it is made again.

    Under policy Never it is not made again.
    """
    one = recorded(pod, asked(m).metadata.name)
    if one is None or one.kind != "init" or one.record is None:
        return None
    if one.record.state != "CONTAINER_UNKNOWN":
        return None
    if INITS.decide(InitSeen("unknown", pod.restart_policy)) == "end the pod":
        return broken(f"{one.name} is made again under policy Never", _seq(one))
    if not any(stop.succeeded for stop in one.stops):
        return broken(f"{one.name} is made again before its unknown instance was stopped", _seq(one))
    return KEPT


@contract("INIT-14", on=exited(), needs=(CRI, PODS))
def only_newest_dead_instance_is_kept(m: Moment, pod: Pod, container: Container) -> Findings:
    """Of each init container only the newest dead instance is kept.

    When another has ended, the older ones are removed in the next sync.
    """
    if container.kind not in {"init", "sidecar"}:
        return None
    every = pod.containers.get(container.name, ())
    dead = [one for one in every if one is not container and one.state == "exited"]
    if not dead or not to_watch(m):
        return None
    return [
        answered(
            by=removal_of(older),
            within=REACTION,
            unless=HELD_UP,
            text=f"instance {older.attempt} of {older.name} is removed",
        )
        for older in dead
    ]


@contract("INIT-18", on=failed("StartContainer"), needs=(CRI, PODS))
def created_one_is_tried_again(m: Moment, pod: Pod, container: Container) -> Findings:
    """An init container that was made but could not be started is made again, before any later one."""
    if container.kind != "init" or not to_watch(m):
        return None
    if not in_place(container) or was_seen_started(container) or is_misled(pod, container.sandbox):
        return None  # An event has told that it runs after all, or the kubelet goes by another record.
    return answered(
        by=start_of(container.name),
        within=restart_bound(m, container.name) + RETRY + RETRY_SLACK,
        unless=HELD_UP.either(told_otherwise(container), another_image(container)),
        not_before=creation_of_kind("init", "app", besides=container.name),
        text=f"{container.name} is made again after its start failed",
    )
