"""What clients ask before anything else: which groups, versions and kinds there are."""

from __future__ import annotations

import msgspec
from aiohttp import web

from kubelet_fakes.api.errors import ApiStatusError
from kubelet_fakes.api_server.kinds import ServedKind, kinds_by_version

Json = dict[str, object]
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_SHORT_NAMES = {
    "configmaps": "cm",
    "events": "ev",
    "namespaces": "ns",
    "nodes": "no",
    "pods": "po",
    "serviceaccounts": "sa",
    "services": "svc",
}
_OF_ALL = frozenset({"pods", "services"})
"""Kinds that `kubectl get all` shows."""
_OF_PODS = {
    "attach": ("create", "get"),
    "binding": ("create",),
    "ephemeralcontainers": ("get", "patch", "update"),
    "eviction": ("create",),
    "exec": ("create", "get"),
    "log": ("get",),
    "portforward": ("create", "get"),
    "resize": ("get", "patch", "update"),
}
_SUBRESOURCES: dict[str, dict[str, tuple[str, ...]]] = {
    "pods": _OF_PODS,
    "nodes": {"proxy": ("get",)},
    "serviceaccounts": {"token": ("create",)},
}
_FOREIGN = {
    "binding": ("Binding", "", "v1"),
    "eviction": ("Eviction", "policy", "v1"),
    "token": ("TokenRequest", "authentication.k8s.io", "v1"),
}
"""Kind, group and version of subresources whose bodies are of another kind."""
_VERSION = {"major": "1", "minor": "37", "gitVersion": "v1.37.0", "platform": "linux/amd64"}


class Discovery:
    """The documents of discovery and OpenAPI, by path."""

    def __init__(self) -> None:
        versions = kinds_by_version()
        self._documents: dict[str, Json] = {
            "/version": dict(_VERSION),
            "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
            "/apis": _groups([version for version in versions if "/" in version]),
            "/openapi/v3": {
                "paths": {
                    each[1:]: {"serverRelativeURL": f"/openapi/v3{each}"} for each in map(_path, versions)
                }
            },
        }
        for version, kinds in versions.items():
            self._documents[_path(version)] = _resources(version, kinds)
            self._documents[f"/openapi/v3{_path(version)}"] = _openapi(version, kinds)

    def answer(self, request: web.Request, path: str) -> web.Response | None:
        """The document of that path; None where it is none of them."""
        path = path.rstrip("/") or "/"
        document = self._documents.get(path)
        if document is None:
            return None
        if request.method != "GET":
            raise ApiStatusError(405, "MethodNotAllowed", "the server does not allow this method here")
        return web.Response(body=msgspec.json.encode(document), content_type="application/json")


def _path(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _groups(versions: list[str]) -> Json:
    """Every group but the core one; the first version of each is the preferred one."""
    by_group: dict[str, list[Json]] = {}
    for each in versions:
        group, _, version = each.partition("/")
        by_group.setdefault(group, []).append({"groupVersion": each, "version": version})
    groups = [
        {"name": name, "versions": found, "preferredVersion": found[0]} for name, found in by_group.items()
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _resources(version: str, kinds: list[ServedKind]) -> Json:
    """The kinds of one version, each with its subresources."""
    found: list[Json] = []
    for each in kinds:
        kind = each.resource
        names = [_SHORT_NAMES[kind.name]] if kind.name in _SHORT_NAMES else []
        one = {"singularName": kind.kind.lower(), "namespaced": kind.namespaced, "kind": kind.kind}
        categories = ["all"] if kind.name in _OF_ALL else []
        listed = {"verbs": list(_VERBS), "shortNames": names, "categories": categories}
        found.append({"name": kind.name, **one, **listed})
        subresources = _SUBRESOURCES.get(kind.name, {})
        if kind.has_status:
            subresources = {**subresources, "status": ("get", "patch", "update")}
        for name, verbs in subresources.items():
            entry: Json = {**one, "name": f"{kind.name}/{name}", "singularName": "", "verbs": list(verbs)}
            if name in _FOREIGN:
                entry |= dict(zip(("kind", "group", "version"), _FOREIGN[name], strict=True))
            found.append(entry)
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": found}


def _openapi(version: str, kinds: list[ServedKind]) -> Json:
    """As much of OpenAPI as says that the server itself validates fields: clients then need no schemas."""
    group, _, short = version.rpartition("/")
    parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    paths: Json = {}
    for each in kinds:
        kind = each.resource
        names = {"group": group, "version": short, "kind": kind.kind}
        operation = {
            "parameters": [parameter],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-group-version-kind": names,
        }
        place = "/namespaces/{namespace}" if kind.namespaced else ""
        collection = f"{_path(version)}{place}/{kind.name}"
        paths[collection] = {"post": {**operation, "x-kubernetes-action": "post"}}
        paths[f"{collection}/{{name}}"] = {"patch": {**operation, "x-kubernetes-action": "patch"}}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": _VERSION["gitVersion"]},
        "paths": paths,
        "components": {"schemas": {}},
    }
