"""What must hold between the fields of a volume that a kubelet fills by itself; it mounts no others."""

from lightkube.models.core_v1 import Pod
from msgspec.structs import asdict

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.environment_rules import downward_files
from kubelet_reference.config.validation.rules import Rule, exactly_one, names_given, projections, unique

_PROJECTED = ("configMap", "downwardAPI", "secret", "serviceAccountToken")
_NAMED = {
    "configMap": "name",
    "secret": "secretName",
    "persistentVolumeClaim": "claimName",
    "image": "reference",
}
"""The volumes that show something else, and the field that says what, which the models do without."""


def one_source(pod: Pod, place: FieldPath) -> None:
    """A volume has a name of its own and one source."""
    found = pods.spec(pod).volumes or ()
    at = place.field("volumes")
    unique((at.item(i).field("name"), volume.name) for i, volume in enumerate(found))
    for i, volume in enumerate(found):
        sources = [name for name, value in asdict(volume).items() if value is not None and name != "name"]
        if len(sources) > 1:
            at.item(i).wrong(f"expected one source, got {' and '.join(sources)}")


def named_sources(pod: Pod, place: FieldPath) -> None:
    """A volume that shows something says what."""
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        for source, field in _NAMED.items():
            shown = getattr(volume, source)
            if shown is not None and not getattr(shown, field):
                place.field("volumes").item(i).field(source).field(field).wrong("missing")


def downward(pod: Pod, place: FieldPath) -> None:
    """A file of the downward API shows one field."""
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        at = place.field("volumes").item(i)
        if volume.downwardAPI is not None:
            downward_files(volume.downwardAPI.items or (), at.field("downwardAPI").field("items"))
    for source, at in projections(pod, place):
        if source.downwardAPI is not None:
            downward_files(source.downwardAPI.items or (), at.field("downwardAPI").field("items"))


def projected_sources(pod: Pod, place: FieldPath) -> None:
    """Each source of a projected volume is of one kind, and says what it shows; tokens are of an account."""
    for source, at in projections(pod, place):
        exactly_one(source, _PROJECTED, at)
        names_given(source, ("configMap", "secret"), at)
        if source.serviceAccountToken is not None and not pods.spec(pod).serviceAccountName:
            at.field("serviceAccountToken").wrong("only allowed with serviceAccountName")


VOLUME_RULES: tuple[Rule, ...] = (
    one_source,
    named_sources,
    downward,
    projected_sources,
)
