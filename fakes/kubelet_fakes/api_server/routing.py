"""From the method, path and query of HTTP to a request of the API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubelet_fakes.api.errors import ApiStatusError, bad_request
from kubelet_fakes.api.objects import EMPTY, is_object
from kubelet_fakes.api.requests import Request
from kubelet_fakes.api_server.kinds import ServedKind, served_kind
from kubelet_fakes.api_server.patches import change_of
from kubelet_fakes.api_server.selectors import selection

_VERBS_OF_ONE = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERBS_OF_ALL = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OF_NAMESPACES = frozenset({"status", "finalize"})
_TRUE = frozenset({"true", "1"})


@dataclass(frozen=True, slots=True)
class Route:
    """What a path is about: an empty `name` is all objects of the kind."""

    kind: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """What follows the subresource, as in `proxy/REST`."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request over HTTP, as far as routing needs it."""

    method: str
    query: Mapping[str, str]
    content_type: str
    body: Any
    """What JSON it holds, an empty object for none."""


def route(path: str) -> Route:
    """What the path is about; raises `ApiStatusError` 404 where nothing is served."""
    match [each for each in path.split("/") if each]:
        case ["api", version, *rest] if rest:
            return _route(version, rest)
        case ["apis", group, version, *rest] if rest:
            return _route(f"{group}/{version}", rest)
        case _:
            raise ApiStatusError(404, "NotFound", "the server could not find the requested resource")


def _route(api_version: str, parts: list[str]) -> Route:
    namespace = ""
    match parts:
        case ["namespaces", name, plural, *rest] if plural not in _OF_NAMESPACES:
            namespace = name
        case [plural, *rest]:
            pass
        case _:
            raise AssertionError("a route has a part")
    name, subresource, *tail = [*rest, "", ""]
    return Route(
        served_kind(api_version, plural),
        namespace,
        name,
        subresource,
        "/".join(each for each in tail if each),
    )


def is_watch(call: Call) -> bool:
    """Whether the answer is a stream of changes."""
    return call.method == "GET" and call.query.get("watch") in _TRUE


def request_of(about: Route, call: Call) -> Request:
    """The request of the API; raises `ApiStatusError` for what the API has no verb for."""
    if call.query.get("dryRun"):
        raise bad_request("dryRun is not supported by this server: leave it out")
    place = (about.kind.resource.name, about.namespace)
    if is_watch(call) or not about.name:
        return _about_all(place, about, call)
    verb = "create" if call.method == "POST" else _VERBS_OF_ONE.get(call.method, call.method)
    named = (verb, *place, about.name, about.subresource)
    if verb == "delete":
        return _deletion(named, call)
    if verb == "patch":
        change = change_of(call.content_type, call.body)
        body = call.body if is_object(call.body) else EMPTY
        return Request(*named, body=about.kind.stored(dict(body)), change=change)
    return Request(*named, body=about.kind.stored(dict(call.body)))


def _about_all(place: tuple[str, str], about: Route, call: Call) -> Request:
    verb = "watch" if is_watch(call) else _VERBS_OF_ALL.get(call.method, call.method)
    if verb == "create":
        return Request(verb, *place, body=about.kind.stored(dict(call.body)))
    fields = call.query.get("fieldSelector", "")
    if about.name:
        fields = f"metadata.name={about.name}"
    wanted = selection(fields, call.query.get("labelSelector", ""))
    begins = "" if call.query.get("sendInitialEvents") in _TRUE else call.query.get("resourceVersion", "")
    return Request(
        verb,
        *place,
        resource_version=begins,
        fields=wanted.fields,
        labels=wanted.labels,
        matches=wanted.matches,
    )


def _deletion(named: tuple[str, str, str, str, str], call: Call) -> Request:
    """A deletion, whose options are in its body, or in its query."""
    grace = call.body.get("gracePeriodSeconds", call.query.get("gracePeriodSeconds"))
    try:
        seconds = None if grace is None else int(grace)
    except (TypeError, ValueError):
        raise bad_request(f"gracePeriodSeconds: a number is expected, not {grace!r}") from None
    uid = (call.body.get("preconditions") or EMPTY).get("uid")
    return Request(*named, grace_seconds=seconds, uid=uid)
