"""The API server without its I/O: objects, their versions, and everyone who watches them."""

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from kubelet_fakes.api.deletion import delete_at_once, delete_gracefully, finished
from kubelet_fakes.api.errors import (
    ApiStatusError,
    FieldError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    not_found,
)
from kubelet_fakes.api.merging import merged
from kubelet_fakes.api.objects import EMPTY, FrozenDict, FrozenList, at, frozen, replaced, rfc3339
from kubelet_fakes.api.requests import Client, Request
from kubelet_fakes.api.resources import Resource, check_shape, plain, resource
from kubelet_fakes.api.services import check_cluster_ip, give_cluster_ip, keep_cluster_ip
from kubelet_fakes.api.tokens import issued
from kubelet_fakes.api.updates import check_resize
from kubelet_fakes.api.validation import INVALID, check_name
from kubelet_fakes.api.watching import ADDED, DELETED, MODIFIED, Change, History, Selector, Watch, WatchEvent

_SERVER_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
"""Metadata that an update cannot touch."""

_Key = tuple[str, str]


def numbered_uids() -> Callable[[], str]:
    """UIDs that are unique and are the same in every run."""
    numbers = count(1)
    return lambda: f"00000000-0000-4000-8000-{next(numbers):012x}"


class ApiCore(Client):
    """Pods, nodes, configMaps, secrets, runtime classes and events, under the API server's own rules.

    Requests made here are the world's: users, scheduler and controllers. What a kubelet asks goes through a
    `Connection`, which can fail.

    Args:
        now_ns: The time, in nanoseconds since the epoch.
        new_uid: Gives a UID that was not given before.
        window: How many changes are remembered for watches that begin in the past.
        pod_generations: Whether pods have `metadata.generation`, as from Kubernetes 1.33 on.
    """

    def __init__(
        self,
        now_ns: Callable[[], int],
        new_uid: Callable[[], str] | None = None,
        *,
        window: int = 10_000,
        pod_generations: bool = False,
    ) -> None:
        self.on_change: list[Callable[[Change], None]] = []
        """Each is called with every change, after it happened and before any watch delivers it."""
        self.tolerant = False
        """Objects that are invalid are stored all the same, as an older server or etcd may have them."""
        self._now_ns = now_ns
        self._new_uid = new_uid or numbered_uids()
        self._pod_generations = pod_generations
        self._objects: dict[str, dict[_Key, FrozenDict]] = {}
        self._revision = 0
        self._history = History(window)
        self._watches: list[Watch] = []
        self._verbs: dict[tuple[str, str], Callable[[Resource, Request], FrozenDict]] = {
            ("create", ""): self._create,
            ("create", "binding"): self._bind,
            ("create", "token"): self._issue_token,
            ("get", ""): self._found,
            ("list", ""): self._list,
            ("update", ""): self._update,
            ("patch", ""): self._patch,
            ("delete", ""): self._delete,
        }
        """By verb, and by subresource where that makes another verb of it."""

    def handle(self, request: Request) -> FrozenDict:
        """Do what is asked; a list comes back as one object with `items`."""
        kind = resource(request.resource)
        verb = self._verbs.get((request.verb, request.subresource if request.verb == "create" else ""))
        if verb is None:
            raise ApiStatusError(405, "MethodNotAllowed", f"{request.verb} is not supported on {kind.name}")
        return verb(kind, request)

    def now_ns(self) -> int:
        """The time that objects are stamped with."""
        return self._now_ns()

    def open_watch(self, request: Request) -> Watch:
        """Begin a watch; raises `ApiStatusError` 410 where its resourceVersion is forgotten."""
        selector = _selector(resource(request.resource), request)
        events = self._reported_so_far(selector, request.resource_version)
        watch = Watch(selector, events, self._revision)
        self._watches.append(watch)
        return watch

    def forget_history(self) -> None:
        """Compact, as etcd does every five minutes: a watch from any older version answers 410."""
        self._history.forget()

    def _reported_so_far(self, selector: Selector, version: str) -> Iterable[WatchEvent]:
        if version in {"", "0"}:
            return [WatchEvent(ADDED, each) for each in self._selected(selector)]
        if not version.isdecimal():
            raise bad_request(f"invalid resource version: {version!r}")
        if int(version) > self._revision:
            text = f"Too large resource version: {version}, current: {self._revision}"
            raise ApiStatusError(504, "Timeout", text)
        events = (selector.event(change) for change in self._history.since(int(version)))
        return [event for event in events if event is not None]

    def _selected(self, selector: Selector) -> list[FrozenDict]:
        objects = self._objects.get(selector.resource, {})
        return [each for _, each in sorted(objects.items(), key=_by_key) if selector.takes(each)]

    def _list(self, kind: Resource, request: Request) -> FrozenDict:
        selector = _selector(kind, request)
        return FrozenDict(
            kind=f"{kind.kind}List",
            apiVersion=kind.api_version,
            metadata=FrozenDict(resourceVersion=str(self._revision)),
            items=FrozenList(self._selected(selector)),
        )

    def _found(self, kind: Resource, request: Request) -> FrozenDict:
        found = self._objects.get(kind.name, {}).get(_key(kind, request.namespace, request.name))
        if found is None:
            raise not_found(kind.name, request.name)
        return found

    def _create(self, kind: Resource, request: Request) -> FrozenDict:
        body = plain(dict(request.body))
        metadata: dict[str, Any] = body.setdefault("metadata", {})
        check_shape(kind, body)
        self._identify(kind, metadata, request.namespace)
        kind.fill_in(body)
        others = tuple(self._objects.get(kind.name, {}).values()) if kind.name == "services" else ()
        if kind.name == "services":
            give_cluster_ip(body, others)
        new = frozen({"kind": kind.kind, "apiVersion": kind.api_version, **body})
        name = metadata.get("name", "")
        self._refuse(kind, name, [*check_name(name), *kind.check(new), *check_cluster_ip(new, others)])
        if _key(kind, metadata.get("namespace", ""), name) in self._objects.get(kind.name, {}):
            raise already_exists(kind.name, name)
        return self._write(ADDED, kind, request, new, None)

    def _identify(self, kind: Resource, metadata: dict[str, Any], namespace: str) -> None:
        """Give a new object what only the server gives."""
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        if kind.namespaced:
            if namespace and metadata.setdefault("namespace", namespace) != namespace:
                raise bad_request("the namespace of the provided object does not match that of the request")
            metadata.setdefault("namespace", "default")
        for field in _SERVER_OWNED:
            metadata.pop(field, None)
        uid = metadata["uid"] = self._new_uid()
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + uid.replace("-", "")[-5:]
        metadata["creationTimestamp"] = rfc3339(self._now_ns())
        if kind.name == "pods" and self._pod_generations:
            metadata["generation"] = 1

    def _update(self, kind: Resource, request: Request) -> FrozenDict:
        old = self._found(kind, request)
        body = plain(dict(request.body))
        check_shape(kind, body)
        return self._change(
            kind, request, old, frozen({"kind": kind.kind, "apiVersion": kind.api_version, **body})
        )

    def _patch(self, kind: Resource, request: Request) -> FrozenDict:
        old = self._found(kind, request)
        if request.change is None:
            wanted: FrozenDict = merged(old, dict(request.body))
        else:
            wanted = frozen(plain(request.change(old)))
        if wanted is not old:
            check_shape(kind, wanted)
        return self._change(kind, request, old, wanted)

    def _change(self, kind: Resource, request: Request, old: FrozenDict, wanted: FrozenDict) -> FrozenDict:
        """Store what the request may change of what it wants; nothing is written where that is nothing."""
        self._check_identity(kind, old, wanted)
        match request.subresource:
            case "status" if kind.has_status:
                new = replaced(old, ("status",), wanted.get("status", {}))
                errors = kind.check_status(old, new)
            case "ephemeralcontainers" if kind.name == "pods":
                added = at(wanted, "spec", "ephemeralContainers")
                new = _filled_in(kind, replaced(old, ("spec", "ephemeralContainers"), added), old)
                errors = kind.check_ephemeral(old, new)
            case "resize" if kind.name == "pods":
                new = _filled_in(kind, _kept_by_server(kind, old, wanted), old)
                errors = check_resize(old, new)
            case "":
                new = _filled_in(kind, _kept_by_server(kind, old, wanted), old)
                errors = kind.check_update(old, new)
            case other:
                raise not_found(f"{kind.name}/{other}", request.name)
        if new is old:
            return old
        self._refuse(kind, request.name, list(errors))
        if "generation" in new["metadata"] and new.get("spec") != old.get("spec"):
            new = replaced(new, ("metadata", "generation"), new["metadata"]["generation"] + 1)
        return self._write(DELETED if finished(new) else MODIFIED, kind, request, new, old)

    def _check_identity(self, kind: Resource, old: FrozenDict, wanted: FrozenDict) -> None:
        """The request is about this very object, and about its current version if it names one."""
        is_, asked = old["metadata"], wanted.get("metadata") or EMPTY
        namespace = is_.get("namespace", "")
        if asked.get("name") != is_["name"] or (asked.get("namespace") or namespace) != namespace:
            raise bad_request("the name or namespace of the object does not match that of the request")
        uid = asked.get("uid") or is_["uid"]
        if uid != is_["uid"]:
            error = FieldError("metadata.uid", INVALID, f'"{uid}": field is immutable')
            raise invalid(kind.kind, is_["name"], [error])
        if (asked.get("resourceVersion") or is_["resourceVersion"]) != is_["resourceVersion"]:
            text = (
                "the object has been modified; please apply your changes to the latest version and try again"
            )
            raise conflict(kind.name, is_["name"], text)

    def _delete(self, kind: Resource, request: Request) -> FrozenDict:
        """A pod that goes at once is first shown with grace 0 and then removed, as a real server does."""
        old = self._found(kind, request)
        uid = old["metadata"]["uid"]
        if request.uid is not None and request.uid != uid:
            text = (
                f"the UID in the precondition ({request.uid}) does not match the UID in record ({uid}). "
                "The object might have been deleted and then recreated"
            )
            raise conflict(kind.name, request.name, text)
        if kind.deleted_gracefully:
            deletion = delete_gracefully(old, request.grace_seconds, self._now_ns())
        else:
            deletion = delete_at_once(old, self._now_ns())
        last = old
        if deletion.object is not old:
            last = self._write(MODIFIED, kind, request, deletion.object, old)
        return self._write(DELETED, kind, request, last, last) if deletion.removed else last

    def _bind(self, kind: Resource, request: Request) -> FrozenDict:
        """Put a pod on a node, once; it counts as scheduled from then on."""
        old = self._found(kind, request)
        node, name = at(request.body, "target", "name"), request.name
        if old["spec"].get("nodeName"):
            text = f'pod {name} is already assigned to node "{old["spec"]["nodeName"]}"'
            raise conflict("pods/binding", name, text)
        if "deletionTimestamp" in old["metadata"]:
            raise conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
        if not node:
            raise bad_request("a binding needs target.name, the node")
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastTransitionTime": rfc3339(self._now_ns()),
        }
        new = merged(old, {"spec": {"nodeName": node}, "status": {"conditions": [scheduled]}})
        if "generation" in new["metadata"]:
            new = replaced(new, ("metadata", "generation"), new["metadata"]["generation"] + 1)
        return self._write(MODIFIED, kind, request, new, old)

    def _issue_token(self, kind: Resource, request: Request) -> FrozenDict:
        """A token of a service account; whether the account was created is not asked."""
        if kind.name != "serviceaccounts":
            raise not_found(f"{kind.name}/token", request.name)
        return issued(request.body, request.namespace, request.name, self._now_ns())

    def _refuse(self, kind: Resource, name: str, errors: list[FieldError]) -> None:
        if errors and not self.tolerant:
            raise invalid(kind.kind, name, errors)

    def _write(
        self, what: str, kind: Resource, request: Request, new: FrozenDict, old: FrozenDict | None
    ) -> FrozenDict:
        """Store or remove the object under a new revision and publish the change."""
        self._revision += 1
        new = replaced(new, ("metadata", "resourceVersion"), str(self._revision))
        objects = self._objects.setdefault(kind.name, {})
        key = _key(kind, new["metadata"].get("namespace", ""), new["metadata"]["name"])
        if what == DELETED:
            del objects[key]
        else:
            objects[key] = new
        change = Change(
            self._revision, what, kind.name, request.verb, request.subresource, new, old, request.by
        )
        self._history.add(change)
        for listener in self.on_change:
            listener(change)
        self._watches = [watch for watch in self._watches if not watch.ended]
        for watch in self._watches:
            watch.hear(change)
        return new


