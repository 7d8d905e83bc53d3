"""What later releases of Kubernetes have come to allow, or to forbid."""

import re
from collections.abc import Iterator

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.checks import DNS_SUBDOMAIN
from kubelet_reference.config.validation.rules import Rule, containers
from kubelet_reference.util.versions import Behaviour

_VARIABLE = re.compile(r"(?!\.$|\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*")
_ANY_VARIABLE, _MORE = 32, 33
"""The release that takes any printable variable (KEP-4369), and the one that takes the rest."""


def version_rules(behaviour: Behaviour) -> Iterator[Rule]:
    """The rules that only some versions have: what later ones allow, and what they forbid."""
    if behaviour.refuses_api_references:
        yield no_api_objects
    if behaviour.minor < _ANY_VARIABLE:
        yield plain_variables
    if behaviour.minor < _MORE:
        yield plain_searches
        yield some_sleep
        yield whole_images
    if behaviour.minor < _MORE or not behaviour.resizes_in_place:
        yield no_resize_of_inits


_VOLUMES = ("configMap", "secret", "csi", "glusterfs", "persistentVolumeClaim", "ephemeral", "azureFile")
_PROJECTIONS = ("configMap", "secret", "serviceAccountToken", "podCertificate")


def no_api_objects(pod: Pod, place: FieldPath) -> None:
    """A pod from a manifest refers to no object of the API server (STATIC-22, since 1.34)."""
    spec = pods.spec(pod)
    _nothing_of(spec, ("serviceAccountName", "imagePullSecrets"), place)
    for one, where in containers(pod, place):
        for i, variable in enumerate(one.env or ()):
            at = where.field("env").item(i).field("valueFrom")
            _nothing_of(variable.valueFrom, ("configMapKeyRef", "secretKeyRef"), at)
        for i, whole in enumerate(one.envFrom or ()):
            _nothing_of(whole, ("configMapRef", "secretRef"), where.field("envFrom").item(i))
    for i, volume in enumerate(spec.volumes or ()):
        at = place.field("volumes").item(i)
        _nothing_of(volume, _VOLUMES, at)
        for j, source in enumerate((volume.projected and volume.projected.sources) or ()):
            _nothing_of(source, _PROJECTIONS, at.field("projected").field("sources").item(j))


def _nothing_of(part: object, names: tuple[str, ...], place: FieldPath) -> None:
    for name in names:
        if getattr(part, name, None):
            place.field(name).wrong("not allowed in a manifest")


def plain_variables(pod: Pod, place: FieldPath) -> None:
    """Variables are words of letters, digits, dots, dashes and underscores (KEP-4369, until 1.31)."""
    for one, where in containers(pod, place):
        for i, variable in enumerate(one.env or ()):
            _plain(variable.name, where.field("env").item(i).field("name"))
        for i, whole in enumerate(one.envFrom or ()):
            _plain(whole.prefix or "_", where.field("envFrom").item(i).field("prefix"))


def _plain(text: str, place: FieldPath) -> None:
    if not _VARIABLE.fullmatch(text):
        place.expected("letters, digits, dots, dashes and underscores, no digit first", text)


def plain_searches(pod: Pod, place: FieldPath) -> None:
    """A search domain has no underscores, and is more than a dot (KEP-4427, until 1.32)."""
    config = pods.spec(pod).dnsConfig
    for i, search in enumerate((config and config.searches) or ()):
        if not DNS_SUBDOMAIN.accepts(search.removesuffix(".")):
            place.field("dnsConfig").field("searches").item(i).expected(DNS_SUBDOMAIN.expected, search)


def some_sleep(pod: Pod, place: FieldPath) -> None:
    """A hook that sleeps does so for a second at least (KEP-4818, until 1.32)."""
    for one, where in containers(pod, place):
        for name in ("postStart", "preStop"):
            hook = getattr(one.lifecycle, name, None)
            if hook is not None and hook.sleep is not None and hook.sleep.seconds == 0:
                at = where.field("lifecycle").field(name).field("sleep").field("seconds")
                at.expected("1 or more", hook.sleep.seconds)


def whole_images(pod: Pod, place: FieldPath) -> None:
    """A volume that shows an image is mounted as a whole (KEP-4639, until 1.32)."""
    images = {volume.name for volume in pods.spec(pod).volumes or () if volume.image is not None}
    for one, where in containers(pod, place):
        for i, mount in enumerate(one.volumeMounts or ()):
            for name in ("subPath", "subPathExpr"):
                if mount.name in images and getattr(mount, name):
                    where.field("volumeMounts").item(i).field(name).wrong("not allowed for an image")


def no_resize_of_inits(pod: Pod, place: FieldPath) -> None:
    """An init container is not resized, so it says nothing about that (KEP-1287)."""
    for i, one in enumerate(pods.init_containers(pod)):
        if one.resizePolicy:
            place.field("initContainers").item(i).field("resizePolicy").wrong(
                "not allowed in init containers"
            )
