"""Where secrets are in manifests, statuses and other objects of the API, by their shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from kubelet_conformance.trace.format.json_values import Json, is_list, is_object, text_of
from kubelet_conformance.trace.redaction.redactor import Redactor

Change: TypeAlias = Callable[[Redactor, Any], Any]
_Shape: TypeAlias = "Mapping[str, _Shape | Change]"
"""How the fields of an object are changed, by their names; `*` stands for each item of a list."""

_OPEN_ANNOTATION = re.compile(
    r"(io\.kubernetes\.|kubernetes\.io/|[a-z0-9-]+\.(alpha|beta)\.kubernetes\.io/).*", re.DOTALL
)
"""Annotations that the kubelet itself writes and reads; `kubectl.kubernetes.io/...` is none of them."""
_HOOK_ANNOTATION = "io.kubernetes.container.preStopHandler"
_QUOTED_OUTPUT = re.compile(r"(?P<before>probe (?:failed|warning): |, message: \")(?P<said>.+)", re.DOTALL)
"""What events quote of the output of a probe or hook."""
_LOG_LINE = re.compile(r"(?P<head>\S+ (?:stdout|stderr) [FP]\S* )(?P<printed>.*)")
_HOSTS_FILE = "/etc-hosts"
_SECRET_OBJECTS = frozenset({"secrets", "configmaps", "serviceaccounts"})
_OPEN_KINDS = frozenset({"deleted", "end", "expect", "fault", "http", "metrics", "runtime", "stall"})
"""Records that hold names, paths and numbers only."""


def redacted_annotations(redactor: Redactor, value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """Annotations: what the kubelet itself has there stays; any other may hold a whole manifest."""
    if not is_object(value):
        return redactor.everything(value)
    return {name: _annotation(redactor, name, inner) for name, inner in value.items()}


def _annotation(redactor: Redactor, name: str, value: Any) -> Any:  # noqa: ANN401 - a JSON value
    if not isinstance(value, str) or not _OPEN_ANNOTATION.fullmatch(name):
        return redactor.everything(value)
    if name != _HOOK_ANNOTATION:
        return value
    try:
        hook = msgspec.json.decode(value)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return redactor.digest(value)
    return msgspec.json.encode(_changed(redactor, hook, _HANDLER)).decode()


def redacted_pod(redactor: Redactor, pod: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A pod's manifest without its secrets."""
    return _changed(redactor, pod, _POD) if is_object(pod) else redactor.everything(pod)


def redacted_status(redactor: Redactor, status: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A pod's status without what its containers said at their end, nor secrets in its texts."""
    return _changed(redactor, status, _STATUS)


def redacted_fields(redactor: Redactor, kind: str, fields: Json) -> Json:
    """The fields of a record that is no call and no reply, without its secrets."""
    shape = _RECORDS.get(kind)
    if kind in _OPEN_KINDS:
        changed = fields
    elif kind == "api" and fields.get("resource") in _SECRET_OBJECTS:
        changed = _changed(redactor, fields, {"body": Redactor.everything})
    else:
        changed = redactor.everything(fields) if shape is None else _changed(redactor, fields, shape)
    return changed


def _changed(redactor: Redactor, value: Any, shape: _Shape | Change) -> Any:  # noqa: ANN401 - a JSON value
    """The value with some fields changed, where it has them; what has another shape stays."""
    if callable(shape):
        return shape(redactor, value)
    if "*" in shape:
        return [_changed(redactor, inner, shape["*"]) for inner in value] if is_list(value) else value
    if not is_object(value):
        return value
    return {
        name: inner if inner is None or name not in shape else _changed(redactor, inner, shape[name])
        for name, inner in value.items()
    }


def _event(redactor: Redactor, message: Any) -> Any:  # noqa: ANN401 - a JSON value
    def quoted(found: re.Match[str]) -> str:
        said = found["said"]
        closing = '"' if found["before"].endswith('"') and said.endswith('"') else ""
        return f"{found['before']}{redactor.digest(said.removesuffix(closing).strip())}{closing}"

    text = redactor.texts(message)
    return _QUOTED_OUTPUT.sub(quoted, text) if isinstance(text, str) else text


def _disk(redactor: Redactor, fields: Json) -> Json:
    """A file: what a container printed or left as its message goes, the form of a log's lines stays."""

    def printed(found: re.Match[str]) -> str:
        return found["head"] + redactor.digest(found["printed"])

    text = fields.get("text")
    if not isinstance(text, str) or text_of(fields, "path").endswith(_HOSTS_FILE):
        return fields
    if fields.get("op") == "log" or text_of(fields, "path").endswith(".log"):
        lines = (_LOG_LINE.sub(printed, line) for line in text.split("\n"))
        return {**fields, "text": "\n".join(lines)}
    return {**fields, "text": redactor.digest(text)}


_HANDLER: _Shape = {
    "exec": {"command": Redactor.words},
    "httpGet": {"path": Redactor.texts, "httpHeaders": {"*": {"value": Redactor.everything}}},
}
"""A hook or a probe: its command, its path, the headers it sends."""
_CONTAINER: _Shape = {
    "env": {"*": {"value": Redactor.everything}},
    "command": Redactor.words,
    "args": Redactor.words,
    "livenessProbe": _HANDLER,
    "readinessProbe": _HANDLER,
    "startupProbe": _HANDLER,
    "lifecycle": {"postStart": _HANDLER, "preStop": _HANDLER},
}
_VOLUME: _Shape = {
    "csi": {"volumeAttributes": Redactor.everything},
    "flexVolume": {"options": Redactor.everything},
    "gitRepo": {"repository": Redactor.texts},
}
_SPEC: _Shape = {
    "containers": {"*": _CONTAINER},
    "initContainers": {"*": _CONTAINER},
    "ephemeralContainers": {"*": _CONTAINER},
    "volumes": {"*": _VOLUME},
}
_STATE: _Shape = {
    "waiting": {"message": Redactor.texts},
    "terminated": {"message": Redactor.everything},
}
_STATES: _Shape = {"*": {"state": _STATE, "lastState": _STATE}}
_STATUS: _Shape = {
    "message": Redactor.texts,
    "conditions": {"*": {"message": Redactor.texts}},
    "containerStatuses": _STATES,
    "initContainerStatuses": _STATES,
    "ephemeralContainerStatuses": _STATES,
}
_POD: _Shape = {"metadata": {"annotations": redacted_annotations}, "spec": _SPEC, "status": _STATUS}
_RECORDS: Mapping[str, _Shape | Change] = {
    "pod": {"pod": redacted_pod},
    "status": {"status": redacted_status},
    "event": {"message": _event},
    "kubelet": {"log": Redactor.texts},
    "api": {"body": redacted_pod},
    "probe": Redactor.texts,
    "disk": _disk,
}
"""The fields that may hold secrets, by the kind of their record."""
