"""Where the values of variables come from, and of files of the downward API."""

import re
from collections.abc import Iterable
from fractions import Fraction

from lightkube.models.core_v1 import (
    DownwardAPIVolumeFile,
    EnvFromSource,
    EnvVar,
    ObjectFieldSelector,
    Pod,
    ResourceFieldSelector,
)

from kubelet_reference.api.quantities import parse_quantity
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import containers, exactly_one, key_names

_SOURCES_OF_VALUES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_IDENTITY = frozenset(f"metadata.{name}" for name in ("name", "namespace", "uid"))
_OF_VARIABLES = _IDENTITY | {
    *(f"spec.{name}" for name in ("nodeName", "serviceAccountName")),
    *(f"status.{name}" for name in ("hostIP", "hostIPs", "podIP", "podIPs")),
}
_OF_FILES = _IDENTITY | {"metadata.labels", "metadata.annotations"}
_FIELD_KEY = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_CPU_DIVISORS = frozenset({Fraction(1), Fraction(1, 1000)})
_DIVISORS = frozenset(
    {
        Fraction(1),
        *(Fraction(10) ** (3 * i) for i in range(1, 7)),
        *(Fraction(2) ** (10 * i) for i in range(1, 7)),
    }
)


def environment(pod: Pod, place: FieldPath) -> None:
    """Every variable of every container comes from somewhere."""
    for one, where in containers(pod, place):
        for i, variable in enumerate(one.env or ()):
            _variable(variable, where.field("env").item(i).field("valueFrom"))
        for i, whole in enumerate(one.envFrom or ()):
            _whole(whole, where.field("envFrom").item(i))


def _variable(variable: EnvVar, place: FieldPath) -> None:
    """A variable has a value or one source of it, not both."""
    source = variable.valueFrom
    if source is None:
        return
    exactly_one(source, _SOURCES_OF_VALUES, place)
    if variable.value:
        place.wrong("not allowed beside value")
    for kind in ("configMapKeyRef", "secretKeyRef"):
        reference = getattr(source, kind)
        if reference is not None and not reference.name:
            place.field(kind).field("name").wrong("missing")
    if source.fieldRef is not None:
        _field(source.fieldRef, _OF_VARIABLES, place.field("fieldRef"))
    if source.resourceFieldRef is not None:
        _divisor(source.resourceFieldRef, place.field("resourceFieldRef"))


def _whole(found: EnvFromSource, place: FieldPath) -> None:
    """A whole source is a config map or a secret."""
    exactly_one(found, ("configMapRef", "secretRef"), place)
    for kind in ("configMapRef", "secretRef"):
        reference = getattr(found, kind)
        if reference is not None and not reference.name:
            place.field(kind).field("name").wrong("missing")


def downward_files(files: Iterable[DownwardAPIVolumeFile], place: FieldPath) -> None:
    """A file of the downward API shows one field; a resource is that of a container."""
    for i, file in enumerate(files):
        at = place.item(i)
        exactly_one(file, ("fieldRef", "resourceFieldRef"), at)
        if file.fieldRef is not None:
            _field(file.fieldRef, _OF_FILES, at.field("fieldRef"))
        if file.resourceFieldRef is not None:
            where = at.field("resourceFieldRef")
            if not file.resourceFieldRef.containerName:
                where.field("containerName").wrong("missing")
            _divisor(file.resourceFieldRef, where)


def _field(found: ObjectFieldSelector, known: frozenset[str], place: FieldPath) -> None:
    at = place.field("fieldPath")
    keyed = _FIELD_KEY.fullmatch(found.fieldPath)
    if keyed:
        key_names({keyed[2]: ""}, at, any_case=keyed[1] == "annotations")
    elif found.fieldPath not in known:
        at.expected("a field of the pod that can be shown here, such as metadata.name", found.fieldPath)


def _divisor(found: ResourceFieldSelector, place: FieldPath) -> None:
    """A divisor is a unit of the resource; 0 stands for 1."""
    divisor = parse_quantity(found.divisor or "0")
    known = _CPU_DIVISORS if found.resource.endswith(".cpu") else _DIVISORS
    if divisor and divisor not in known:
        units = "1 or 1m" if known is _CPU_DIVISORS else "1, 1k to 1E or 1Ki to 1Ei"
        place.field("divisor").expected(units, found.divisor)
