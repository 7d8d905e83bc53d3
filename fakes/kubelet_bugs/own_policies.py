"""Bugs of containers that say themselves when they are run again, and how they want to be stopped."""

from __future__ import annotations

from dataclasses import replace

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, Pod, PodCondition, PodStatus
from msgspec import structs

from kubelet_bugs.bug import Bug
from kubelet_reference import conditions, pods
from kubelet_reference.images import EnsuredImage
from kubelet_reference.parts import Parts
from kubelet_reference.phase import pod_phase
from kubelet_reference.pod_actions import ActionRules, Actions
from kubelet_reference.pod_status import StatusDecisions
from kubelet_reference.pods import AnyContainer
from kubelet_reference.records import ContainerRecord
from kubelet_reference.restart_policy import RESTART_ALL
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_input import Situation
from kubelet_reference.versions import Behaviour


class _PodsPolicyOnly(ActionRules):
    """Knows the pod's restart policy only."""

    def should_restart(self, now: Situation, one: Container, record: ContainerRecord | None) -> bool:
        return super().should_restart(_without_rules(now), one, record)


def _without_rules(now: Situation) -> Situation:
    return structs.replace(now, behaviour=replace(now.behaviour, has_restart_rules=False))


class _LastRuleWins(ActionRules):
    """Looks at the last of a container's rules, whether or not it fits."""

    def should_restart(self, now: Situation, one: Container, record: ContainerRecord | None) -> bool:
        if one.restartPolicyRules and record is not None and record.has_exited:
            codes = one.restartPolicyRules[-1].exitCodes
            return codes is not None and record.exit_code in (codes.values or ())
        return super().should_restart(now, one, record)


class _InitsAskThePod(ActionRules):
    """Asks the pod's policy about each init container that failed."""

    def in_same_sandbox(self, now: Situation) -> Actions:
        has_inits = bool(pods.init_containers(now.pod))
        return super().in_same_sandbox(_without_rules(now) if has_inits else now)


def _inits_fail_alone(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """Never lets an init container of its own policy fail its pod."""
    plain = replace(behaviour, has_restart_rules=False) if pods.init_containers(pod) else behaviour
    return pod_phase(pod, status, plain, terminating=terminating)


class _NewSandbox(ActionRules):
    """Begins anew in another sandbox."""

    def in_same_sandbox(self, now: Situation) -> Actions:
        actions = super().in_same_sandbox(now)
        if not actions.restart_all:
            return actions
        first = (*pods.init_containers(now.pod), *pods.containers(now.pod))[0]
        return structs.replace(
            actions,
            restart_all=False,
            kill_pod=True,
            create_sandbox=True,
            sandbox_id="",
            attempt=actions.attempt + 1,
            inits=(first,),
        )


class _TriesInitsAgain(ActionRules):
    """Forgives the init containers of a pod that may begin anew."""

    def in_same_sandbox(self, now: Situation) -> Actions:
        every = (rule for one in pods.containers(now.pod) for rule in one.restartPolicyRules or ())
        if any(rule.action == RESTART_ALL for rule in every):
            spec = structs.replace(pods.spec(now.pod), restartPolicy=pods.ALWAYS)
            now = structs.replace(now, pod=structs.replace(now.pod, spec=spec))
        return super().in_same_sandbox(now)


def _fails_never(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """Waits for the init containers of a pod that may begin anew."""
    phase = pod_phase(pod, status, behaviour, terminating=terminating)
    return pods.PENDING if phase == pods.FAILED and pods.init_containers(pod) else phase


def _says_nothing(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """Does not tell that a pod begins anew."""
    found = conditions.pod_conditions(pod, status, behaviour, sandbox_usable=sandbox_usable)
    return [one for one in found if one.type != conditions.ALL_RESTARTING]


class _AnySignal(ContainerStarter):
    """Leaves the signal to the image."""

    async def _config(
        self, into: PodToStart, container: AnyContainer, image: EnsuredImage
    ) -> cri.ContainerConfig:
        config = await super()._config(into, container, image)
        config.stop_signal = cri.RUNTIME_DEFAULT
        return config


def _deciding(rules: ActionRules) -> Parts:
    return Parts(runtime=RuntimeParts(compute_actions=rules.compute))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-RESTART-19",
        "The restart policy that a container has of its own is not looked at.",
        lambda: _deciding(_PodsPolicyOnly()),
        ("RESTART-19",),
        kubernetes="1.35",
    ),
    Bug(
        "MUT-RESTART-20",
        "Of a container's restart rules the last one decides.",
        lambda: _deciding(_LastRuleWins()),
        ("RESTART-20",),
        kubernetes="1.35",
    ),
    Bug(
        "MUT-RESTART-21",
        "An init container that may fail only once is tried again by the pod's policy.",
        lambda: Parts(
            runtime=RuntimeParts(compute_actions=_InitsAskThePod().compute),
            status=StatusDecisions(pod_phase=_inits_fail_alone),
        ),
        ("RESTART-21",),
        kubernetes="1.35",
    ),
    Bug(
        "MUT-RESTART-22",
        "A pod that restarts as a whole gets another sandbox.",
        lambda: _deciding(_NewSandbox()),
        ("RESTART-22",),
        kubernetes="1.36",
    ),
    Bug(
        "MUT-RESTART-23",
        "A pod with policy Never that began anew goes on trying an init container that fails.",
        lambda: Parts(
            runtime=RuntimeParts(compute_actions=_TriesInitsAgain().compute),
            status=StatusDecisions(pod_phase=_fails_never),
        ),
        ("RESTART-23",),
        kubernetes="1.36",
    ),
    Bug(
        "MUT-COND-10",
        "Nothing tells that a whole pod restarts.",
        lambda: Parts(status=StatusDecisions(pod_conditions=_says_nothing)),
        ("COND-10",),
        kubernetes="1.36",
    ),
    Bug(
        "MUT-TERM-28",
        "The stop signal that a container wants is not passed to the runtime.",
        lambda: Parts(runtime=RuntimeParts(starter=_AnySignal)),
        ("TERM-28",),
        kubernetes="1.33",
    ),
)
