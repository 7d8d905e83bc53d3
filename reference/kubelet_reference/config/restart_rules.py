"""Which containers of a manifest may say themselves when they are started again."""

from __future__ import annotations

from functools import partial

from lightkube.models.core_v1 import ContainerRestartRule, Pod

from kubelet_reference import pods
from kubelet_reference.config.problems import Place
from kubelet_reference.config.rule_words import Rule, containers
from kubelet_reference.restart_policy import RESTART_ALL
from kubelet_reference.versions import Behaviour

_GATE, _GATE_OF_ALL = "ContainerRestartRules", "RestartAllContainersOnContainerExits"
_RULES_MAX, _CODES_MAX = 20, 255


def restart_rules(behaviour: Behaviour) -> Rule:
    """What holds with these feature gates, as for pods of the API server (KEP-5307, KEP-5532)."""
    return partial(own_rules, behaviour=behaviour) if behaviour.has_restart_rules else sidecars_only


def sidecars_only(pod: Pod, place: Place) -> None:
    """Only an init container has a restart policy of its own, and only Always (SIDECAR-01)."""
    for one, where in containers(pod, place):
        if one.restartPolicyRules is not None:
            where.field("restartPolicyRules").wrong(f"only allowed with the feature gate {_GATE}")
    for i, one in enumerate(pods.containers(pod)):
        if one.restartPolicy is not None:
            place.field("containers").item(i).field("restartPolicy").wrong("only allowed in init containers")
    for i, one in enumerate(pods.init_containers(pod)):
        if one.restartPolicy not in {None, pods.ALWAYS}:
            place.field("initContainers").item(i).field("restartPolicy").expected("Always", one.restartPolicy)


def own_rules(pod: Pod, place: Place, behaviour: Behaviour) -> None:
    """Any container may have a policy, and beside it rules that look at its exit code (RESTART-19, -20)."""
    for one, where in containers(pod, place):
        rules, at = one.restartPolicyRules or (), where.field("restartPolicyRules")
        if rules and one.restartPolicy is None:
            where.field("restartPolicy").wrong("missing beside restartPolicyRules")
        if len(rules) > _RULES_MAX:
            at.wrong(f"expected at most {_RULES_MAX} rules, got {len(rules)}")
        for i, rule in enumerate(rules):
            _rule(rule, at.item(i), behaviour)


def _rule(rule: ContainerRestartRule, place: Place, behaviour: Behaviour) -> None:
    if rule.action == RESTART_ALL and not behaviour.restarts_all_containers:
        place.field("action").wrong(f"{RESTART_ALL} is only allowed with the feature gate {_GATE_OF_ALL}")
    if rule.exitCodes is None:
        place.field("exitCodes").wrong("missing")
        return
    codes = rule.exitCodes.values or ()
    if not 0 < len(codes) <= _CODES_MAX:
        place.field("exitCodes").field("values").wrong(f"expected 1 to {_CODES_MAX} codes, got {len(codes)}")
