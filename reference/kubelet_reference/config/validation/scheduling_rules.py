"""What a pod asks of its node, which the kubelet looks at when it admits the pod."""

from collections.abc import Mapping
from typing import cast

from lightkube.models.core_v1 import NodeSelectorRequirement, NodeSelectorTerm, Pod, Toleration

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.checks import DNS_SUBDOMAIN
from kubelet_reference.config.validation.rules import Rule, is_label_value, label_key, labels, value

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NAME_FIELD = "metadata.name"
_VALUES_WANTED: Mapping[str, tuple[int, int | None]] = {
    "In": (1, None),
    "NotIn": (1, None),
    "Exists": (0, 0),
    "DoesNotExist": (0, 0),
    "Gt": (1, 1),
    "Lt": (1, 1),
}
"""How many values an operator takes, at least and at most."""


def no_gates(pod: Pod, place: FieldPath) -> None:
    """Gates hold a pod back from a node, and a pod from a manifest has one from the start."""
    if pods.spec(pod).schedulingGates:
        place.field("schedulingGates").wrong("not allowed in a manifest")


def node_selector(pod: Pod, place: FieldPath) -> None:
    """A node is selected by labels."""
    found = cast("Mapping[str, str]", pods.spec(pod).nodeSelector or {})  # pyright: ignore[reportUnknownMemberType]
    labels(found, place.field("nodeSelector"))


def tolerations(pod: Pod, place: FieldPath) -> None:
    """Each toleration makes sense by itself."""
    for i, one in enumerate(pods.spec(pod).tolerations or ()):
        _toleration(one, place.field("tolerations").item(i))


def _toleration(one: Toleration, place: FieldPath) -> None:
    """One without a key tolerates all; one that only asks for a key has no value."""
    if one.key:
        label_key(one.key, place.field("key"))
    elif one.operator != "Exists":
        place.field("operator").expected("Exists where there is no key", one.operator)
    if one.operator == "Exists" and one.value:
        place.field("value").wrong("not allowed with the operator Exists")
    if one.operator != "Exists" and not is_label_value(one.value or ""):
        value(one.value or "", place.field("value"))
    if one.tolerationSeconds is not None and one.effect != "NoExecute":
        place.field("effect").expected("NoExecute with tolerationSeconds", one.effect)


def node_affinity(pod: Pod, place: FieldPath) -> None:
    """A node is chosen by its labels and name; something is required where requirements are."""
    affinity = pods.spec(pod).affinity
    found = affinity.nodeAffinity if affinity else None
    required = found.requiredDuringSchedulingIgnoredDuringExecution if found else None
    if required is None:
        return
    at = place.field("affinity").field("nodeAffinity").field(_REQUIRED).field("nodeSelectorTerms")
    if not required.nodeSelectorTerms:
        at.wrong("expected at least one term")
    for i, term in enumerate(required.nodeSelectorTerms):
        _node_term(term, at.item(i))


def _node_term(term: NodeSelectorTerm, place: FieldPath) -> None:
    for i, one in enumerate(term.matchExpressions or ()):
        at = place.field("matchExpressions").item(i)
        label_key(one.key, at.field("key"))
        _requirement_values(one, at.field("values"))
        for j, text in enumerate(one.values or ()):
            value(text, at.field("values").item(j))
    for i, one in enumerate(term.matchFields or ()):
        at = place.field("matchFields").item(i)
        if one.key != _NAME_FIELD:
            at.field("key").expected(_NAME_FIELD, one.key)
        if one.operator not in {"In", "NotIn"}:
            at.field("operator").expected("In or NotIn", one.operator)
        if len(one.values or ()) != 1:
            at.field("values").wrong(f"expected one value, got {len(one.values or ())}")
        for j, text in enumerate(one.values or ()):
            if not DNS_SUBDOMAIN.accepts(text):
                at.field("values").item(j).expected("the name of a node", text)


def _requirement_values(one: NodeSelectorRequirement, place: FieldPath) -> None:
    """An operator has as many values as it takes."""
    least, most = _VALUES_WANTED[one.operator]
    got = len(one.values or ())
    if got < least or (most is not None and got > most):
        wanted = {0: "no value", 1: "one value"}[least] if most is not None else "at least one value"
        place.wrong(f"expected {wanted} with the operator {one.operator}, got {got}")


SCHEDULING_RULES: tuple[Rule, ...] = (no_gates, node_selector, tolerations, node_affinity)
