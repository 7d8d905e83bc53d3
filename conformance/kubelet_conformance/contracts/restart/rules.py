"""RESTART: containers with restart rules of their own, and those that restart their whole pod."""

from collections.abc import Iterator

from kubelet_conformance.contract import (
    Answered,
    Container,
    Exit,
    Finding,
    Moment,
    Note,
    Pod,
    PodStatus,
    Predicate,
    Sandbox,
)
from kubelet_conformance.contract.applicability import CRI, PODS, RESTART_ALL_GATE, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, exited, status
from kubelet_conformance.contracts.facts.backoff import restart_bound
from kubelet_conformance.contracts.facts.container import (
    HELD_UP,
    OWN_END,
    asked,
    creation_of,
    creation_of_kind,
    in_place,
    start_of,
    stop_of,
    to_watch,
)
from kubelet_conformance.contracts.facts.kills import asks_for_all
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, about, of, runs_pre_stop
from kubelet_conformance.contracts.facts.timing import REACTION, RELIST
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format.manifests import RESTART_ALL, ContainerSpec

RULES_GATE = "ContainerRestartRules"
_CONDITION = "AllContainersRestarting"


def _ended(m: Moment, *kinds: str) -> tuple[Container, ContainerSpec, int] | None:
    """The container of these kinds with a policy of its own that ended by itself just now, and its code."""
    container = m.container
    if container is None or m.exit is None or m.exit.commanded or m.exit.code is None:
        return None
    if container.spec is None or container.kind not in kinds or not to_watch(m) or not in_place(container):
        return None
    return (container, container.spec, m.exit.code) if container.spec.restart_policy else None


def _asks_again(spec: ContainerSpec, code: int) -> bool:
    """By its own policy the container runs again."""
    return spec.restart_policy == "Always" or (spec.restart_policy == "OnFailure" and code != 0)


def _comes(m: Moment, container: Container, why: str) -> Answered:
    return answered(
        by=start_of(container.name),
        within=restart_bound(m, container.name) + RELIST,
        unless=HELD_UP,
        text=f"{container.name} is run again {why}",
    )


def _stays(pod: Pod, container: Container, why: str) -> Answered:
    return answered(
        by=LIFE_ENDS.either(done("StopPodSandbox").where(about(container))),
        unless=TERMINATION_ASKED,
        not_before=creation_of(container.name).where(of(pod)),
        whole_node=True,
        text=f"{container.name} is not run again {why}",
    )


@contract("RESTART-19", on=OWN_END, needs=(CRI, PODS), versions=since("1.34"), gate=RULES_GATE)
def own_policy_decides(m: Moment, pod: Pod) -> Findings:
    """A container with a restart policy of its own is run again as that says, whatever the pod's is."""
    found = _ended(m, "app")
    if found is None or found[1].rule_for(found[2]) is not None:
        return None
    container, spec, code = found
    why = f"by its own policy {spec.restart_policy}"
    return _comes(m, container, why) if _asks_again(spec, code) else _stays(pod, container, why)


@contract("RESTART-20", on=OWN_END, needs=(CRI, PODS), versions=since("1.34"), gate=RULES_GATE)
def first_rule_decides(m: Moment, pod: Pod) -> Findings:
    """Of a container's restart rules the first that fits its exit code decides; else its policy does."""
    found = _ended(m, "app")
    if found is None or not found[1].restart_policy_rules:
        return None
    container, spec, code = found
    match spec.rule_for(code):
        case "Restart":
            return _comes(m, container, f"by its rule for {code}")
        case None if not _asks_again(spec, code):
            return _stays(pod, container, f"for no rule is for {code}")
        case _:
            return None


@contract("RESTART-21", on=exited(), needs=(CRI, PODS, STATUS), versions=since("1.34"), gate=RULES_GATE)
def own_never_fails_the_pod(m: Moment, pod: Pod) -> Findings:
    """An init container with policy Never of its own that fails makes its pod Failed, under any policy."""
    found = _ended(m, "init")
    if found is None or not found[2] or found[1].restart_policy != "Never":
        return None
    return None if found[1].rule_for(found[2]) is not None else _fails(pod, found[0].name)


def _fails(pod: Pod, name: str) -> Answered:
    return answered(
        by=status().where(lambda n: n.status is not None and n.status.phase == "Failed"),
        unless=TERMINATION_ASKED,
        not_before=creation_of_kind("init", "app"),
        text=f"pod {pod.name} fails with its init container {name}",
    )


def _restarts_all(m: Moment) -> Container | None:
    """The container that ended just now and restarts all of its pod."""
    found = _ended(m, "app", "init")
    return found[0] if found is not None and found[1].rule_for(found[2]) == RESTART_ALL else None


class _Anew(Note):
    """The pod was restarted as a whole."""

    seq: int = 0


@contract(
    "RESTART-22",
    on=OWN_END,
    needs=(CRI, PODS),
    versions=since("1.35"),
    gate=RESTART_ALL_GATE,
    clause="same-sandbox",
)
def pod_begins_anew(m: Moment, pod: Pod) -> Findings:
    """When a container's rule restarts the whole pod, all of its containers are stopped and removed, and the
    pod begins anew in its sandbox with the first init container.
    """
    container = _restarts_all(m)
    if container is None or pod.spec is None:
        return None
    pod.note(_Anew).seq = m.seq
    first = (*(pod.spec.init_containers or ()), *pod.spec.containers)[0].name
    return answered(
        by=call("CreateContainer").where(_makes(first, container.sandbox)),
        within=restart_bound(m, container.name) + 2 * REACTION,
        unless=TERMINATION_ASKED,
        not_before=call("RunPodSandbox", "StopPodSandbox")
        .where(of(pod))
        .either(creation_of_kind("app", "init", besides=first)),
        text=f"{first} is made again first, in the same sandbox",
    )


