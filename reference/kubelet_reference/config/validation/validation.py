"""What must hold between the fields of a pod; what each field may hold by itself is in `values`."""

from lightkube.models.core_v1 import Pod

from kubelet_reference.config.field_errors import FieldError, FieldPath
from kubelet_reference.config.validation.container_rules import CONTAINER_RULES, mounts, restart_rules
from kubelet_reference.config.validation.environment_rules import environment
from kubelet_reference.config.validation.metadata_rules import METADATA_RULES
from kubelet_reference.config.validation.pod_rules import POD_RULES
from kubelet_reference.config.validation.resource_rules import RESOURCE_RULES
from kubelet_reference.config.validation.rules import Rule
from kubelet_reference.config.validation.security_rules import profiles, whole_proc
from kubelet_reference.config.validation.version_rules import version_rules
from kubelet_reference.config.validation.volume_rules import VOLUME_RULES
from kubelet_reference.util.versions import Behaviour

RULES: tuple[Rule, ...] = (
    *POD_RULES,
    profiles,
    whole_proc,
    *CONTAINER_RULES,
    environment,
    mounts,
    *RESOURCE_RULES,
    *VOLUME_RULES,
)
"""The rules for which the place is the spec's."""


def validate(pod: Pod, behaviour: Behaviour) -> tuple[FieldError, ...]:
    """Everything that is wrong with a pod from a manifest that has its defaults."""
    errors: list[FieldError] = []
    place = FieldPath(errors)
    for rule in METADATA_RULES:
        rule(pod, place.field("metadata"))
    for rule in (*RULES, restart_rules(behaviour), *version_rules(behaviour)):
        rule(pod, place.field("spec"))
    return tuple(errors)
