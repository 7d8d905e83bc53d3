"""What a pod asks of nodes: the kubelet uses little of it, but refuses a pod with invalid fields."""

from collections.abc import Mapping
from typing import cast

from lightkube.models.core_v1 import (
    NodeAffinity,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Toleration,
    TopologySpreadConstraint,
)

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.checks import DNS_SUBDOMAIN
from kubelet_reference.config.validation.rules import (
    Rule,
    is_label_value,
    label_key,
    labels,
    requirement_values,
    selected_keys,
    selector,
    unique,
    value,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NAME_FIELD = "metadata.name"


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
        toleration(one, place.field("tolerations").item(i))


def toleration(one: Toleration, place: FieldPath) -> None:
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


def spread(pod: Pod, place: FieldPath) -> None:
    """A topology is named once for each answer to what cannot be satisfied."""
    found = pods.spec(pod).topologySpreadConstraints or ()
    at = place.field("topologySpreadConstraints")
    unique((at.item(i), f"{one.topologyKey} {one.whenUnsatisfiable}") for i, one in enumerate(found))
    for i, one in enumerate(found):
        _constraint(one, at.item(i))


def _constraint(one: TopologySpreadConstraint, place: FieldPath) -> None:
    if one.minDomains is not None and one.whenUnsatisfiable != "DoNotSchedule":
        place.field("minDomains").wrong("only allowed with whenUnsatisfiable DoNotSchedule")
    selector(one.labelSelector, place.field("labelSelector"))
    at = place.field("matchLabelKeys")
    if one.matchLabelKeys and one.labelSelector is None:
        at.wrong("only allowed with labelSelector")
    for i, text in enumerate(one.matchLabelKeys or ()):
        label_key(text, at.item(i))
        if text in selected_keys(one.labelSelector):
            at.item(i).wrong("labelSelector has this key too")


def affinity(pod: Pod, place: FieldPath) -> None:
    """Nodes are chosen by their labels and names, and by the pods that they have."""
    found = pods.spec(pod).affinity
    if found is None:
        return
    at = place.field("affinity")
    if found.nodeAffinity is not None:
        _node_affinity(found.nodeAffinity, at.field("nodeAffinity"))
    for name, wanted in (("podAffinity", found.podAffinity), ("podAntiAffinity", found.podAntiAffinity)):
        if wanted is not None:
            _pod_affinity(wanted, at.field(name))


def _node_affinity(found: NodeAffinity, place: FieldPath) -> None:
    """Something is required where requirements are; what is only preferred may have values no label has."""
    required = found.requiredDuringSchedulingIgnoredDuringExecution
    if required is not None:
        at = place.field(_REQUIRED).field("nodeSelectorTerms")
        if not required.nodeSelectorTerms:
            at.wrong("expected at least one term")
        for i, term in enumerate(required.nodeSelectorTerms):
            _node_term(term, at.item(i))
            for j, one in enumerate(term.matchExpressions or ()):
                for k, text in enumerate(one.values or ()):
                    value(text, at.item(i).field("matchExpressions").item(j).field("values").item(k))
    for i, preferred in enumerate(found.preferredDuringSchedulingIgnoredDuringExecution or ()):
        _node_term(preferred.preference, place.field(_PREFERRED).item(i).field("preference"))


def _node_term(term: NodeSelectorTerm, place: FieldPath) -> None:
    for i, one in enumerate(term.matchExpressions or ()):
        at = place.field("matchExpressions").item(i)
        label_key(one.key, at.field("key"))
        requirement_values(one, at.field("values"))
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


def _pod_affinity(found: PodAffinity | PodAntiAffinity, place: FieldPath) -> None:
    for i, term in enumerate(found.requiredDuringSchedulingIgnoredDuringExecution or ()):
        _pod_term(term, place.field(_REQUIRED).item(i))
    for i, preferred in enumerate(found.preferredDuringSchedulingIgnoredDuringExecution or ()):
        _pod_term(preferred.podAffinityTerm, place.field(_PREFERRED).item(i).field("podAffinityTerm"))


def _pod_term(term: PodAffinityTerm, place: FieldPath) -> None:
    label_key(term.topologyKey, place.field("topologyKey"))
    selector(term.labelSelector, place.field("labelSelector"))
    selector(term.namespaceSelector, place.field("namespaceSelector"))
    matched, unmatched = term.matchLabelKeys or (), term.mismatchLabelKeys or ()
    for name, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", unmatched)):
        if keys and term.labelSelector is None:
            place.field(name).wrong("only allowed with labelSelector")
        for i, text in enumerate(keys):
            label_key(text, place.field(name).item(i))
    for i, text in enumerate(matched):
        if text in unmatched:
            place.field("matchLabelKeys").item(i).wrong("mismatchLabelKeys has this key too")


SCHEDULING_RULES: tuple[Rule, ...] = (no_gates, node_selector, tolerations, spread, affinity)
