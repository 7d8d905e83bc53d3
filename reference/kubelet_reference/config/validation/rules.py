"""Helpers for rules between fields, and the rules for labels and selectors."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias, cast

from lightkube.models.core_v1 import Container, NodeSelectorRequirement, Pod
from lightkube.models.meta_v1 import LabelSelector, LabelSelectorRequirement

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath, shown

Rule: TypeAlias = Callable[["Pod", "FieldPath"], None]
"""Looks at a pod that has its defaults, and notes at the place of its spec or metadata what is wrong."""

_NAME = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_CHARS_MAX, _PREFIX_CHARS_MAX = 63, 253


def containers(pod: Pod, place: FieldPath) -> Iterator[tuple[Container, FieldPath]]:
    """The init and app containers, each with its place."""
    for i, one in enumerate(pods.init_containers(pod)):
        yield one, place.field("initContainers").item(i)
    for i, one in enumerate(pods.containers(pod)):
        yield one, place.field("containers").item(i)


def unique(values: Iterable[tuple[FieldPath, str]]) -> None:
    """Each value is there once."""
    seen: dict[str, FieldPath] = {}
    for place, value in values:
        first = seen.setdefault(value, place)
        if first is not place:
            place.wrong(f"{shown(value)} is taken by {first.path}")


def exactly_one(of: object, names: tuple[str, ...], place: FieldPath) -> None:
    """One of these fields is given."""
    given = [name for name in names if getattr(of, name, None) is not None]
    if len(given) != 1:
        place.wrong(f"expected one of {', '.join(names)}, got {' and '.join(given) or 'none'}")


def is_qualified_name(text: str) -> bool:
    """A name of up to 63 letters, digits, dashes, dots and underscores; a DNS name and "/" may go before."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= _PREFIX_CHARS_MAX and _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= _NAME_CHARS_MAX and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """The value of a label: a name of up to 63 characters, or nothing."""
    return not text or (len(text) <= _NAME_CHARS_MAX and _NAME.fullmatch(text) is not None)


_VALUES_WANTED: Mapping[str, tuple[int, int | None]] = {
    "In": (1, None),
    "NotIn": (1, None),
    "Exists": (0, 0),
    "DoesNotExist": (0, 0),
    "Gt": (1, 1),
    "Lt": (1, 1),
}
"""How many values an operator takes, at least and at most."""


def labels(found: Mapping[str, str], place: FieldPath) -> None:
    """The keys are qualified names and the values are what a label may have."""
    key_names(found, place)
    for name, text in found.items():
        value(text, place.field(name))


def key_names(found: Mapping[str, str], place: FieldPath, *, any_case: bool = False) -> None:
    """The keys are qualified names."""
    for name in found:
        if not is_qualified_name(name.lower() if any_case else name):
            place.field(name).wrong("expected a qualified name as key")


def label_key(text: str, place: FieldPath) -> None:
    """The key of a label is a qualified name."""
    if not is_qualified_name(text):
        place.expected("a qualified name", text)


def value(text: str, place: FieldPath) -> None:
    """The value of a label is short and plain."""
    if not is_label_value(text):
        place.expected("the value of a label, at most 63 characters", text)


def selector(found: LabelSelector | None, place: FieldPath) -> None:
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


def requirement_values(one: LabelSelectorRequirement | NodeSelectorRequirement, place: FieldPath) -> None:
    """An operator has as many values as it takes."""
    least, most = _VALUES_WANTED[one.operator]
    got = len(one.values or ())
    if got < least or (most is not None and got > most):
        wanted = {0: "no value", 1: "one value"}[least] if most is not None else "at least one value"
        place.wrong(f"expected {wanted} with the operator {one.operator}, got {got}")


def _match_labels(found: LabelSelector) -> Mapping[str, str]:
    return cast("Mapping[str, str]", found.matchLabels or {})  # pyright: ignore[reportUnknownMemberType]
