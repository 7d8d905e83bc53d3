"""Helpers for rules between fields, and the rules for labels."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from lightkube.models.core_v1 import Container, Pod, VolumeProjection

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


def names_given(of: object, kinds: tuple[str, ...], place: FieldPath) -> None:
    """Each of these references that is given says the name of what it refers to."""
    for kind in kinds:
        reference = getattr(of, kind)
        if reference is not None and not reference.name:
            place.field(kind).field("name").wrong("missing")


def none_of(part: object, names: tuple[str, ...], place: FieldPath) -> None:
    """None of these fields is given: a pod from a manifest cannot have them."""
    for name in names:
        if getattr(part, name, None):
            place.field(name).wrong("not allowed in a manifest")


def projections(pod: Pod, place: FieldPath) -> Iterator[tuple[VolumeProjection, FieldPath]]:
    """The sources of projected volumes, each with its place."""
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        at = place.field("volumes").item(i).field("projected").field("sources")
        for j, source in enumerate((volume.projected and volume.projected.sources) or ()):
            yield source, at.item(j)


def is_qualified_name(text: str) -> bool:
    """A name of up to 63 letters, digits, dashes, dots and underscores; a DNS name and "/" may go before."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= _PREFIX_CHARS_MAX and _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= _NAME_CHARS_MAX and _NAME.fullmatch(name) is not None


def labels(found: Mapping[str, str], place: FieldPath) -> None:
    """The keys are qualified names and the values are what a label may have."""
    key_names(found, place)
    for name, text in found.items():
        if text and not (len(text) <= _NAME_CHARS_MAX and _NAME.fullmatch(text)):
            place.field(name).expected("the value of a label, at most 63 characters", text)


def key_names(found: Mapping[str, str], place: FieldPath, *, any_case: bool = False) -> None:
    """The keys are qualified names."""
    for name in found:
        if not is_qualified_name(name.lower() if any_case else name):
            place.field(name).wrong("expected a qualified name as key")
