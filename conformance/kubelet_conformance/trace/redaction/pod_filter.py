"""Filter a trace by pods: a first pass collects what belongs to them, a second decides on each record."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from kubelet_conformance.trace.format.json_values import (
    Json,
    is_list,
    is_object,
    items_of,
    object_of,
    text_of,
    texts_of,
)
from kubelet_conformance.trace.format.labels import STATIC_SOURCES, Annotation, Label
from kubelet_conformance.trace.format.records import Call, Reply

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_SANDBOX_FIELDS = ("items", "status", "pod_sandbox_status")
_CONTAINER_FIELDS = ("containers", "containers_statuses", "status")
_IMAGES_REMEMBERED = 10_000
_OTHERS_REMEMBERED = 1000
_NODE_CALLS = frozenset(
    {
        "Version",
        "Status",
        "RuntimeConfig",
        "UpdateRuntimeConfig",
        "ImageFsInfo",
        "GetContainerEvents",
        "ListContainers",
        "ListImages",
        "ListPodSandbox",
    }
)
"""Calls that name no pod and are kept: the runtime's status, and the lists, cut to what is of these pods."""
_OF_IMAGES = frozenset({"ImageStatus", "RemoveImage"})
_WHOLE_NODE = frozenset({"end", "fault", "http", "kubelet", "metrics", "stall"})
_HEALTH = "healthz/"
_FOLDER_OPS = frozenset({"missing", "made"})


