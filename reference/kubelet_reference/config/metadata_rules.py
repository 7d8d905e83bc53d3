"""What must hold in a pod's metadata."""

from __future__ import annotations

from collections.abc import Mapping

from lightkube.models.core_v1 import Pod

from kubelet_reference import pods
from kubelet_reference.config.label_rules import key_names, labels
from kubelet_reference.config.problems import Place
from kubelet_reference.config.rule_words import Rule, is_qualified_name

_ANNOTATION_BYTES_MAX = 256 << 10
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_STANDARD_FINALIZERS = frozenset({"kubernetes", _ORPHAN, _FOREGROUND})
_NO_OWNER = ("v1", "Event")


def named(pod: Pod, place: Place) -> None:
    """A pod has a name."""
    if not pods.name(pod):
        place.field("name").wrong("missing")


def labelled(pod: Pod, place: Place) -> None:
    """Labels are labels, and annotations have keys like theirs in any case."""
    labels(pods.labels(pod), place.field("labels"))
    annotation_keys(pods.annotations(pod), place.field("annotations"))


def annotation_keys(found: Mapping[str, str], place: Place) -> None:
    """Annotations have qualified names, and 256 KiB at most."""
    key_names(found, place, any_case=True)
    if sum(len(name.encode()) + len(value.encode()) for name, value in found.items()) > _ANNOTATION_BYTES_MAX:
        place.wrong(f"expected at most {_ANNOTATION_BYTES_MAX} bytes in all")


def owners(pod: Pod, place: Place) -> None:
    """One owner at most controls the pod, and none is an event."""
    controllers = 0
    for i, owner in enumerate(pods.metadata(pod).ownerReferences or ()):
        at = place.field("ownerReferences").item(i)
        controllers += bool(owner.controller)
        if owner.controller and controllers > 1:
            at.field("controller").wrong("another owner is the controller")
        if (owner.apiVersion, owner.kind) == _NO_OWNER:
            at.field("kind").wrong("an event cannot be an owner")


def finalizers(pod: Pod, place: Place) -> None:
    """Finalizers are qualified names; those without a domain are Kubernetes' own."""
    found = pods.metadata(pod).finalizers or ()
    at = place.field("finalizers")
    for i, one in enumerate(found):
        if not is_qualified_name(one) or ("/" not in one and one not in _STANDARD_FINALIZERS):
            at.item(i).expected("a qualified name with a domain", one)
    if {_ORPHAN, _FOREGROUND} <= set(found):
        at.wrong(f"{_ORPHAN} and {_FOREGROUND} exclude each other")


def managers(pod: Pod, place: Place) -> None:
    """Who manages fields says how."""
    for i, one in enumerate(pods.metadata(pod).managedFields or ()):
        if one.operation is None:
            place.field("managedFields").item(i).field("operation").wrong("missing")


METADATA_RULES: tuple[Rule, ...] = (named, labelled, owners, finalizers, managers)
"""The rules for which the place is the metadata's."""
