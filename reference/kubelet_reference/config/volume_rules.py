"""What must hold between the fields of a volume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from kubelet_reference import pods
from kubelet_reference.config.rule_words import exactly_one, unique

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lightkube.models.core_v1 import DownwardAPIVolumeFile, Pod, Volume

    from kubelet_reference.config.problems import Place
    from kubelet_reference.config.rule_words import Rule

__all__ = ("VOLUME_RULES",)

_PROJECTED = (
    "clusterTrustBundle",
    "configMap",
    "downwardAPI",
    "podCertificate",
    "secret",
    "serviceAccountToken",
)
_NAMED = {
    "configMap": "name",
    "secret": "secretName",
    "persistentVolumeClaim": "claimName",
}
"""The volumes that show another object, and the field that names it."""


def one_source(pod: Pod, place: Place) -> None:
    """A volume has a name of its own and one source."""
    found = pods.spec(pod).volumes or ()
    at = place.field("volumes")
    unique((at.item(i).field("name"), volume.name) for i, volume in enumerate(found))
    for i, volume in enumerate(found):
        sources = [name for name, value in asdict(volume).items() if value is not None and name != "name"]
        if len(sources) > 1:
            at.item(i).wrong(f"expected one source, got {' and '.join(sources)}")


def named_objects(pod: Pod, place: Place) -> None:
    """A volume that shows an object says which."""
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        for source, field in _NAMED.items():
            shown = getattr(volume, source)
            if shown is not None and not getattr(shown, field):
                place.field("volumes").item(i).field(source).field(field).wrong("missing")


def downward_files(pod: Pod, place: Place) -> None:
    """A file of the downward API shows one field."""
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        at = place.field("volumes").item(i)
        if volume.downwardAPI is not None:
            _downward(volume.downwardAPI.items or (), at.field("downwardAPI").field("items"))
        for j, source in enumerate((volume.projected and volume.projected.sources) or ()):
            if source.downwardAPI is not None:
                where = at.field("projected").field("sources").item(j).field("downwardAPI").field("items")
                _downward(source.downwardAPI.items or (), where)


def _downward(files: Iterable[DownwardAPIVolumeFile], place: Place) -> None:
    for i, file in enumerate(files):
        exactly_one(file, ("fieldRef", "resourceFieldRef"), place.item(i))


def projected_sources(pod: Pod, place: Place) -> None:
    """A projected volume has sources, and each is of one kind."""
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        if volume.projected is not None:
            at = place.field("volumes").item(i).field("projected").field("sources")
            for j, source in enumerate(volume.projected.sources or ()):
                exactly_one(source, _PROJECTED, at.item(j))


def unique_paths(pod: Pod, place: Place) -> None:
    """No two files of a projected volume have one path."""
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        if volume.projected is not None:
            unique(_paths(volume, place.field("volumes").item(i).field("projected").field("sources")))


def _paths(volume: Volume, place: Place) -> Iterable[tuple[Place, str]]:
    for j, source in enumerate((volume.projected and volume.projected.sources) or ()):
        at = place.item(j)
        for kind in ("configMap", "secret", "downwardAPI"):
            shown = getattr(source, kind)
            for k, file in enumerate((shown and shown.items) or ()):
                yield at.field(kind).field("items").item(k).field("path"), file.path
        if source.serviceAccountToken is not None:
            yield at.field("serviceAccountToken").field("path"), source.serviceAccountToken.path


VOLUME_RULES: tuple[Rule, ...] = (
    one_source,
    named_objects,
    downward_files,
    projected_sources,
    unique_paths,
)