class Subjects:
    """What belongs to the pods that are named by `NAMESPACE/NAME` or by UID.

    Fed with the whole trace. Memory grows with the sandboxes, containers and images of these pods alone. A
    static pod is found by the name of its manifest and by its full name, `<manifest name>-<node>`; its UID
    brings its mirror pod along.
    """

    def __init__(self, pods: Iterable[str], node: str | None) -> None:
        self.node = node
        self._suffix = f"-{node.lower()}" if node else ""
        self._asked: dict[str, set[str]] = defaultdict(set)
        """The pods that were asked for, by each form in which they may be named."""
        for each in pods:
            for form in (each, f"{each}{self._suffix}" if "/" in each else each):
                self._asked[form].add(each)
        self.found: set[str] = set()
        """The pods that were asked for and are in the trace."""
        self.others: dict[str, None] = {}
        """Namespace and name of some other pods."""
        self.uids: set[str] = set()
        self.names: set[tuple[str, str]] = set()
        """Namespace and full name of static pods, and of every pod that was asked for by name."""
        self.sandboxes: set[str] = set()
        self.containers: set[str] = set()
        self.images: set[str] = set()
        """Names, ids and digests."""
        self.claims: set[tuple[str, str]] = set()
        """Namespace and name of their claims of dynamic resources."""
        self.other_claims: set[tuple[str, str]] = set()
        """Those of other pods."""
        self._ids: dict[str, str] = {}
        """What ImageStatus said of each name it was asked for."""

    def belongs(self, namespace: str, name: str, uid: str, *, static: bool = False) -> bool:
        """Whether the pod of this identity is one of them; adds it if so."""
        full = f"{name}{self._suffix}" if static and not name.endswith(self._suffix) else name
        by_name = self._named_so(f"{namespace}/{name}") | self._named_so(f"{namespace}/{full}")
        by_uid = self._named_so(uid)
        if not (by_name or by_uid or (uid and uid in self.uids) or (namespace, full) in self.names):
            if name and len(self.others) < _OTHERS_REMEMBERED:
                self.others[f"{namespace}/{name}"] = None
            return False
        self.found |= by_name | by_uid
        self.uids |= {uid} - {""}
        if static or by_name:
            self.names.add((namespace, full))
        return True

    def _named_so(self, form: str) -> set[str]:
        return self._asked.get(form, set())

    def of_metadata(self, metadata: Json, *, static: bool = False) -> bool:
        """As `belongs`, for the metadata of a sandbox or an object."""
        namespace = text_of(metadata, "namespace") or "default"
        return self.belongs(namespace, text_of(metadata, "name"), text_of(metadata, "uid"), static=static)

    def of_labels(self, labels: Json) -> bool:
        """As `belongs`, for the labels that the kubelet puts on containers."""
        namespace, name, uid = (
            text_of(labels, label) for label in (Label.POD_NAMESPACE, Label.POD_NAME, Label.POD_UID)
        )
        return self.belongs(namespace, name, uid)

    def reply(self, reply: Reply) -> None:
        """Observe the reply to a call, and its request."""
        if reply.same:
            return
        call, body = reply.call, reply.response.json() if reply.response is not None else None
        if not is_object(body):
            return
        if call.rpc in {"RunPodSandbox", "CreateContainer"}:
            self._made(call, body)
        elif call.rpc == "ImageStatus":
            self._image_asked(call, object_of(body, "image"))
        else:
            self.message(body)

    def call(self, call: Call) -> None:
        """Observe a call that may never be answered."""
        if call.rpc == "RunPodSandbox":
            config = object_of(_request(call), "config")
            source = text_of(object_of(config, "annotations"), Annotation.SOURCE)
            self.of_metadata(object_of(config, "metadata"), static=source in STATIC_SOURCES)
        elif call.rpc == "CreateContainer":
            request = _request(call)
            if self._is_of_sandbox(request):
                image = object_of(object_of(request, "config"), "image")
                self.images |= {text_of(image, "image"), text_of(image, "user_specified_image")} - {""}
        elif call.rpc == "PullImage":
            request = _request(call)
            if self.of_metadata(object_of(object_of(request, "sandbox_config"), "metadata")):
                self.images.add(text_of(object_of(request, "image"), "image"))

    def message(self, item: Json) -> None:
        """Observe an item of a stream."""
        for sandbox in _records_in(item, _SANDBOX_FIELDS, of_sandboxes=True):
            self._sandbox(sandbox)
        for container in _records_in(item, _CONTAINER_FIELDS, of_sandboxes=False):
            self._container(container)

    def other(self, kind: str, fields: Json) -> None:
        """Observe any other record."""
        if kind == "pod":
            pod = object_of(fields, "pod")
            spec, space = object_of(pod, "spec"), text_of(object_of(pod, "metadata"), "namespace")
            claims = {
                (space or "default", text_of(one, "resourceClaimName"))
                for one in items_of(spec, "resourceClaims")
            }
            if not self.of_change(fields):
                self.other_claims |= claims
            else:
                self.claims |= claims
                entries = (one for name in _CONTAINERS for one in items_of(spec, name))
                self.images |= {text_of(one, "image") for one in entries} - {""}
        elif kind == "status":
            self.of_metadata(fields)
        elif kind == "api" and text_of(fields, "resource") == "pods":
            meta = object_of(object_of(fields, "body"), "metadata")
            self.of_metadata({"uid": text_of(fields, "uid"), **meta})

    def of_change(self, fields: Json) -> bool:
        """As `belongs`, for a `pod` record."""
        static = text_of(fields, "source") in STATIC_SOURCES
        return self.of_metadata(object_of(object_of(fields, "pod"), "metadata") or fields, static=static)

    def finish(self) -> None:
        """The first reading is over: an image has a name and an id, and both belong."""
        for name, identity in self._ids.items():
            if name in self.images or identity in self.images:
                self.images |= {name, identity}
        self.images.discard("")

    def is_image(self, image: Json) -> bool:
        """Whether the image, as the runtime reports it, is one of theirs."""
        names = {text_of(image, "id"), *texts_of(image, "repo_tags"), *texts_of(image, "repo_digests")}
        return not names.isdisjoint(self.images)

    def _is_of_sandbox(self, request: Json) -> bool:
        sandbox = text_of(request, "pod_sandbox_id")
        if sandbox in self.sandboxes:
            return True
        if self.of_metadata(object_of(object_of(request, "sandbox_config"), "metadata")):
            self.sandboxes.add(sandbox)
            return True
        return False

    def _made(self, call: Call, body: Json) -> None:
        request = _request(call)
        if call.rpc == "RunPodSandbox":
            if self.of_metadata(object_of(object_of(request, "config"), "metadata")):
                self.sandboxes |= {text_of(body, "pod_sandbox_id")} - {""}
        elif self._is_of_sandbox(request):
            self.containers |= {text_of(body, "container_id")} - {""}

    def _sandbox(self, record: Json) -> None:
        source = text_of(object_of(record, "annotations"), Annotation.SOURCE)
        if self.of_metadata(object_of(record, "metadata"), static=source in STATIC_SOURCES):
            self.sandboxes |= {text_of(record, "id")} - {""}

    def _container(self, record: Json) -> None:
        sandbox = text_of(record, "pod_sandbox_id")
        if sandbox in self.sandboxes or self.of_labels(object_of(record, "labels")):
            self.containers |= {text_of(record, "id")} - {""}
            self.sandboxes |= {sandbox} - {""}
            named = {text_of(record, "image_ref"), text_of(record, "image_id")}
            self.images |= {*named, text_of(object_of(record, "image"), "image")} - {""}

    def _image_asked(self, call: Call, image: Json) -> None:
        name = text_of(object_of(_request(call), "image"), "image")
        self._ids[name] = text_of(image, "id")
        if len(self._ids) > _IMAGES_REMEMBERED:
            del self._ids[next(iter(self._ids))]


def _records_in(body: Json, fields: Iterable[str], *, of_sandboxes: bool) -> Iterator[Json]:
    """The sandboxes or the containers of a list, a status or an event: a sandbox's metadata has a UID."""
    for name in fields:
        value = body.get(name)
        for record in value if is_list(value) else [value]:
            if is_object(record) and ("uid" in object_of(record, "metadata")) is of_sandboxes:
                yield record


def _request(call: Call) -> Json:
    found = call.request.json()
    return found if is_object(found) else {}


