"""SANDBOX: when a pod sandbox is made, and when it is replaced or let be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.frame import KEPT, answered, broken, contract
from kubelet_conformance.contract.needs import CRI, EVENTS, PODS
from kubelet_conformance.contract.words import (
    call,
    done,
    event,
    exited,
    failed,
    pod_set,
    sandbox_died,
)
from kubelet_conformance.contracts.instances import asked, recorded
from kubelet_conformance.contracts.sandboxes import (
    BLIND,
    FINISHED,
    GONE,
    NOT_READY,
    asked_sandbox,
    full_names,
    run_of,
    runs_containers,
    standing,
    why_replaced,
)
from kubelet_conformance.contracts.situations import NOBODY, TERMINATION_ASKED, at_its_end, of, to_run
from kubelet_conformance.contracts.timing import FILE_POLL, REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.trace.records import PodChange

if TYPE_CHECKING:
    from kubelet_conformance.contract.frame import Findings
    from kubelet_conformance.trace.manifests import Manifest
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Container, Pod


@contract("SANDBOX-01", on=call("RunPodSandbox"))
def first_sandbox_is_attempt_zero(m: Moment) -> Findings:
    """A new pod gets one sandbox, which names it (name, namespace, UID) and is attempt 0.

    Without volumes it comes within 20 s, and the kubelet works in no sandbox that it was not told of.
    """
    pod = m.pod
    if pod is None or not pod.born or pod.sandboxes:
        return None
    meta = asked_sandbox(m).config.metadata
    if meta.attempt != 0:
        return broken(f"the first sandbox of {pod.name} is attempt {meta.attempt}, expected 0", pod.set_seq)
    if pod.manifest is not None and (meta.name, meta.namespace) != (pod.name, pod.namespace):
        return broken(
            f"the sandbox is called {meta.namespace}/{meta.name}, the pod {pod.namespace}/{pod.name}"
        )
    return KEPT


def _waits_for_nothing(manifest: Manifest) -> bool:
    """Nothing but the runtime keeps the pod from its sandbox."""
    spec, known = manifest.spec, manifest.status
    gone = manifest.metadata.deletion_timestamp is not None or (known is not None and known.terminal)
    return not gone and not spec.volumes and spec.runtime_class_name is None


def _is_new(m: Moment, manifest: Manifest) -> bool:
    names = full_names(manifest.metadata, m.header.node)
    return m.pod is None and m.replaced is None and not any(name in m.world.names for name in names)


@first_sandbox_is_attempt_zero.clause("soon", on=pod_set())
def new_pod_gets_a_sandbox(m: Moment) -> Findings:
    """RunPodSandbox follows soon."""
    manifest, node = m.manifest, m.node
    if manifest is None or not m.world.past_known or not node.kubelet_up or node.relisted_t is None:
        return None
    if node.listing_failed or not _is_new(m, manifest) or not _waits_for_nothing(manifest):
        return None
    meta = manifest.metadata
    static = isinstance(m.record, PodChange) and m.record.source != "api"

    def is_this(n: Moment) -> bool:
        return n.pod is not None and (n.pod.namespace, n.pod.name) in full_names(meta, m.header.node)

    return answered(
        by=run_of(meta, m.header.node),
        within=RETRY + RETRY_SLACK + (FILE_POLL if static else 0),
        unless=GONE.where(is_this, "it is this pod").either(BLIND, NOT_READY),
        text=f"a sandbox is run for {meta.name}",
        whole_node=True,
    )


@first_sandbox_is_attempt_zero.clause("its own", on=done("PodSandboxStatus"))
def sandbox_in_use_was_made_or_found(m: Moment) -> Findings:
    """A kubelet asks only for sandboxes it was told of: by the reply of RunPodSandbox or by a listing."""
    if not m.node.born:
        return None
    if m.sandbox is None:
        return broken("the kubelet asks for a sandbox that no RunPodSandbox and no listing has told it of")
    return KEPT if m.sandbox.born and m.sandbox.status_t is None else None


@contract("SANDBOX-02", on=call("RunPodSandbox"))
def sandbox_is_run_only_where_one_is_needed(m: Moment) -> Findings:
    """Another sandbox is run exactly where one is needed, as the attempt of the newest plus 1, or 0.

    It is needed if the pod has none, the newest is not ready, more than one is ready, the network namespace
    is another one, or it has no IP.
    """
    pod = m.pod
    if pod is None or not pod.born:
        return None
    stand, attempt = standing(pod), asked_sandbox(m).config.metadata.attempt
    made = stand[-1].run.seq if stand and stand[-1].run else None
    if why_replaced(pod) is None:
        return broken(f"sandbox {stand[-1].id[:12]} is ready, and another one is run", made)
    expected = stand[-1].attempt + 1 if stand else 0
    if attempt != expected:
        return broken(f"the sandbox is attempt {attempt}, expected {expected}", made)
    return KEPT


@sandbox_is_run_only_where_one_is_needed.clause("replaced", on=done("StopPodSandbox"))
def dead_sandbox_is_replaced(m: Moment) -> Findings:
    """When the dead sandbox of a pod that always restarts was stopped, its replacement is run."""
    pod, sandbox = m.pod, m.sandbox
    if pod is None or sandbox is None or not to_run(m) or sandbox is not pod.sandbox:
        return None
    if sandbox.died_t is None or sandbox.stopped or pod.restart_policy != "Always":
        return None
    if any(stop.failed for one in pod.every_container() for stop in one.stops):
        return None
    return answered(
        by=call("RunPodSandbox"),
        within=REACTION,
        unless=TERMINATION_ASKED.either(FINISHED, failed("StopPodSandbox")),
        text="the dead sandbox is replaced",
    )


@contract("SANDBOX-04", on=call("RunPodSandbox"))
def old_sandbox_is_stopped_first(m: Moment) -> Findings:
    """Before a replacement is run, every container and every known sandbox of the pod was stopped.

    StopPodSandbox has succeeded for sandboxes that are not ready, too.
    """
    pod = m.pod
    if pod is None or not pod.born or not standing(pod):
        return None
    for sandbox in standing(pod):
        if not any(stop.succeeded or stop.not_found for stop in sandbox.stops):
            run_seq = sandbox.run.seq if sandbox.run else None
            return broken(f"sandbox {sandbox.id[:12]} was not stopped before another one was run", run_seq)
    for container in pod.every_container():
        if container.state == "running" and container.start:
            return broken(f"container {container.name} still runs in the old sandbox", container.start.seq)
    return KEPT


class _Kept:
    """A container whose removal was tried and failed."""

    def __init__(self) -> None:
        self.tried = False


@contract("SANDBOX-05", on=call("RunPodSandbox"), needs=(CRI, PODS))
def replacement_begins_with_initialization(m: Moment) -> Findings:
    """Before a replacement is run, all records of init containers, sidecars included, are removed.

    Then the first init container is made again in it, with the next attempt.
    """
    pod = m.pod
    if pod is None or not pod.born or not standing(pod):
        return None
    records = list(pod.of_kind("init", "sidecar"))
    for container in records:
        if container.state != "removed" and not container.note(_Kept).tried:
            made = container.create.seq if container.create else None
            return broken(f"the old record of {container.name} stands when the new sandbox is run", made)
    return KEPT if records else None


@replacement_begins_with_initialization.clause("removal", on=failed("RemoveContainer"))
def _removal_was_tried(m: Moment) -> Findings:
    """A removal that fails does not hold the replacement up."""
    if m.container is not None:
        m.container.note(_Kept).tried = True
    return None


@replacement_begins_with_initialization.clause("first", on=call("CreateContainer"))
def first_init_comes_first(m: Moment) -> Findings:
    """The first container of a replacement is the first init container."""
    pod, sandbox = m.pod, m.sandbox
    if pod is None or sandbox is None or pod.spec is None or not pod.spec.init_containers:
        return None
    if not pod.born or sandbox.attempt == 0 or sandbox.ready_t is None:
        return None
    if pod.create is not None and pod.create.t >= sandbox.ready_t:
        return None
    first, meta = pod.spec.init_containers[0].name, asked(m).metadata
    if meta.name != first:
        return broken(f"{meta.name} is the first container of the new sandbox, expected {first}")
    old = pod.newest(first)
    if old is not None and meta.attempt != old.attempt + 1:
        return broken(f"{first} is attempt {meta.attempt} in the new sandbox, expected {old.attempt + 1}")
    return KEPT


def _made_container(pod: Pod) -> Container | None:
    """A container record that the runtime still has."""
    return next((one for one in pod.every_container() if one.state != "removed"), None)


@contract("SANDBOX-06", on=call("RunPodSandbox"), needs=(CRI, PODS))
def run_once_pod_is_not_run_again(m: Moment) -> Findings:
    """When the sandbox of a pod with restartPolicy Never dies, it is stopped and not replaced.

    It is replaced if no container was ever made in it.
    """
    pod = m.pod
    if pod is None or not pod.born or pod.spec is None or pod.restart_policy != "Never" or not standing(pod):
        return None
    made = _made_container(pod)
    if made is not None:
        seq = made.create.seq if made.create else None
        return broken(f"a Never pod whose container {made.name} was made gets another sandbox", seq)
    return KEPT


@run_once_pod_is_not_run_again.clause("stopped", on=sandbox_died())
def sandbox_of_run_once_pod_is_stopped(m: Moment) -> Findings:
    """The dead one is stopped, or replaced where nothing was made in it."""
    pod = m.pod
    if pod is None or not to_run(m) or pod.spec is None or pod.restart_policy != "Never":
        return None
    if pod.calls_open or not m.node.kubelet_up:
        return None
    again = call("RunPodSandbox").where(of(pod), "it is for this pod")
    stop = call("StopPodSandbox").where(of(pod), "it is of this pod")
    made = _made_container(pod) is not None
    return answered(
        by=stop if made else again,
        not_before=again if made else None,
        within=REACTION + (2 * pod.spec.grace_seconds if runs_containers(pod) else 0),
        unless=BLIND.either(NOBODY if made else GONE.where(of(pod), "it is this pod")),
        text="the dead sandbox of the Never pod is stopped" if made else "the sandbox is replaced",
        whole_node=True,
    )


@contract("SANDBOX-07", on=call("CreateContainer"), needs=(CRI, PODS))
def succeeded_container_is_not_run_again_in_a_replacement(m: Moment) -> Findings:
    """With restartPolicy OnFailure a replacement of the sandbox runs only what has not succeeded."""
    pod, sandbox = m.pod, m.sandbox
    if (
        pod is None
        or sandbox is None
        or not pod.born
        or pod.restart_policy != "OnFailure"
        or not sandbox.attempt
    ):
        return None
    succeeded = [one for one in pod.of_kind("app") if one.sandbox is not sandbox and _succeeded(pod, one)]
    name = asked(m).metadata.name
    for container in succeeded:
        if container.name == name:
            ended = container.exit.seq if container.exit else None
            return broken(f"{name} had succeeded, and is made again", ended)
    return KEPT if succeeded and pod.kind_of(name) == "app" else None


def _succeeded(pod: Pod, container: Container) -> bool:
    """It is the newest of its name, and ended by itself with code 0."""
    ended = container.exit
    newest = recorded(pod, container.name) is container
    return newest and ended is not None and ended.code == 0 and not ended.commanded


@succeeded_container_is_not_run_again_in_a_replacement.clause("done", on=call("RunPodSandbox"))
def finished_pod_gets_no_replacement(m: Moment) -> Findings:
    """Where everything has succeeded there is no replacement."""
    pod = m.pod
    if (
        pod is None
        or not pod.born
        or pod.spec is None
        or pod.restart_policy != "OnFailure"
        or not standing(pod)
    ):
        return None
    names = [spec.name for spec in pod.spec.containers]
    newest = [recorded(pod, name) for name in names]
    if all(one is not None and _succeeded(pod, one) for one in newest):
        return broken("all its containers have succeeded, and another sandbox is run")
    return KEPT


def _ends_the_pod(pod: Pod, container: Container, code: int) -> bool:
    if container.kind == "init":
        return pod.restart_policy == "Never" and code != 0 and recorded(pod, container.name) is container
    return container.kind == "app" and at_its_end(pod, container, code)


def _not_of_an_ephemeral(m: Moment) -> bool:
    return m.pod is not None and m.pod.kind_of(asked(m).metadata.name) != "ephemeral"


@contract("SANDBOX-08", on=exited(), needs=(CRI, PODS))
def sandbox_of_a_finished_pod_is_stopped(m: Moment) -> Findings:
    """When nothing of a pod is left to run, its sandbox is stopped, and no other one is run."""
    pod, container, ended = m.pod, m.container, m.exit
    if pod is None or container is None or ended is None or not to_run(m):
        return None
    if ended.commanded or ended.code is None or not m.node.kubelet_up or m.node.listing_failed:
        return None
    if not _ends_the_pod(pod, container, ended.code) or pod.spec is None:
        return None
    others = any(one.state == "running" and one is not container for one in pod.every_container())
    creation = call("CreateContainer").where(of(pod)).where(_not_of_an_ephemeral, "it is for this pod")
    return answered(
        by=call("StopPodSandbox").where(of(pod), "it is of this pod"),
        within=REACTION + (2 * pod.spec.grace_seconds if others else 0),
        not_before=creation.either(call("RunPodSandbox").where(of(pod), "it is for this pod")),
        unless=BLIND,
        text=f"the sandbox of {pod.name} is stopped, which has nothing left to run,",
        whole_node=True,
    )


@contract("SANDBOX-09", on=event("SandboxChanged"), needs=(CRI, EVENTS))
def replacement_is_told(m: Moment) -> Findings:
    """An event SandboxChanged tells of a replacement, never of a pod's first sandbox."""
    pod = m.pod
    if pod is None or not pod.born:
        return None
    first = pod.sandboxes[0] if len(pod.sandboxes) == 1 else None
    if not pod.sandboxes or (first is not None and first.attempt == 0 and first.state == "ready"):
        return broken("SandboxChanged is told of the pod's first sandbox", pod.set_seq)
    return KEPT


@contract("SANDBOX-10", on=failed("RunPodSandbox"), needs=(CRI, PODS))
def failed_sandbox_is_retried(m: Moment) -> Findings:
    """A sandbox that could not be run is tried again within 16 s for as long as the pod is wanted."""
    if not to_run(m):
        return None
    return answered(
        by=call("RunPodSandbox"),
        within=RETRY + RETRY_SLACK,
        unless=TERMINATION_ASKED.either(FINISHED),
        text="RunPodSandbox is tried again",
    )