def _makes(name: str, sandbox: Sandbox | None) -> Predicate:
    return lambda m: asked(m).metadata.name == name and m.sandbox is sandbox


@pod_begins_anew.clause("stopped", on=OWN_END)
def all_are_stopped(m: Moment, pod: Pod) -> Iterator[Finding]:
    """The other running containers are stopped, without a hook."""
    container = _restarts_all(m)
    if container is None:
        return
    for other in pod.every_container():
        if other is not container and other.kind != "ephemeral" and other.state == "running":
            yield answered(
                by=stop_of(other),
                within=2 * REACTION,
                unless=TERMINATION_ASKED.either(exited()),
                not_before=call("ExecSync").where(about(other)).where(runs_pre_stop),
                text=f"{other.name} is stopped with the others",
            )


@pod_begins_anew.clause("asks-last", on=call("RemoveContainer"))
def what_asks_is_removed_last(_: Moment, pod: Pod, container: Container) -> Findings:
    """The container whose end restarts the pod is removed after the others: as long as one of them is there
    the kubelet still knows that the pod restarts.
    """
    if not to_restart_as_a_whole(pod) or not asks_for_all(container):
        return None
    if container is not pod.newest(container.name) or container.sandbox is not pod.sandbox:
        return None
    left = [
        one.name
        for one in pod.every_container()
        if one.state != "removed" and one.kind in {"app", "init", "sidecar"} and not asks_for_all(one)
    ]
    text = f"{container.name}, which restarts its pod, is removed before {', '.join(left)}"
    return broken(text, container.exit) if left else KEPT


def to_restart_as_a_whole(pod: Pod) -> bool:
    """The pod was to begin anew in its sandbox, which is still there, and is not to end."""
    is_there = pod.sandbox is not None and pod.sandbox.state == "ready" and not pod.sandbox.stops
    is_to_run = pod.wanted and pod.termination is None and not pod.finished
    return bool(pod.note(_Anew).seq) and is_there and is_to_run


@contract("RESTART-23", on=exited(), needs=(CRI, PODS, STATUS), versions=since("1.35"), gate=RESTART_ALL_GATE)
def failed_init_ends_it(m: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """After the restart of a whole pod with policy Never an init container that fails fails the pod."""
    if not ended.code or not pod.note(_Anew).seq:
        return None
    spec = container.spec
    if pod.restart_policy != "Never" or container.kind != "init" or spec is None or spec.restart_policy:
        return None
    return _fails(pod, container.name) if to_watch(m) and in_place(container) else None


@observer(on=OWN_END, last=True)
def _take(m: Moment, pod: Pod) -> None:
    """Record restarts of whole pods."""
    if _restarts_all(m) is not None:
        pod.note(_Anew).seq = m.seq


@contract(
    "COND-10",
    on=OWN_END,
    needs=(CRI, PODS, STATUS),
    versions=since("1.35"),
    gate=RESTART_ALL_GATE,
    clause="set",
)
def restart_is_reported(m: Moment, pod: Pod) -> Findings:
    """While a whole pod restarts its condition AllContainersRestarting is True; afterwards it is not.

    A condition that is False since another time than before has been True in between.
    """
    container = _restarts_all(m)
    if container is None:
        return None
    before = pod.status.condition(_CONDITION) if pod.status is not None else None

    def has_restarted(n: Moment) -> bool:
        now = n.status.condition(_CONDITION) if n.status is not None else None
        if now is None or now.status == "True":
            return now is not None
        return before is not None and now.last_transition_time != before.last_transition_time

    return answered(
        by=status().where(has_restarted),
        within=2 * REACTION,
        unless=TERMINATION_ASKED,
        text=f"the status of {pod.name} says that all containers restart",
    )


@restart_is_reported.clause("value", on=status())
def restart_has_a_reason(_: Moment, status: PodStatus) -> Findings:
    """It is True with the reason RestartAllContainersStarted, or False."""
    found = status.condition(_CONDITION)
    if found is None:
        return None
    reasons = {"True": {"RestartAllContainersStarted"}, "False": {"", "PodCompleted", "PodFailed"}}
    is_right = (found.reason or "") in reasons.get(found.status, ())
    return KEPT if is_right else broken(f"{_CONDITION} is {found.status!r} with reason {found.reason!r}")


@restart_is_reported.clause("cleared", on=status())
def condition_is_cleared(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Once every app container runs again it is True no more."""
    if not pod.note(_Anew).seq or not status.container_statuses:
        return None
    if not all(one.state.running is not None for one in status.container_statuses):
        return None
    return broken("all containers run, and are said to restart") if _is_restarting(m) else KEPT


def _is_restarting(m: Moment) -> bool | None:
    """Whether the condition is True by the status; None where the status has no such condition."""
    found = m.status.condition(_CONDITION) if m.status is not None else None
    return found.status == "True" if found is not None else None
