"""Where secrets stand in manifests, statuses and other objects of the API, by their shape."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from kubelet_conformance.trace.redaction import Redactor, is_list, is_object

Json = dict[str, Any]

_OPEN_ANNOTATION = re.compile(
    r"(io\.kubernetes\.|kubernetes\.io/|[a-z0-9-]+\.(alpha|beta)\.kubernetes\.io/).*", re.DOTALL
)
"""Annotations that the kubelet itself writes and reads; `kubectl.kubernetes.io/...` is none of them."""
_HOOK_ANNOTATION = "io.kubernetes.container.preStopHandler"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_OPTIONS = {"csi": "volumeAttributes", "flexVolume": "options"}
_QUOTED_OUTPUT = re.compile(r"(?P<before>probe (?:failed|warning): |, message: \")(?P<said>.+)", re.DOTALL)
"""What events quote of the output of a probe or hook."""
_SECRET_OBJECTS = frozenset({"secrets", "configmaps", "serviceaccounts"})
_OPEN_KINDS = frozenset(
    {"deleted", "disk", "end", "expect", "fault", "http", "kubelet", "metrics", "runtime"}
)
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
    return msgspec.json.encode(_handler(redactor, hook)).decode()


def redacted_pod(redactor: Redactor, pod: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A pod's manifest without its secrets."""
    if not is_object(pod):
        return redactor.everything(pod)
    changed = _with(
        pod, "metadata", lambda meta: _with(meta, "annotations", _bound(redactor, redacted_annotations))
    )
    changed = _with(changed, "spec", _bound(redactor, _spec))
    return _with(changed, "status", _bound(redactor, redacted_status))


def redacted_status(redactor: Redactor, status: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A pod's status without what its containers said at their end, nor secrets in its texts."""
    text = redactor.texts

    def state(value: Any) -> Any:  # noqa: ANN401 - a JSON value
        waits = _with(value, "waiting", lambda waiting: _with(waiting, "message", text))
        return _with(waits, "terminated", lambda ended: _with(ended, "message", redactor.everything))

    def container(value: Any) -> Any:  # noqa: ANN401 - a JSON value
        return _with(_with(value, "state", state), "lastState", state)

    changed = _with(status, "message", text)
    changed = _with(changed, "conditions", lambda each: _every(each, lambda one: _with(one, "message", text)))
    for name in _STATUSES:
        changed = _with(changed, name, lambda each: _every(each, container))
    return changed


def redacted_fields(redactor: Redactor, kind: str, fields: Json) -> Json:
    """The fields of a record that is no call and no reply, without its secrets."""
    if kind == "pod":
        changed: Json = _with(fields, "pod", _bound(redactor, redacted_pod))
    elif kind == "status":
        changed = _with(fields, "status", _bound(redactor, redacted_status))
    elif kind == "event":
        changed = _with(fields, "message", _bound(redactor, _event))
    elif kind == "api":
        changed = _with(fields, "body", lambda body: _object(redactor, fields, body))
    elif kind == "probe":
        changed = redactor.texts(fields)
    else:
        changed = fields if kind in _OPEN_KINDS else redactor.everything(fields)
    return changed


def _event(redactor: Redactor, message: Any) -> Any:  # noqa: ANN401 - a JSON value
    def quoted(found: re.Match[str]) -> str:
        said = found["said"]
        closing = '"' if found["before"].endswith('"') and said.endswith('"') else ""
        return f"{found['before']}{redactor.digest(said.removesuffix(closing).strip())}{closing}"

    text = redactor.texts(message)
    return _QUOTED_OUTPUT.sub(quoted, text) if isinstance(text, str) else text


def _object(redactor: Redactor, write: Json, body: Any) -> Any:  # noqa: ANN401 - a JSON value
    """What the kubelet writes: a pod or a part of one; of a secret or a token nothing stays."""
    if write.get("resource") in _SECRET_OBJECTS or not is_object(body):
        return redactor.everything(body)
    return redacted_pod(redactor, body)


def _spec(redactor: Redactor, spec: Any) -> Any:  # noqa: ANN401 - a JSON value
    changed = spec
    for name in _CONTAINERS:
        changed = _with(changed, name, lambda each: _every(each, _bound(redactor, _container)))
    return _with(changed, "volumes", lambda each: _every(each, _bound(redactor, _volume)))


def _container(redactor: Redactor, container: Any) -> Any:  # noqa: ANN401 - a JSON value
    def variable(env: Any) -> Any:  # noqa: ANN401 - a JSON value
        return _with(env, "value", redactor.everything)

    changed = _with(container, "env", lambda envs: _every(envs, variable))
    for name in ("command", "args"):
        changed = _with(changed, name, redactor.words)
    for name in _PROBES:
        changed = _with(changed, name, _bound(redactor, _handler))

    def hooks(lifecycle: Any) -> Any:  # noqa: ANN401 - a JSON value
        made = lifecycle
        for name in _HOOKS:
            made = _with(made, name, _bound(redactor, _handler))
        return made

    return _with(changed, "lifecycle", hooks)


def _handler(redactor: Redactor, handler: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A hook or a probe: its command, its path, the headers it sends."""

    def get(value: Any) -> Any:  # noqa: ANN401 - a JSON value
        made = _with(value, "path", redactor.texts)
        return _with(
            made, "httpHeaders", lambda each: _every(each, lambda h: _with(h, "value", redactor.everything))
        )

    changed = _with(handler, "exec", lambda action: _with(action, "command", redactor.words))
    return _with(changed, "httpGet", get)


def _volume(redactor: Redactor, volume: Any) -> Any:  # noqa: ANN401 - a JSON value
    def options(name: str) -> Callable[[Any], Any]:
        return lambda source: _with(source, name, redactor.everything)

    changed = volume
    for kind, name in _OPTIONS.items():
        changed = _with(changed, kind, options(name))
    return _with(changed, "gitRepo", lambda source: _with(source, "repository", redactor.texts))


def _bound(redactor: Redactor, change: Callable[[Redactor, Any], Any]) -> Callable[[Any], Any]:
    return lambda value: change(redactor, value)


def _with(value: Any, name: str, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - a JSON value
    """The object with one field changed, where it has it; what is no object stays."""
    if not is_object(value) or value.get(name) is None:
        return value
    return {**value, name: change(value[name])}


def _every(value: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - a JSON value
    return [change(inner) for inner in value] if is_list(value) else value
