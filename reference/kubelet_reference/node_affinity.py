"""Whether a node has the labels that a pod selects: nodeSelector and required node affinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from lightkube.models.core_v1 import Node, NodeSelectorRequirement, NodeSelectorTerm, Pod

from kubelet_reference import pods


def fits_node(pod: Pod, node: Node) -> bool:
    """Whether the node has every label of the selector and matches one term of the required affinity."""
    labels = _labels(node)
    selector = cast("Mapping[str, str]", pods.spec(pod).nodeSelector or {})  # pyright: ignore[reportUnknownMemberType]
    if any(labels.get(name) != value for name, value in selector.items()):
        return False
    affinity = pods.spec(pod).affinity
    required = (
        affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
        if affinity and affinity.nodeAffinity
        else None
    )
    return required is None or any(_matches_term(term, node) for term in required.nodeSelectorTerms)


def _labels(node: Node) -> Mapping[str, str]:
    found = node.metadata.labels if node.metadata else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return cast("Mapping[str, str]", found or {})


def _matches_term(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether all requirements of a term hold; a term without any matches nothing."""
    fields = {"metadata.name": (node.metadata and node.metadata.name) or ""}
    requirements = [(one, _labels(node)) for one in term.matchExpressions or ()]
    requirements += [(one, fields) for one in term.matchFields or ()]
    return bool(requirements) and all(_matches(one, values) for one, values in requirements)


def _matches(requirement: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    value, wanted = values.get(requirement.key), requirement.values or []
    match requirement.operator:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compare(requirement.operator, value, wanted)
        case _:
            return False


def _compare(operator: str, value: str | None, wanted: list[str]) -> bool:
    """Whether the label is a whole number above or below the one that is wanted."""
    try:
        mine, other = int(value or ""), int(wanted[0] if len(wanted) == 1 else "")
    except ValueError:
        return False
    return mine > other if operator == "Gt" else mine < other
