"""What labels are, and what selects them: both stand in many places of a pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from lightkube.models.core_v1 import NodeSelectorRequirement
from lightkube.models.meta_v1 import LabelSelector, LabelSelectorRequirement

from kubelet_reference.config.problems import Place
from kubelet_reference.config.rule_words import is_label_value, is_qualified_name

_VALUES_WANTED: Mapping[str, tuple[int, int | None]] = {
    "In": (1, None),
    "NotIn": (1, None),
    "Exists": (0, 0),
    "DoesNotExist": (0, 0),
    "Gt": (1, 1),
    "Lt": (1, 1),
}
"""How many values an operator takes, at least and at most."""


def labels(found: Mapping[str, str], place: Place) -> None:
    """The keys are qualified names and the values are what a label may have."""
    key_names(found, place)
    for name, text in found.items():
        value(text, place.field(name))


def key_names(found: Mapping[str, str], place: Place, *, any_case: bool = False) -> None:
    """The keys are qualified names."""
    for name in found:
        if not is_qualified_name(name.lower() if any_case else name):
            place.field(name).wrong("expected a qualified name as key")


def label_key(text: str, place: Place) -> None:
    """The key of a label is a qualified name."""
    if not is_qualified_name(text):
        place.expected("a qualified name", text)


def value(text: str, place: Place) -> None:
    """The value of a label is short and plain."""
    if not is_label_value(text):
        place.expected("the value of a label, at most 63 characters", text)


def selector(found: LabelSelector | None, place: Place) -> None:
    """Selected are labels that can be, by operators that have the values they need."""
    if found is None:
        return
    labels(_match_labels(found), place.field("matchLabels"))
    for i, one in enumerate(found.matchExpressions or ()):
        at = place.field("matchExpressions").item(i)
        label_key(one.key, at.field("key"))
        requirement_values(one, at.field("values"))
        for j, text in enumerate(one.values or ()):
            value(text, at.field("values").item(j))


def selected_keys(found: LabelSelector | None) -> frozenset[str]:
    """The keys that the selector asks about."""
    if found is None:
        return frozenset()
    return frozenset({*_match_labels(found), *(one.key for one in found.matchExpressions or ())})


def requirement_values(one: LabelSelectorRequirement | NodeSelectorRequirement, place: Place) -> None:
    """An operator has as many values as it takes."""
    least, most = _VALUES_WANTED[one.operator]
    got = len(one.values or ())
    if got < least or (most is not None and got > most):
        wanted = {0: "no value", 1: "one value"}[least] if most is not None else "at least one value"
        place.wrong(f"expected {wanted} with the operator {one.operator}, got {got}")


def _match_labels(found: LabelSelector) -> Mapping[str, str]:
    return cast("Mapping[str, str]", found.matchLabels or {})  # pyright: ignore[reportUnknownMemberType]
