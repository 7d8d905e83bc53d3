"""Where the values of variables come from, and of files of the downward API."""

from collections.abc import Iterable

from lightkube.models.core_v1 import DownwardAPIVolumeFile, EnvVar, Pod

from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import containers, exactly_one, names_given

_SOURCES_OF_VALUES = ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef")
_WHOLE_SOURCES = ("configMapRef", "secretRef")


def environment(pod: Pod, place: FieldPath) -> None:
    """Every variable of every container comes from somewhere; a whole source is a config map or a secret."""
    for one, where in containers(pod, place):
        for i, variable in enumerate(one.env or ()):
            _variable(variable, where.field("env").item(i).field("valueFrom"))
        for i, whole in enumerate(one.envFrom or ()):
            at = where.field("envFrom").item(i)
            exactly_one(whole, _WHOLE_SOURCES, at)
            names_given(whole, _WHOLE_SOURCES, at)


def _variable(variable: EnvVar, place: FieldPath) -> None:
    """A variable has a value or one source of it, not both."""
    source = variable.valueFrom
    if source is None:
        return
    exactly_one(source, _SOURCES_OF_VALUES, place)
    if variable.value:
        place.wrong("not allowed beside value")
    names_given(source, ("configMapKeyRef", "secretKeyRef"), place)


def downward_files(files: Iterable[DownwardAPIVolumeFile], place: FieldPath) -> None:
    """A file of the downward API shows one field; a resource is that of a container."""
    for i, file in enumerate(files):
        exactly_one(file, ("fieldRef", "resourceFieldRef"), place.item(i))
        if file.resourceFieldRef is not None and not file.resourceFieldRef.containerName:
            place.item(i).field("resourceFieldRef").field("containerName").wrong("missing")
