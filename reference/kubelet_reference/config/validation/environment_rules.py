"""Where the values of variables come from, and of files of the downward API."""

from collections.abc import Iterable

from lightkube.models.core_v1 import DownwardAPIVolumeFile, EnvFromSource, EnvVar, Pod

from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import containers, exactly_one

_SOURCES_OF_VALUES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")


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
        exactly_one(file, ("fieldRef", "resourceFieldRef"), place.item(i))
        if file.resourceFieldRef is not None and not file.resourceFieldRef.containerName:
            place.item(i).field("resourceFieldRef").field("containerName").wrong("missing")
