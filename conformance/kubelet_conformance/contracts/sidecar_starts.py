"""SIDECAR: whether they run at all, what their failures hold up, and what shows that all have started."""

from __future__ import annotations

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Manifest, Moment, Pod, Sandbox
from kubelet_conformance.contract.frame import KEPT, Finding, Findings, answered, broken, contract
from kubelet_conformance.contract.needs import CRI, PODS, STATUS
from kubelet_conformance.contract.versions import ByVersion, since
from kubelet_conformance.contract.words import call, done, exited, failed, pod_set, status
from kubelet_conformance.contracts.backoffs import restart_bound
from kubelet_conformance.contracts.fresh import fresh_pod
from kubelet_conformance.contracts.instances import (
    HELD_UP,
    asked,
    awake,
    completed,
    creation_of,
    failing_start,
    following,
    in_place,
    made_in,
    recorded,
    sidecars,
    start_of,
    to_watch,
)
from kubelet_conformance.contracts.kills import stopped_for_itself
from kubelet_conformance.contracts.left_over import is_misled
from kubelet_conformance.contracts.situations import TERMINATION_ASKED, at_its_end, stop_asked
from kubelet_conformance.contracts.timing import REACTION
from kubelet_conformance.trace.container_specs import ContainerSpec
from kubelet_conformance.trace.kubelet_view import informed_by

_ON = since("1.29")
_GATE = "SidecarContainers"
_ON_BY_DEFAULT = (1, 29)
_FORBIDDEN = "InitContainerRestartPolicyForbidden"


def _gate_is_off(m: Moment) -> bool:
    usual = m.kubernetes is not None and m.kubernetes >= _ON_BY_DEFAULT
    return not m.header.feature_gates.get(_GATE, usual)


@contract("SIDECAR-01", on=pod_set(), needs=(CRI, PODS, STATUS), versions=since("1.28"))
def refused_without_the_gate(m: Moment, manifest: Manifest) -> Findings:
    """With the gate SidecarContainers off a pod with sidecars is refused, and nothing of it is started.

    The reason is InitContainerRestartPolicyForbidden.
    """
    pod = fresh_pod(m)
    if pod is None or pod.source != "api" or not _gate_is_off(m) or not awake(m):
        return None
    if not manifest.spec.sidecars:
        return None

    def ends(now: Moment) -> bool:
        return pod.is_about(now) and now.status is not None and now.status.terminal

    def refused(now: Moment) -> bool:
        return ends(now) and now.status is not None and now.status.reason == _FORBIDDEN

    return answered(
        by=status().where(refused),
        within=REACTION,
        unless=TERMINATION_ASKED.either(status().where(ends)),
        not_before=call("RunPodSandbox").where(pod.asked),
        whole_node=True,
        text=f"pod {pod.name}, which has sidecars, is refused",
    )


@contract(
    "SIDECAR-08",
    on=failed("CreateContainer", "StartContainer", "PullImage"),
    needs=(CRI, PODS),
    versions=_ON,
)
def failing_one_holds_up_no_other(m: Moment, pod: Pod) -> Iterator[Finding]:
    """A sidecar that cannot be started does not keep the sidecars after it from being run again."""
    name = failing_start(m)
    if pod.kind_of(name) != "sidecar" or not to_watch(m) or at_its_end(pod):
        return
    for spec in following(pod, name):
        due = recorded(pod, spec.name)
        if spec.is_sidecar and due is not None and _is_due(due):
            yield answered(
                by=start_of(due.name),
                within=restart_bound(m, due.name),
                unless=HELD_UP.either(exited()),
                text=f"sidecar {due.name} is made again though {name} cannot be started",
            )


def _is_due(container: Container) -> bool:
    """The kubelet knows that it ended by itself, and its sandbox is there."""
    told = container.record is not None and container.record.state == "CONTAINER_EXITED"
    own_end = container.exit is not None and not container.exit.commanded
    return container.state == "exited" and told and own_end and in_place(container)


@contract("SIDECAR-26", on=call("CreateContainer"), needs=(CRI, PODS), versions=_ON)
def ended_apps_prove_nothing(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """App containers that ended in an old sandbox do not show that a pod with sidecars is initialized.

    In the new sandbox its init containers run, and its sidecars start, before the first app container.
    """
    if pod.spec is None or not sandbox.born or not sandbox.attempt:
        return None
    if pod.kind_of(asked(m).metadata.name) != "app" or not any(sidecars(pod)):
        return None
    apps = list(pod.of_kind("app"))
    if not apps or any(one.sandbox is sandbox or one.state != "exited" for one in apps):
        return None
    if is_misled(pod, sandbox):
        return None
    for spec in pod.spec.init_containers or ():
        if not _is_through(pod, spec, sandbox):
            return broken(
                f"{asked(m).metadata.name} is made in the new sandbox before {spec.name} is through",
                pod.set_seq,
            )
    return KEPT


def _is_through(pod: Pod, spec: ContainerSpec, sandbox: Sandbox) -> bool:
    own = made_in(pod, spec.name, sandbox)
    if own is None:
        return False
    return own.started_t is not None if spec.is_sidecar else completed(own)


@contract("SIDECAR-24", on=exited(), needs=(CRI, PODS), versions=ByVersion({"1.29..1.36": True}))
def not_restarted_in_termination(m: Moment, pod: Pod, container: Container) -> Findings:
    """A sidecar that ends while its pod is being terminated is not run again."""
    if container.kind != "sidecar" or pod.termination is None:
        return None
    told_t = informed_by(m, pod.termination.t)
    if not any(stop_asked(one, told_t) for one in pod.every_container()):
        return None
    if stopped_for_itself(m, pod, container):
        return None
    return answered(
        by=done("StopPodSandbox"),
        unless=pod_set().where(lambda now: now.pod is not None and not now.pod.wanted),
        not_before=creation_of(container.name),
        text=f"sidecar {container.name} is not made again in a pod that goes",
    )
