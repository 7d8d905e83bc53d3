"""What must hold in a pod's metadata."""

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import Rule, key_names, labels

_ANNOTATION_BYTES_MAX = 256 << 10


def named(pod: Pod, place: FieldPath) -> None:
    """A pod has a name."""
    if not pods.name(pod):
        place.field("name").wrong("missing")


def labelled(pod: Pod, place: FieldPath) -> None:
    """Labels have qualified names as keys, and values that a label may have."""
    labels(pods.labels(pod), place.field("labels"))


def annotated(pod: Pod, place: FieldPath) -> None:
    """Annotations have qualified names in any case, and 256 KiB at most."""
    found, at = pods.annotations(pod), place.field("annotations")
    key_names(found, at, any_case=True)
    if sum(len(name.encode()) + len(value.encode()) for name, value in found.items()) > _ANNOTATION_BYTES_MAX:
        at.wrong(f"expected at most {_ANNOTATION_BYTES_MAX} bytes in all")


METADATA_RULES: tuple[Rule, ...] = (named, labelled, annotated)
"""The rules for which the place is the metadata's."""