class PodFilter:
    """Decides for pods whose `Subjects` are known."""

    def __init__(self, subjects: Subjects) -> None:
        self._of = subjects

    def keeps_call(self, call: Call) -> bool:
        """The call is about them, or about no pod and needed."""
        request = call.request.json()
        if not is_object(request):
            return False
        named = self._named(call.rpc, request)
        return call.rpc in _NODE_CALLS if named is None else named

    def _named(self, rpc: str, request: Json) -> bool | None:
        """Whether the request names something of theirs; None where it names nothing."""
        of, config = self._of, object_of(request, "config") if rpc == "RunPodSandbox" else {}
        config = config or object_of(request, "sandbox_config")
        metadata, asked = object_of(config, "metadata"), object_of(request, "filter")
        container = text_of(request, "container_id") or (text_of(asked, "id") if "Container" in rpc else "")
        sandbox = text_of(request, "pod_sandbox_id") or text_of(asked, "pod_sandbox_id")
        if not sandbox and "PodSandbox" in rpc:
            sandbox = text_of(asked, "id")
        uid = text_of(metadata, "uid") or text_of(object_of(asked, "label_selector"), Label.POD_UID)
        found: bool | None = None
        if container:
            found = container in of.containers
        elif sandbox:
            found = sandbox in of.sandboxes
        elif uid:
            found = uid in of.uids
        elif rpc in _OF_IMAGES or rpc == "PullImage":
            found = text_of(object_of(request, "image"), "image") in of.images
        elif claims := items_of(request, "claims"):
            asked_for = {(text_of(one, "namespace"), text_of(one, "name")) for one in claims}
            # Where others share a claim it is not in sight when it is prepared, and when given back.
            found = asked_for <= of.claims and of.claims.isdisjoint(of.other_claims)
        return found

    def reply(self, rpc: str, body: Json) -> Json:
        """What of a reply is theirs."""
        of = self._of
        if rpc == "ListContainers":
            return _filtered(body, "containers", lambda record: text_of(record, "id") in of.containers)
        if rpc == "ListPodSandbox":
            return _filtered(body, "items", lambda record: text_of(record, "id") in of.sandboxes)
        return _filtered(body, "images", of.is_image) if rpc == "ListImages" else body

    def keeps_item(self, item: Json) -> bool:
        """An item of a stream is about them, or about nothing that is known."""
        metadata = object_of(object_of(item, "pod_sandbox_status"), "metadata")
        uid, container = text_of(metadata, "uid"), text_of(item, "container_id")
        if uid:
            return uid in self._of.uids
        return container in self._of.containers or container in self._of.sandboxes

    def keeps(self, kind: str, fields: Json) -> bool:
        """A record that is neither of a call nor about a file on disk is theirs, or the whole node's."""
        of = self._of
        if kind in _WHOLE_NODE:
            return True
        if kind == "pod":
            return of.of_change(fields)
        if kind == "runtime":
            named = {text_of(fields, "container_id"), text_of(fields, "sandbox_id")} - {""}
            return not named or not named.isdisjoint(of.containers | of.sandboxes)
        if kind == "disk":
            return fields.get("op") in _FOLDER_OPS or self._mentions(text_of(fields, "path"))
        if kind == "probe":
            return not {text_of(fields, "uid"), text_of(fields, "container_id")}.isdisjoint(
                of.uids | of.containers
            ) or not ({"uid", "container_id"} & fields.keys())
        return kind != "expect" and self._keeps_object(kind, fields)

    def fields(self, kind: str, fields: Json) -> Json:
        """What of a record that is kept stays: counters are of all pods, so that only the health does."""
        if kind != "metrics":
            return fields
        values = object_of(fields, "values").items()
        return {**fields, "values": {name: value for name, value in values if name.startswith(_HEALTH)}}

    def _keeps_object(self, kind: str, fields: Json) -> bool:
        uid = text_of(fields, "uid")
        if uid in self._of.uids:
            return True
        if kind == "event":
            if uid == self._of.node:
                return True
            # A static pod that is refused has a UID that no other record has.
            return any(name in text_of(fields, "message") for _, name in self._of.names)
        if kind == "api":
            meta = object_of(object_of(fields, "body"), "metadata")
            name = text_of(meta, "namespace") or "default", text_of(meta, "name")
            return text_of(fields, "resource") == "pods" and name in self._of.names
        return False

    def _mentions(self, path: str) -> bool:
        """The folder of a pod's volumes or logs has its UID in its name, and so has its cgroup."""
        parts = path.replace("_", "/").split("/")
        return not self._of.uids.isdisjoint([*parts, parts[-1].removeprefix("pod")])


def _filtered(body: Json, name: str, keep: Callable[[Json], bool]) -> Json:
    """The reply with less in one list; protobuf leaves out a list that is empty."""
    kept = [record for record in items_of(body, name) if keep(record)]
    rest = {key: value for key, value in body.items() if key != name}
    return {**rest, name: kept} if kept else rest
