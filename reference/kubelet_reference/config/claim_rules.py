"""What must hold in the claims for volumes that a pod makes or uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from lightkube.models.core_v1 import (
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimTemplate,
    Pod,
    TypedLocalObjectReference,
    TypedObjectReference,
)
from msgspec.structs import asdict

from kubelet_reference import pods
from kubelet_reference.config.checks import DNS_SUBDOMAIN
from kubelet_reference.config.label_rules import labels, selector
from kubelet_reference.config.metadata_rules import annotation_keys
from kubelet_reference.config.problems import Place
from kubelet_reference.config.rule_words import Rule
from kubelet_reference.quantities import parse_quantity

_ALONE = "ReadWriteOncePod"
_OF_TEMPLATES = frozenset({"annotations", "labels"})


def templates(pod: Pod, place: Place) -> None:
    """An ephemeral volume has a template of its claim."""
    for i, volume in enumerate(pods.spec(pod).volumes or ()):
        if volume.ephemeral is not None:
            at = place.field("volumes").item(i).field("ephemeral").field("volumeClaimTemplate")
            if volume.ephemeral.volumeClaimTemplate is None:
                at.wrong("missing")
            else:
                _template(volume.ephemeral.volumeClaimTemplate, at)


def claim_names(pod: Pod, place: Place) -> None:
    """The claim of an ephemeral volume is named after pod and volume; no other volume uses it."""
    found = pods.spec(pod).volumes or ()
    made = {f"{pods.name(pod)}-{one.name}" for one in found if one.ephemeral is not None}
    for i, volume in enumerate(found):
        at = place.field("volumes").item(i)
        name = f"{pods.name(pod)}-{volume.name}"
        if volume.ephemeral is not None and not DNS_SUBDOMAIN.accepts(name):
            at.field("name").expected(f"a name for a claim: {DNS_SUBDOMAIN.expected}", name)
        claim = volume.persistentVolumeClaim
        if claim is not None and claim.claimName in made:
            at.field("persistentVolumeClaim").field("claimName").wrong("an ephemeral volume makes this claim")


def _template(found: PersistentVolumeClaimTemplate, place: Place) -> None:
    """The claim takes labels and annotations from its template, all other metadata it gets by itself."""
    if found.metadata is not None:
        at = place.field("metadata")
        given = {name: value for name, value in asdict(found.metadata).items() if value}
        for name in sorted(given.keys() - _OF_TEMPLATES):
            at.field(name).wrong("not allowed in a template")
        labels(cast("Mapping[str, str]", given.get("labels", {})), at.field("labels"))
        annotation_keys(cast("Mapping[str, str]", given.get("annotations", {})), at.field("annotations"))
    _claim(found.spec, place.field("spec"))


def _claim(spec: PersistentVolumeClaimSpec, place: Place) -> None:
    modes = spec.accessModes or ()
    if not modes:
        place.field("accessModes").wrong("expected at least one mode")
    if _ALONE in modes and set(modes) != {_ALONE}:
        place.field("accessModes").wrong(f"{_ALONE} excludes all others")
    selector(spec.selector, place.field("selector"))
    requests = cast("Mapping[str, str]", (spec.resources and spec.resources.requests) or {})  # pyright: ignore[reportUnknownMemberType]
    if parse_quantity(requests.get("storage", "0")) <= 0:
        at = place.field("resources").field("requests").field("storage")
        at.expected("more than nothing", requests.get("storage"))
    for name, source in (("dataSource", spec.dataSource), ("dataSourceRef", spec.dataSourceRef)):
        if source is not None and not source.apiGroup and source.kind != "PersistentVolumeClaim":
            place.field(name).field("kind").expected("PersistentVolumeClaim without apiGroup", source.kind)
    if spec.dataSource is not None and spec.dataSourceRef is not None:
        if spec.dataSourceRef.namespace:
            place.field("dataSource").wrong("not allowed beside a dataSourceRef with namespace")
        elif _named(spec.dataSource) != _named(spec.dataSourceRef):
            place.field("dataSource").wrong("expected the same as dataSourceRef")


def _named(source: TypedLocalObjectReference | TypedObjectReference) -> tuple[str | None, str, str]:
    return source.apiGroup, source.kind, source.name


CLAIM_RULES: tuple[Rule, ...] = (templates, claim_names)
