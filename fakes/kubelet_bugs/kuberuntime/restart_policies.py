"""Bugs of containers that say themselves when they are run again, and how they want to be stopped."""

from dataclasses import replace

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, Pod, PodCondition, PodStatus
from msgspec import structs

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord
from kubelet_reference.api.restart_policy import RESTART_ALL
from kubelet_reference.images.image_manager import EnsuredImage
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules, PodActions
from kubelet_reference.kuberuntime.actions.sync_input import SyncInput
from kubelet_reference.kuberuntime.container.start_container import ContainerStarter, StartContext
from kubelet_reference.status import conditions
from kubelet_reference.status.phase import pod_phase
from kubelet_reference.util.versions import Behaviour


@bug("MUT-RESTART-19", breaks="RESTART-19", kubernetes="1.35")
class PodsPolicyOnly(ActionRules):
    """The restart policy that a container has of its own is not looked at."""

    def should_restart(self, now: SyncInput, one: Container, record: ContainerRecord | None) -> bool:
        return super().should_restart(_without_rules(now), one, record)


def _without_rules(now: SyncInput) -> SyncInput:
    return structs.replace(now, behaviour=replace(now.behaviour, has_restart_rules=False))


@bug("MUT-RESTART-20", breaks="RESTART-20", kubernetes="1.35")
class LastRuleWins(ActionRules):
    """Of a container's restart rules the last one decides."""

    def should_restart(self, now: SyncInput, one: Container, record: ContainerRecord | None) -> bool:
        if one.restartPolicyRules and record is not None and record.has_exited:
            codes = one.restartPolicyRules[-1].exitCodes
            return codes is not None and record.exit_code in (codes.values or ())
        return super().should_restart(now, one, record)


class _InitsAskThePod(ActionRules):
    """Asks the pod's policy about each init container that failed."""

    def in_same_sandbox(self, now: SyncInput) -> PodActions:
        has_inits = bool(pods.init_containers(now.pod))
        return super().in_same_sandbox(_without_rules(now) if has_inits else now)


def _inits_fail_alone(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """Never lets an init container of its own policy fail its pod."""
    plain = replace(behaviour, has_restart_rules=False) if pods.init_containers(pod) else behaviour
    return pod_phase(pod, status, plain, terminating=terminating)


@bug("MUT-RESTART-22", breaks="RESTART-22", kubernetes="1.36")
class NewSandbox(ActionRules):
    """A pod that restarts as a whole gets another sandbox."""

    def in_same_sandbox(self, now: SyncInput) -> PodActions:
        actions = super().in_same_sandbox(now)
        if not actions.to_reset:
            return actions
        first = (*pods.init_containers(now.pod), *pods.containers(now.pod))[0]
        return structs.replace(
            actions,
            to_reset=(),
            kill_pod=True,
            create_sandbox=True,
            sandbox_id="",
            attempt=actions.attempt + 1,
            inits=(first,),
        )


@bug("MUT-RESTART-22-B", breaks="RESTART-22", kubernetes="1.36")
class ForgetsTheRestart(ActionRules):
    """The container whose end restarts its pod is removed first: nothing else says that the pod restarts."""

    def all_instances(self, now: SyncInput) -> tuple[ContainerRecord, ...]:
        return super().all_instances(now)[::-1]


class _TriesInitsAgain(ActionRules):
    """Forgives the init containers of a pod that may begin anew."""

    def in_same_sandbox(self, now: SyncInput) -> PodActions:
        every = (rule for one in pods.containers(now.pod) for rule in one.restartPolicyRules or ())
        if any(rule.action == RESTART_ALL for rule in every):
            spec = structs.replace(pods.spec(now.pod), restartPolicy=pods.ALWAYS)
            now = structs.replace(now, pod=structs.replace(now.pod, spec=spec))
        return super().in_same_sandbox(now)


def _fails_never(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """Waits for the init containers of a pod that may begin anew."""
    phase = pod_phase(pod, status, behaviour, terminating=terminating)
    return pods.PENDING if phase == pods.FAILED and pods.init_containers(pod) else phase


@bug("MUT-COND-10", breaks="COND-10", part="pod_conditions", kubernetes="1.36")
def says_nothing(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """The restart of a whole pod is not reported."""
    found = conditions.pod_conditions(pod, status, behaviour, sandbox_usable=sandbox_usable)
    return [one for one in found if one.type != conditions.ALL_RESTARTING]


@bug("MUT-TERM-28", breaks="TERM-28", kubernetes="1.33")
class AnySignal(ContainerStarter):
    """The stop signal that a container wants is not passed to the runtime."""

    async def _config(
        self, context: StartContext, container: AnyContainer, image: EnsuredImage
    ) -> cri.ContainerConfig:
        config = await super()._config(context, container, image)
        config.stop_signal = cri.RUNTIME_DEFAULT
        return config


@bug("MUT-RESTART-21", breaks="RESTART-21", kubernetes="1.35")
def inits_ask_the_pod() -> WrongParts:
    """An init container that may fail only once is tried again by the pod's policy."""
    return parts_with(_InitsAskThePod, pod_phase=_inits_fail_alone)


@bug("MUT-RESTART-23", breaks="RESTART-23", kubernetes="1.36")
def tries_inits_again() -> WrongParts:
    """A pod with policy Never that began anew goes on trying an init container that fails."""
    return parts_with(_TriesInitsAgain, pod_phase=_fails_never)
