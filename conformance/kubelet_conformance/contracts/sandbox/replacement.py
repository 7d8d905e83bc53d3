"""SANDBOX: what runs again when a sandbox is replaced, and when it is not replaced at all."""

from kubelet_conformance.contract import Container, Exit, Moment, Pattern, Pod, PodSpec, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS, ByVersion
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, kept_if
from kubelet_conformance.contract.patterns import call, done, exited, failed, pod_unset, sandbox_died
from kubelet_conformance.contracts.facts import sandbox as sandboxes
from kubelet_conformance.contracts.facts.container import (
    asked,
    is_hidden,
    put_off,
    recorded,
    sees_stale_init_record,
    stop_to_remake,
    was_tried,
)
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, about, at_its_end, of, to_run
from kubelet_conformance.contracts.facts.timing import REACTION
from kubelet_conformance.contracts.pod_workers.kill_pod import (
    REVIVES_A_SIDECAR,
    makes_another_again,
    revives_a_sidecar,
)
from kubelet_conformance.contracts.tables.container import INITS, InitSeen


@contract("SANDBOX-05", on=call("RunPodSandbox"), needs=(CRI, PODS))
def replacement_begins_with_initialization(_: Moment, pod: Pod) -> Findings:
    """Before a replacement is run, all records of init containers, sidecars included, are removed.

    Then the first init container is made again in it, with the next attempt.
    """
    if not pod.born or not sandboxes.standing(pod):
        return None
    records = list(pod.of_kind("init", "sidecar"))
    for container in records:
        if container.state != "removed" and not was_tried(container):
            return broken(
                f"the old record of {container.name} still exists when the new sandbox is run",
                container.create,
            )
    return KEPT if records else None


@replacement_begins_with_initialization.clause("not before", on=call("RemoveContainer"))
def last_init_record_stays_until_the_kill(
    m: Moment, pod: Pod, sandbox: Sandbox, container: Container
) -> Findings:
    """The newest record of an init container is removed only when the sandbox has been stopped."""
    if not to_run(m) or not sandbox.born:
        return None
    if container.kind not in {"init", "sidecar"} or pod.newest(container.name) is not container:
        return None
    has_gone = sandbox.stopped or any(stop.not_found for stop in sandbox.stops)
    return kept_if(has_gone, f"the record of {container.name} is removed, and its sandbox stands")


@replacement_begins_with_initialization.clause("first", on=call("CreateContainer"))
def first_init_comes_first(m: Moment, pod: Pod, spec: PodSpec, sandbox: Sandbox) -> Findings:
    """The first container of a replacement is the first init container."""
    if not spec.init_containers or sees_stale_init_record(pod, sandbox):
        return None
    if not pod.born or sandbox.attempt == 0 or sandbox.ready_t is None:
        return None
    if pod.create is not None and pod.create.t >= sandbox.ready_t:
        return None
    first, meta = spec.init_containers[0].name, asked(m).metadata
    if meta.name != first:
        return broken(f"{meta.name} is the first container of the new sandbox, expected {first}")
    old = pod.newest(first)
    # A record may have vanished: a kubelet that went before it was answered has removed it.
    if old is not None and meta.attempt != old.attempt + 1 and not old.vanished and not put_off(m):
        return broken(f"{first} is attempt {meta.attempt} in the new sandbox, expected {old.attempt + 1}")
    return KEPT


def _made_container(pod: Pod) -> Container | None:
    """The runtime still has this container record."""
    return next((one for one in pod.every_container() if one.state != "removed"), None)


@contract("SANDBOX-06", on=call("RunPodSandbox"), needs=(CRI, PODS))
def run_once_pod_is_not_run_again(_: Moment, pod: Pod) -> Findings:
    """When the sandbox of a pod with restartPolicy Never dies, it is stopped and not replaced.

    It is replaced if no container was ever made in it.
    """
    if not pod.born or pod.spec is None or pod.restart_policy != "Never" or not sandboxes.standing(pod):
        return None
    made = _made_container(pod)
    if made is not None:
        return broken(f"a Never pod whose container {made.name} was made gets another sandbox", made.create)
    return KEPT


