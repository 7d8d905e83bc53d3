"""What of a trace is about some pods: which records are kept, and what of a list stays."""

from __future__ import annotations

from collections.abc import Callable

from kubelet_conformance.trace.json_values import Json, is_object, items_of, object_of, text_of
from kubelet_conformance.trace.records import Call
from kubelet_conformance.trace.subjects import Subjects
from kubelet_conformance.trace.written_keys import Label

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
"""Calls that name no pod and are kept: how the runtime is, and the lists with what is theirs in them."""
_OF_IMAGES = frozenset({"ImageStatus", "RemoveImage"})
_WHOLE_NODE = frozenset({"end", "fault", "http", "kubelet", "metrics"})
_FOLDER_OPS = frozenset({"missing", "made"})


class Belonging:
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

    def _keeps_object(self, kind: str, fields: Json) -> bool:
        uid = text_of(fields, "uid")
        if uid in self._of.uids:
            return True
        if kind == "event":
            # A static pod that is refused has a UID that nothing else tells.
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
