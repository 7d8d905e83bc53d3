"""What later releases of Kubernetes have come to allow, or to forbid."""

from collections.abc import Iterator

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import Rule, containers, none_of, projections
from kubelet_reference.util.versions import Behaviour

_RESIZE_OF_SIDECARS = 33


def version_rules(behaviour: Behaviour) -> Iterator[Rule]:
    """The rules that only some versions have: what later ones allow, and what they forbid."""
    if behaviour.refuses_api_references:
        yield no_api_objects
    if behaviour.minor < _RESIZE_OF_SIDECARS or not behaviour.resizes_in_place:
        yield no_resize_of_inits


_VOLUMES = ("configMap", "secret", "csi", "glusterfs", "persistentVolumeClaim", "ephemeral", "azureFile")
_PROJECTIONS = ("configMap", "secret", "serviceAccountToken")


def no_api_objects(pod: Pod, place: FieldPath) -> None:
    """A pod from a manifest refers to no object of the API server (STATIC-22, since 1.34)."""
    spec = pods.spec(pod)
    none_of(spec, ("serviceAccountName", "imagePullSecrets"), place)
    for one, where in containers(pod, place):
        for i, variable in enumerate(one.env or ()):
            at = where.field("env").item(i).field("valueFrom")
            none_of(variable.valueFrom, ("configMapKeyRef", "secretKeyRef"), at)
        for i, whole in enumerate(one.envFrom or ()):
            none_of(whole, ("configMapRef", "secretRef"), where.field("envFrom").item(i))
    for i, volume in enumerate(spec.volumes or ()):
        none_of(volume, _VOLUMES, place.field("volumes").item(i))
    for source, at in projections(pod, place):
        none_of(source, _PROJECTIONS, at)


def no_resize_of_inits(pod: Pod, place: FieldPath) -> None:
    """An init container is not resized, so it says nothing about that (KEP-1287)."""
    for i, one in enumerate(pods.init_containers(pod)):
        if one.resizePolicy:
            place.field("initContainers").item(i).field("resizePolicy").wrong(
                "not allowed in init containers"
            )
