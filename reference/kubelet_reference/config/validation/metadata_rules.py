"""What must hold in a pod's metadata, its annotations among it."""

import json
import re
from collections.abc import Mapping
from typing import cast

from lightkube.models.core_v1 import AppArmorProfile, Pod, SeccompProfile, Toleration
from msgspec import convert

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.checks import BELOW
from kubelet_reference.config.validation.fields import read_object
from kubelet_reference.config.validation.rules import Rule, containers, is_qualified_name, key_names, labels
from kubelet_reference.config.validation.scheduling_rules import toleration

_ANNOTATION_BYTES_MAX = 256 << 10
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_STANDARD_FINALIZERS = frozenset({"kubernetes", _ORPHAN, _FOREGROUND})
_NO_OWNER = ("v1", "Event")


def named(pod: Pod, place: FieldPath) -> None:
    """A pod has a name."""
    if not pods.name(pod):
        place.field("name").wrong("missing")


def labelled(pod: Pod, place: FieldPath) -> None:
    """Labels are labels, and annotations have keys like theirs in any case."""
    labels(pods.labels(pod), place.field("labels"))
    annotation_keys(pods.annotations(pod), place.field("annotations"))


def annotation_keys(found: Mapping[str, str], place: FieldPath) -> None:
    """Annotations have qualified names, and 256 KiB at most."""
    key_names(found, place, any_case=True)
    if sum(len(name.encode()) + len(value.encode()) for name, value in found.items()) > _ANNOTATION_BYTES_MAX:
        place.wrong(f"expected at most {_ANNOTATION_BYTES_MAX} bytes in all")


def owners(pod: Pod, place: FieldPath) -> None:
    """One owner at most controls the pod, and none is an event."""
    controllers = 0
    for i, owner in enumerate(pods.metadata(pod).ownerReferences or ()):
        at = place.field("ownerReferences").item(i)
        controllers += bool(owner.controller)
        if owner.controller and controllers > 1:
            at.field("controller").wrong("another owner is the controller")
        if (owner.apiVersion, owner.kind) == _NO_OWNER:
            at.field("kind").wrong("an event cannot be an owner")


def finalizers(pod: Pod, place: FieldPath) -> None:
    """Finalizers are qualified names; those without a domain are Kubernetes' own."""
    found = pods.metadata(pod).finalizers or ()
    at = place.field("finalizers")
    for i, one in enumerate(found):
        if not is_qualified_name(one) or ("/" not in one and one not in _STANDARD_FINALIZERS):
            at.item(i).expected("a qualified name with a domain", one)
    if {_ORPHAN, _FOREGROUND} <= set(found):
        at.wrong(f"{_ORPHAN} and {_FOREGROUND} exclude each other")


def managers(pod: Pod, place: FieldPath) -> None:
    """Who manages fields says how."""
    for i, one in enumerate(pods.metadata(pod).managedFields or ()):
        if one.operation is None:
            place.field("managedFields").item(i).field("operation").wrong("missing")


METADATA_RULES: tuple[Rule, ...] = (named, labelled, owners, finalizers, managers)
"""The rules for which the place is the metadata's."""


_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_COST = re.compile(r"0|[1-9]\d*|-\d+")
_COST_BITS = 31
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_LOCALHOST = "localhost/"
_UNCONFINED, _DEFAULT, _DOCKER = "unconfined", "runtime/default", "docker/default"


def deletion_cost(pod: Pod, place: FieldPath) -> None:
    """What a deletion costs is a number of 32 bits, without needless zeros."""
    cost = pods.annotations(pod).get(_DELETION_COST)
    if cost is not None and not (_COST.fullmatch(cost) and -(1 << _COST_BITS) <= int(cost) < 1 << _COST_BITS):
        _at(place, _DELETION_COST).expected("a whole number of 32 bits", cost)


def tolerations(pod: Pod, place: FieldPath) -> None:
    """Tolerations in an annotation are JSON, and as right as those in the field."""
    text = pods.annotations(pod).get(_TOLERATIONS)
    if not text:
        return
    at = _at(place, _TOLERATIONS)
    try:
        found = json.loads(text)
    except ValueError:
        at.expected("a list of tolerations in JSON", text)
        return
    if not isinstance(found, list):
        at.expected("a list of tolerations", found)
        return
    for i, one in enumerate(cast("list[object]", found)):
        before = len(place.errors)
        clean = read_object(Toleration, one, at.item(i))
        if len(place.errors) == before:
            toleration(convert(clean, Toleration), at.item(i))


def seccomp(pod: Pod, place: FieldPath) -> None:
    """A seccomp profile in an annotation is one, and the same as in the field."""
    security = pods.spec(pod).securityContext
    fields = {_SECCOMP_OF_POD: security.seccompProfile if security else None}
    for one, _ in containers(pod, place):
        fields[f"{_SECCOMP}{one.name}"] = one.securityContext.seccompProfile if one.securityContext else None
    for name, value in pods.annotations(pod).items():
        if name == _SECCOMP_OF_POD or name.startswith(_SECCOMP):
            _profile(value, fields.get(name), _at(place, name), (_UNCONFINED, _DEFAULT, _DOCKER))


def app_armor(pod: Pod, place: FieldPath) -> None:
    """An AppArmor profile in an annotation is that of a container, and the same as in the field."""
    security, os = pods.spec(pod).securityContext, pods.spec(pod).os
    fields: dict[str, AppArmorProfile | None] = {}
    for one, _ in containers(pod, place):
        own = one.securityContext.appArmorProfile if one.securityContext else None
        fields[f"{_APP_ARMOR}{one.name}"] = own or (security.appArmorProfile if security else None)
    for name, value in pods.annotations(pod).items():
        if name.startswith(_APP_ARMOR):
            at = _at(place, name)
            if name not in fields:
                at.expected("a container of the pod", name.removeprefix(_APP_ARMOR))
            of_windows = os is not None and os.name == "windows"
            _profile(value, None if of_windows else fields.get(name), at, ("", _UNCONFINED, _DEFAULT))


def _profile(
    text: str, field: SeccompProfile | AppArmorProfile | None, place: FieldPath, words: tuple[str, ...]
) -> None:
    path = text.removeprefix(_LOCALHOST)
    is_local = path != text
    if not is_local and text not in words:
        place.expected(f"{_UNCONFINED}, {_DEFAULT} or {_LOCALHOST}PROFILE", text)
    elif is_local and _DOCKER in words and path and not BELOW.accepts(path):
        place.expected(BELOW.expected, path)
    elif field is not None and _meant(text) != (field.type, field.localhostProfile):
        place.wrong(f"says {text}, the field {field.type}")


def _meant(text: str) -> tuple[str, str | None]:
    """The type and the profile of the field that says the same."""
    if text.startswith(_LOCALHOST):
        return "Localhost", text.removeprefix(_LOCALHOST)
    return {_UNCONFINED: "Unconfined", _DEFAULT: "RuntimeDefault", _DOCKER: "RuntimeDefault"}.get(
        text, ""
    ), None


def _at(place: FieldPath, name: str) -> FieldPath:
    return place.field("annotations").field(name)


ANNOTATION_RULES: tuple[Rule, ...] = (deletion_cost, tolerations, seccomp, app_armor)
"""The rules for which the place is the metadata's."""
