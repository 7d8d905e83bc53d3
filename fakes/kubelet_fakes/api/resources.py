"""The kinds of objects that the API server keeps, and what is particular to each."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lightkube.models import coordination_v1, core_v1, node_v1, resource_v1beta1, storage_v1
from msgspec import ValidationError

from kubelet_fakes.api.defaults import (
    default_namespace,
    default_pod,
    default_pod_spec,
    default_secret,
    default_service,
)
from kubelet_fakes.api.errors import FieldError, bad_request, invalid, not_found
from kubelet_fakes.api.objects import FrozenDict, is_array, is_object
from kubelet_fakes.api.services import check_same_cluster_ip
from kubelet_fakes.api.updates import check_ephemeral_update, check_spec_update, check_status_update
from kubelet_fakes.api.validation import FORBIDDEN, INVALID, REQUIRED, check_pod, check_runtime_class

_MISSING = re.compile(r"Object missing required field `(\w+)`(?: - at `\$\.?(.*)`)?")
_STORAGE = "storage.k8s.io/v1"
_DEVICES = "resource.k8s.io/v1"
_DATA = ("data", "binaryData", "immutable")

Json = dict[str, Any]


def _nothing_to_fill_in(_: Json) -> None:
    """The kind has no defaults."""


def _anything_goes(_: FrozenDict) -> Iterator[FieldError]:
    return iter(())


def _any_update_goes(_: FrozenDict, __: FrozenDict) -> Iterator[FieldError]:
    return iter(())


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind: `name` as it stands in paths, and the rules of its objects."""

    name: str
    kind: str
    model: Any
    """The lightkube class that says which type each field has."""
    api_version: str = "v1"
    namespaced: bool = True
    has_status: bool = False
    deleted_gracefully: bool = False
    fill_in: Callable[[Json], None] = _nothing_to_fill_in
    """Defaults of a new object, in place."""
    fill_in_again: Callable[[Json], None] = _nothing_to_fill_in
    """Defaults of an object that was changed, in place."""
    check: Callable[[FrozenDict], Iterator[FieldError]] = _anything_goes
    check_update: Callable[[FrozenDict, FrozenDict], Iterator[FieldError]] = _any_update_goes
    check_status: Callable[[FrozenDict, FrozenDict], Iterator[FieldError]] = _any_update_goes
    check_ephemeral: Callable[[FrozenDict, FrozenDict], Iterator[FieldError]] = _any_update_goes


def _check_pod(pod: FrozenDict) -> Iterator[FieldError]:
    return check_pod(pod["spec"])


def _check_immutable(old: FrozenDict, new: FrozenDict) -> Iterator[FieldError]:
    """A configMap or secret may declare itself unchangeable."""
    if old.get("immutable"):
        for field in _DATA:
            if old.get(field) != new.get(field):
                yield FieldError(field, FORBIDDEN, "field is immutable when `immutable` is set")


def _check_handler(old: FrozenDict, new: FrozenDict) -> Iterator[FieldError]:
    """A runtime class keeps its handler."""
    if old["handler"] != new["handler"]:
        yield FieldError("handler", INVALID, f'"{new["handler"]}": field is immutable')


_RESOURCES = {
    each.name: each
    for each in (
        Resource(
            "pods",
            "Pod",
            core_v1.Pod,
            has_status=True,
            deleted_gracefully=True,
            fill_in=default_pod,
            fill_in_again=default_pod_spec,
            check=_check_pod,
            check_update=check_spec_update,
            check_status=check_status_update,
            check_ephemeral=check_ephemeral_update,
        ),
        Resource("nodes", "Node", core_v1.Node, namespaced=False, has_status=True),
        Resource("configmaps", "ConfigMap", core_v1.ConfigMap, check_update=_check_immutable),
        Resource(
            "secrets",
            "Secret",
            core_v1.Secret,
            fill_in=default_secret,
            fill_in_again=default_secret,
            check_update=_check_immutable,
        ),
        Resource("events", "Event", core_v1.Event),
        Resource(
            "runtimeclasses",
            "RuntimeClass",
            node_v1.RuntimeClass,
            api_version="node.k8s.io/v1",
            namespaced=False,
            check=check_runtime_class,
            check_update=_check_handler,
        ),
        Resource("leases", "Lease", coordination_v1.Lease, api_version="coordination.k8s.io/v1"),
        Resource(
            "services",
            "Service",
            core_v1.Service,
            has_status=True,
            fill_in=default_service,
            fill_in_again=default_service,
            check_update=check_same_cluster_ip,
        ),
        Resource(
            "namespaces",
            "Namespace",
            core_v1.Namespace,
            namespaced=False,
            has_status=True,
            fill_in=default_namespace,
        ),
        Resource("serviceaccounts", "ServiceAccount", core_v1.ServiceAccount),
        Resource("csinodes", "CSINode", storage_v1.CSINode, api_version=_STORAGE, namespaced=False),
        Resource("csidrivers", "CSIDriver", storage_v1.CSIDriver, api_version=_STORAGE, namespaced=False),
        Resource(
            "resourceclaims",
            "ResourceClaim",
            resource_v1beta1.ResourceClaim,
            api_version=_DEVICES,
            has_status=True,
        ),
        Resource(
            "resourceslices",
            "ResourceSlice",
            resource_v1beta1.ResourceSlice,
            api_version=_DEVICES,
            namespaced=False,
        ),
        Resource(
            "deviceclasses",
            "DeviceClass",
            resource_v1beta1.DeviceClass,
            api_version=_DEVICES,
            namespaced=False,
        ),
    )
}


def resources() -> tuple[Resource, ...]:
    """All kinds that the server has."""
    return tuple(_RESOURCES.values())


def resource(name: str) -> Resource:
    """The kind of that name; raises `ApiStatusError` 404 where the server has none."""
    found = _RESOURCES.get(name)
    if found is None:
        raise not_found("the server could not find the requested resource", name)
    return found


def plain(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """A copy of JSON that may be changed; fields that are null are left out, for null is not given."""
    if is_object(value):
        return {key: plain(each) for key, each in value.items() if each is not None}
    if is_array(value):
        return [plain(each) for each in value]
    return value


def check_shape(kind: Resource, body: Json) -> None:
    """Refuse what is no object of this kind at all.

    Raises:
        ApiStatusError: 422 where a required field is missing, 400 where a field has another type.
    """
    try:
        kind.model.from_dict(body, lazy=False)
    except ValidationError as error:
        missing = _MISSING.fullmatch(str(error))
        if missing is None:
            raise bad_request(
                f'{kind.kind} in version "{kind.api_version}" cannot be handled as a {kind.kind}: {error}'
            ) from None
        field = f"{missing[2]}.{missing[1]}" if missing[2] else missing[1]
        if field.startswith("status."):
            # A server takes what a status does not have as empty: a patch leaves out what was empty before.
            return
        name = body.get("metadata", {}).get("name", "")
        raise invalid(kind.kind, name, [FieldError(field, REQUIRED)]) from None