@run_once_pod_is_not_run_again.clause("stopped", on=sandbox_died())
def sandbox_of_run_once_pod_is_stopped(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """The dead one is stopped, or replaced where nothing was made in it."""
    if not to_run(m) or pod.restart_policy != "Never":
        return None
    if pod.calls_open or not m.node.kubelet_up:
        return None
    again = call("RunPodSandbox").where(of(pod))
    stop = call("StopPodSandbox").where(of(pod))
    over = _made_container(pod) is not None
    return answered(
        by=stop if over else again,
        not_before=again if over else None,
        within=REACTION + (2 * spec.grace_seconds if sandboxes.runs_containers(pod) else 0),
        unless=sandboxes.BLIND.either(_collected(pod) if over else sandboxes.GONE.where(of(pod))),
        text="the dead sandbox of the Never pod is stopped" if over else "the sandbox is replaced",
        whole_node=True,
    )


@contract("SANDBOX-07", on=call("CreateContainer"), needs=(CRI, PODS))
def succeeded_container_is_not_run_again_in_a_replacement(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """With restartPolicy OnFailure a replacement of the sandbox runs only what has not succeeded."""
    if not pod.born or pod.restart_policy != "OnFailure" or not sandbox.attempt:
        return None
    others = (one for one in pod.of_kind("app") if one.sandbox is not sandbox and not is_hidden(m, one))
    succeeded = [one for one in others if _succeeded(pod, one)]
    name = asked(m).metadata.name
    for container in succeeded:
        if container.name == name:
            return broken(f"{name} had succeeded, and is made again", container.exit)
    return KEPT if succeeded and pod.kind_of(name) == "app" else None


def _succeeded(pod: Pod, container: Container) -> bool:
    """The container is the newest of its name and ended by itself with code 0; a later stop shows that the
    kubelet did not know.
    """
    ended = container.exit
    if ended is None or recorded(pod, container.name) is not container:
        return False
    return ended.code == 0 and not ended.commanded and not any(s.call.t >= ended.t for s in container.stops)


@succeeded_container_is_not_run_again_in_a_replacement.clause("done", on=call("RunPodSandbox"))
def finished_pod_gets_no_replacement(_: Moment, pod: Pod) -> Findings:
    """A sandbox whose containers have all succeeded is not replaced."""
    if not pod.born or pod.spec is None or pod.restart_policy != "OnFailure" or not sandboxes.standing(pod):
        return None
    names = [spec.name for spec in pod.spec.containers]
    newest = [recorded(pod, name) for name in names]
    if all(
        one is not None and _succeeded(pod, one) and not sandboxes.is_hidden_by_event(one) for one in newest
    ):
        return broken("all its containers have succeeded, and another sandbox is run")
    return KEPT


_NEVER_RAN_HAS_SUCCEEDED = ByVersion({"<=1.26": True, ">=1.27": False})
"""Whether a container that was made and never ran counts as one that succeeded."""


def _is_left_to_run(m: Moment, pod: Pod, name: str) -> bool:
    """Whether the container has certainly not succeeded."""
    newest = pod.newest(name)
    if newest is None or newest.state == "created":
        return newest is None or _NEVER_RAN_HAS_SUCCEEDED.get(m.kubernetes) is False
    ended = newest.exit if newest.state == "exited" else None
    return ended is not None and not ended.commanded and ended.code not in {0, None}


@succeeded_container_is_not_run_again_in_a_replacement.clause("left", on=done("StopPodSandbox"))
def unfinished_pod_gets_a_replacement(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A sandbox with a container left to run is replaced; from 1.27 on one that was made and never ran is
    left to run, too.
    """
    if pod.spec is None or sandbox is not pod.sandbox:
        return None
    if sandbox.died_t is None or sandbox.stopped or pod.restart_policy != "OnFailure" or not to_run(m):
        return None
    if pod.spec.runtime_class_name or pod.spec.resource_claims:
        return None  # What they ask for may not be there.
    if any(stop.failed for one in pod.every_container() for stop in one.stops):
        return None
    left = [spec.name for spec in pod.spec.containers if _is_left_to_run(m, pod, spec.name)]
    if not left:
        return None
    return answered(
        by=call("RunPodSandbox"),
        within=REACTION,
        unless=TERMINATION_ASKED.either(sandboxes.FINISHED, failed("StopPodSandbox")),
        text=f"the dead sandbox is replaced, as {left[0]} is left to run",
    )


def _ends_the_pod(pod: Pod, container: Container, code: int) -> bool:
    if container.kind == "init":
        act = INITS.decide(InitSeen("exited", pod.restart_policy, failed=code != 0))
        return act == "end the pod" and recorded(pod, container.name) is container
    return container.kind == "app" and at_its_end(pod, container, code)


def _not_of_an_ephemeral(m: Moment) -> bool:
    if m.pod is None or revives_a_sidecar(m):
        return False
    return m.pod.kind_of(asked(m).metadata.name) != "ephemeral"


@contract("SANDBOX-08", on=exited(), needs=(CRI, PODS))
def sandbox_of_a_finished_pod_is_stopped(
    m: Moment, pod: Pod, spec: PodSpec, container: Container, ended: Exit
) -> Findings:
    """When nothing of a pod is left to run, its sandbox is stopped, and no other one is run."""
    if ended.commanded or ended.code is None:
        return None
    if not m.node.kubelet_up or m.node.listing_failed:
        return None
    if not _ends_the_pod(pod, container, ended.code) or not to_run(m):
        return None
    others = any(one.state == "running" and one is not container for one in pod.every_container())
    creation = call("CreateContainer").where(of(pod)).where(_not_of_an_ephemeral)
    creation = creation.where(lambda now: not makes_another_again(now, container))
    return answered(
        by=call("StopPodSandbox").where(of(pod)),
        within=REACTION + (2 * spec.grace_seconds if others else 0),
        not_before=creation.either(call("RunPodSandbox").where(of(pod))),
        unless=sandboxes.BLIND.either(
            _collected(pod),
            stop_to_remake(container),
            call("RemoveContainer").where(about(container)),  # Nothing tells of its end any more.
            REVIVES_A_SIDECAR.where(of(pod)),
        ),
        text=f"the sandbox of {pod.name} is stopped, which has nothing left to run,",
        whole_node=True,
    )


def _collected(pod: Pod) -> Pattern:
    """A pod whose file goes just now may be unknown to the kubelet: then it is garbage, and not stopped."""

    def has_just_started(m: Moment) -> bool:
        return m.node.started_t is not None and m.t - m.node.started_t < REACTION

    return pod_unset().where(of(pod)).where(has_just_started)


@contract("SANDBOX-23", on=exited(), needs=(CRI, PODS))
def ephemeral_container_does_not_keep_the_pod(
    m: Moment, pod: Pod, container: Container, ended: Exit
) -> Findings:
    """When all other containers of a pod have ended, an ephemeral container that still runs is stopped with
    its sandbox.
    """
    if ended.commanded or ended.code is None:
        return None
    running = [one for one in pod.of_kind("ephemeral") if one.seen_running and one.state == "running"]
    if not running or not m.node.kubelet_up or m.node.listing_failed:
        return None
    if not _ends_the_pod(pod, container, ended.code) or not to_run(m):
        return None
    guest = running[0]
    stop = call("StopContainer").where(lambda n: n.container is guest)
    return answered(
        by=stop.either(exited().where(lambda n: n.container is guest)),
        not_before=call("StopPodSandbox").where(of(pod)),
        within=REACTION,
        unless=sandboxes.BLIND,
        text=f"the ephemeral container {guest.name} is stopped, whose pod is done,",
        whole_node=True,
    )


@contract("SANDBOX-03", on=call("RunPodSandbox", "CreateContainer"), needs=(CRI, PODS))
def newest_sandbox_is_the_one_made_last(m: Moment, pod: Pod) -> Findings:
    """Of several sandboxes of a pod the one that was made last counts, by the runtime's time.

    Containers are made in it, and the next sandbox has its attempt plus 1.
    """
    if not pod.born or len(sandboxes.standing(pod)) < 2:  # noqa: PLR2004 - a single one is the newest
        return None
    made = [(one.record.created_at, one) for one in sandboxes.standing(pod) if one.record is not None]
    if len(made) < len(sandboxes.standing(pod)) or len({at for at, _ in made}) < len(made):
        return None
    newest = max(made, key=lambda each: each[0])[1]
    if m.call.rpc == "CreateContainer":
        fine, what = m.sandbox is newest, f"{asked(m).metadata.name} is made in another sandbox"
    else:
        attempt = sandboxes.sandbox_asked(m).metadata.attempt
        fine, what = attempt == newest.attempt + 1, f"the next sandbox is attempt {attempt}"
    text = f"{what}, and the one made last is {newest.id[:12]}, attempt {newest.attempt}"
    return KEPT if fine else broken(text, newest.run)
