"""What must hold between the fields of a pod; what each field may hold by itself is in `values`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_reference import pods
from kubelet_reference.config.container_rules import CONTAINER_RULES
from kubelet_reference.config.pod_rules import POD_RULES, metadata
from kubelet_reference.config.problems import Place, Problem
from kubelet_reference.config.restart_rules import restart_rules
from kubelet_reference.config.volume_rules import VOLUME_RULES

if TYPE_CHECKING:
    from lightkube.models.core_v1 import Pod

    from kubelet_reference.config.rule_words import Rule
    from kubelet_reference.versions import Behaviour

__all__ = ("RULES", "validate")

RULES: tuple[Rule, ...] = (*POD_RULES, *CONTAINER_RULES, *VOLUME_RULES)


def validate(pod: Pod, behaviour: Behaviour) -> tuple[Problem, ...]:
    """Everything that is wrong with a pod from a manifest that has its defaults."""
    problems: list[Problem] = []
    place = Place(problems)
    if not pods.name(pod):
        place.field("metadata").field("name").wrong("missing")
    metadata(pod, place.field("metadata"))
    for rule in (*RULES, restart_rules(behaviour)):
        rule(pod, place.field("spec"))
    return tuple(problems)
