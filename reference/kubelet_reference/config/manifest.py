"""Manifests: bytes of YAML or JSON in, pods with the API's defaults out, or what is wrong, field by field.

The reading is strict. Each pod passes four stages: its fields and values are read along the models (`fields`,
`values`), it gets its defaults (`defaults`), becomes a `Pod`, and must hold together (`validation`).
"""

from typing import cast

import msgspec
from lightkube.models.core_v1 import Pod

from kubelet_reference.config.defaults import with_defaults
from kubelet_reference.config.documents import parse
from kubelet_reference.config.field_errors import FieldPath, ManifestError
from kubelet_reference.config.validation.fields import JsonObject, read_object
from kubelet_reference.config.validation.validation import validate
from kubelet_reference.util.versions import Behaviour

_USUAL = Behaviour.of()


def read_pod(content: bytes, behaviour: Behaviour = _USUAL) -> Pod:
    """The one pod that a manifest file holds; raises `ManifestError`."""
    return _pod(parse(content), behaviour)


def read_pods(content: bytes, behaviour: Behaviour = _USUAL) -> tuple[Pod, ...]:
    """The pods of a body that is a pod or a list of pods (CONFIG-14).

    Raises `ManifestError` for a body that is neither, and for a list with a pod that is refused.
    """
    raw = parse(content)
    items = _items(raw)
    if items is None:
        return (_pod(raw, behaviour),)
    return tuple(_pod(item, behaviour) for item in items)


def _items(raw: object) -> list[object] | None:
    """The items of a list of pods, which need not say that they are pods; None for any other object."""
    match raw:
        case {"apiVersion": "v1", "kind": "PodList", "items": list() | None}:
            return [_as_pod(item) for item in cast("JsonObject", raw)["items"] or ()]
        case _:
            return None


def _as_pod(raw: object) -> object:
    return {"apiVersion": "v1", "kind": "Pod", **cast("JsonObject", raw)} if isinstance(raw, dict) else raw


def _pod(raw: object, behaviour: Behaviour) -> Pod:
    place = FieldPath([])
    data = _read(raw, place)
    if place.errors:
        raise ManifestError(place.errors)
    pod = msgspec.convert(with_defaults(data), Pod)
    errors = validate(pod, behaviour)
    if errors:
        raise ManifestError(errors)
    return pod


def _read(raw: object, place: FieldPath) -> JsonObject:
    """The clean data of a pod; of any other object nothing is read: no field of it means anything to us."""
    if not isinstance(raw, dict):
        place.expected("a pod", raw)
        return {}
    data = cast("JsonObject", raw)
    for field, expected in (("apiVersion", "v1"), ("kind", "Pod")):
        if data.get(field) is None:
            place.field(field).wrong("missing")
        elif data[field] != expected:
            place.field(field).expected(expected, data[field])
    if place.errors:
        return {}
    if data.get("spec") is None:
        place.field("spec").wrong("missing")
    return read_object(Pod, data, place)
