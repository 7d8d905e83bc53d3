"""Where secrets stand in the messages of the CRI, by the types of their fields.

A field that the installed messages do not know may hold anything: every string in it is taken for a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from cri_api.v1 import api_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

from kubelet_conformance.trace.redaction import Redactor, is_list, is_object, strings
from kubelet_conformance.trace.secret_manifests import redacted_annotations

Json = dict[str, Any]
_Change: TypeAlias = "Callable[[Redactor, Any], Any]"
_Plan: TypeAlias = "Mapping[str, _Change | None]"
"""What becomes of each field by its name; None leaves it."""


def _secret(redactor: Redactor, value: Any) -> Any:  # noqa: ANN401 - a JSON value
    return redactor.everything(value)


def _output(redactor: Redactor, value: Any) -> Any:  # noqa: ANN401 - a JSON value
    return redactor.output(value) if isinstance(value, str) else redactor.everything(value)


def _words(redactor: Redactor, value: Any) -> Any:  # noqa: ANN401 - a JSON value
    return redactor.words(value)


def _text(redactor: Redactor, value: Any) -> Any:  # noqa: ANN401 - a JSON value
    return redactor.texts(value)


_SECRETS: Mapping[tuple[str, str], _Change] = {
    ("KeyValue", "value"): _secret,
    ("AuthConfig", "username"): _secret,
    ("AuthConfig", "password"): _secret,
    ("AuthConfig", "auth"): _secret,
    ("AuthConfig", "identity_token"): _secret,
    ("AuthConfig", "registry_token"): _secret,
    ("ExecSyncResponse", "stdout"): _output,
    ("ExecSyncResponse", "stderr"): _output,
    # What a container left as its last words (terminationMessagePath), or the end of its log.
    ("ContainerStatus", "message"): _secret,
    # Whoever has the URL of a stream may use it.
    ("ExecResponse", "url"): _secret,
    ("AttachResponse", "url"): _secret,
    ("PortForwardResponse", "url"): _secret,
    ("WindowsSandboxSecurityContext", "credential_spec"): _secret,
    ("WindowsContainerSecurityContext", "credential_spec"): _secret,
    ("ContainerConfig", "command"): _words,
    ("ContainerConfig", "args"): _words,
    ("ExecSyncRequest", "cmd"): _words,
    ("ExecRequest", "cmd"): _words,
    ("RuntimeCondition", "message"): _text,
}
"""Fields by message and name, and what becomes of them."""
_SECRET_MAPS: Mapping[str, _Change] = {
    "annotations": redacted_annotations,
    # Verbose answers repeat whole configurations, environment included, as text.
    "info": _secret,
}
"""Fields of these names, in any message, if they are maps of strings."""


def redacted_request(redactor: Redactor, rpc: str, body: Any) -> Any:  # noqa: ANN401 - a JSON value
    """The request of a call without its secrets; that of an unknown call without any string."""
    method = _methods().get(rpc)
    if method is None:
        return redactor.everything(body)
    if rpc == "CreateContainer" and is_object(body):
        redactor.remember(_environment(body))
    if rpc == "PullImage" and is_object(body):
        redactor.remember(strings({**_object(body, "auth"), "server_address": ""}))
    return _changed(redactor, method.input_type, body)


def redacted_response(redactor: Redactor, rpc: str, body: Any) -> Any:  # noqa: ANN401 - a JSON value
    """The response of a call, or an item of its stream, likewise."""
    method = _methods().get(rpc)
    return redactor.everything(body) if method is None else _changed(redactor, method.output_type, body)


def redacted_message(redactor: Redactor, message: Descriptor, body: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A message of this type, likewise."""
    return _changed(redactor, message, body)


def _environment(request: Json) -> list[str]:
    """The values of the environment that stand nowhere else: what the rest tells openly is no secret."""
    config = _object(request, "config")
    envs = config.get("envs")
    values = [one.get("value") for one in envs if is_object(one)] if is_list(envs) else []
    expanded = {"envs", "command", "args", "annotations"}
    rest = {name: value for name, value in config.items() if name not in expanded}
    in_the_open = "\0".join(strings([rest, _object(request, "sandbox_config")]))
    return [value for value in values if isinstance(value, str) and value not in in_the_open]


def _object(value: Json, name: str) -> Json:
    found = value.get(name)
    return found if is_object(found) else {}


@cache
def _methods() -> dict[str, MethodDescriptor]:
    services = api_pb2.DESCRIPTOR.services_by_name.values()
    return {method.name: method for service in services for method in service.methods}


def _changed(redactor: Redactor, message: Descriptor, value: Any) -> Any:  # noqa: ANN401 - a JSON value
    if not is_object(value):
        return redactor.everything(value)
    plan, made = _plan(message), dict[str, Any]()
    for name, inner in value.items():
        if name not in plan:
            made[name] = redactor.everything(inner)
            continue
        change = plan[name]
        made[name] = inner if change is None else change(redactor, inner)
    return made


@cache
def _plan(message: Descriptor) -> _Plan:
    return {field.name: _change_of(message, field) for field in message.fields}


def _change_of(message: Descriptor, field: FieldDescriptor) -> _Change | None:
    known = _SECRETS.get((message.name, field.name))
    if known is not None:
        return known
    inner: Descriptor | None = field.message_type
    if inner is None:
        return None
    if inner.GetOptions().map_entry:
        return _SECRET_MAPS.get(field.name)
    return _each(inner) if field.is_repeated else _one(inner)


def _one(message: Descriptor) -> _Change:
    return lambda redactor, value: _changed(redactor, message, value)


def _each(message: Descriptor) -> _Change:
    def change(redactor: Redactor, value: Any) -> Any:  # noqa: ANN401 - a JSON value
        if not is_list(value):
            return redactor.everything(value)
        return [_changed(redactor, message, inner) for inner in value]

    return change