def _selector(kind: Resource, request: Request) -> Selector:
    return Selector.of(kind.name, request.namespace, request.fields, request.labels, request.matches)


def _key(kind: Resource, namespace: str, name: str) -> _Key:
    return (namespace or "default") if kind.namespaced else "", name


def _by_key(entry: tuple[_Key, FrozenDict]) -> _Key:
    return entry[0]


def _kept_by_server(kind: Resource, old: FrozenDict, wanted: FrozenDict) -> FrozenDict:
    """What is wanted, with everything that an update of the object itself cannot change."""
    new = wanted
    for field in (*_SERVER_OWNED, "resourceVersion"):
        new = replaced(new, ("metadata", field), old["metadata"].get(field))
    if "managedFields" not in new["metadata"]:
        new = replaced(new, ("metadata", "managedFields"), old["metadata"].get("managedFields"))
    if kind.has_status:
        new = replaced(new, ("status",), old.get("status"))
    return old if new == old else new


def _filled_in(kind: Resource, new: FrozenDict, old: FrozenDict) -> FrozenDict:
    """The changed object with its defaults; parts that come out as they were stay the same."""
    if new is old or new.get("spec", new) is old.get("spec", old):
        return new
    body = plain(new)
    kind.fill_in_again(body)
    if kind.name == "services":
        keep_cluster_ip(body, old)
    return old if body == old else frozen(body)
