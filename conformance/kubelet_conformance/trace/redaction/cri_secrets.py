"""Where secrets are in the messages of the CRI, by the types of their fields.

A field that the installed messages do not know may hold anything: every string in it is taken for a secret.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

from cri_api.v1 import api_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor

from kubelet_conformance.trace.format.json_values import (
    Json,
    is_list,
    is_object,
    items_of,
    object_of,
    strings,
)
from kubelet_conformance.trace.redaction.api_secrets import Change, redacted_annotations
from kubelet_conformance.trace.redaction.redactor import Redactor

_Plan: TypeAlias = Mapping[str, Change | None]
"""How each field is changed, by its name; None leaves it."""


_SECRETS: Mapping[tuple[str, str], Change] = {
    ("KeyValue", "value"): Redactor.everything,
    ("AuthConfig", "username"): Redactor.everything,
    ("AuthConfig", "password"): Redactor.everything,
    ("AuthConfig", "auth"): Redactor.everything,
    ("AuthConfig", "identity_token"): Redactor.everything,
    ("AuthConfig", "registry_token"): Redactor.everything,
    ("ExecSyncResponse", "stdout"): Redactor.output,
    ("ExecSyncResponse", "stderr"): Redactor.output,
    # A container's termination message (terminationMessagePath), or the end of its log.
    ("ContainerStatus", "message"): Redactor.everything,
    # A client that has the URL of a stream may use it.
    ("ExecResponse", "url"): Redactor.everything,
    ("AttachResponse", "url"): Redactor.everything,
    ("PortForwardResponse", "url"): Redactor.everything,
    ("WindowsSandboxSecurityContext", "credential_spec"): Redactor.everything,
    ("WindowsContainerSecurityContext", "credential_spec"): Redactor.everything,
    ("ContainerConfig", "command"): Redactor.words,
    ("ContainerConfig", "args"): Redactor.words,
    ("ExecSyncRequest", "cmd"): Redactor.words,
    ("ExecRequest", "cmd"): Redactor.words,
    ("RuntimeCondition", "message"): Redactor.texts,
}
"""How fields are changed, by message and name."""
_OF_CLAIMS = frozenset({"NodePrepareResources", "NodeUnprepareResources"})
_OPEN_IN_CLAIMS = frozenset({"namespace", "name", "CDI_devices"})
"""Calls to plugins of dynamic resources, and what of their claims is no secret."""
_SECRET_MAPS: Mapping[str, Change] = {
    "annotations": redacted_annotations,
    # Verbose answers repeat whole configurations, environment included, as text.
    "info": Redactor.everything,
}
"""Fields of these names, in any message, if they are maps of strings."""


def redacted_request(redactor: Redactor, rpc: str, body: Any) -> Any:  # noqa: ANN401 - a JSON value
    """The request of a call without its secrets; that of an unknown call without any string."""
    method = _methods().get(rpc)
    if method is None:
        return _of_plugin(redactor, rpc, body)
    if rpc == "CreateContainer" and is_object(body):
        redactor.remember(_environment(body))
    if rpc == "PullImage" and is_object(body):
        redactor.remember(strings({**object_of(body, "auth"), "server_address": ""}))
    return redacted_message(redactor, method.input_type, body)


def redacted_response(redactor: Redactor, rpc: str, body: Any) -> Any:  # noqa: ANN401 - a JSON value
    """The response of a call, or an item of its stream, likewise."""
    method = _methods().get(rpc)
    if method is None:
        return _of_plugin(redactor, rpc, body)
    return redacted_message(redactor, method.output_type, body)


def _of_plugin(redactor: Redactor, rpc: str, body: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A message of a call that is not the CRI's."""
    if rpc not in _OF_CLAIMS or not is_object(body):
        return redactor.everything(body)
    claims = [
        {**redactor.everything(one), **{name: one[name] for name in _OPEN_IN_CLAIMS & one.keys()}}
        for one in items_of(body, "claims")
    ]
    return {**redactor.everything(body), **({"claims": claims} if claims else {})}


def _environment(request: Json) -> list[str]:
    """The values of the environment that occur nowhere else: a value that is shown elsewhere is no secret."""
    config = object_of(request, "config")
    values = [one.get("value") for one in items_of(config, "envs")]
    expanded = {"envs", "command", "args", "annotations"}
    rest = {name: value for name, value in config.items() if name not in expanded}
    in_the_open = "\0".join(strings([rest, object_of(request, "sandbox_config")]))
    return [value for value in values if isinstance(value, str) and value not in in_the_open]


@cache
def _methods() -> dict[str, MethodDescriptor]:
    services = api_pb2.DESCRIPTOR.services_by_name.values()
    return {method.name: method for service in services for method in service.methods}


def redacted_message(redactor: Redactor, of: Descriptor, value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A message of this type without its secrets."""
    if not is_object(value):
        return redactor.everything(value)
    plan, made = _plan(of), dict[str, Any]()
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


def _change_of(message: Descriptor, field: FieldDescriptor) -> Change | None:
    known = _SECRETS.get((message.name, field.name))
    if known is not None:
        return known
    inner: Descriptor | None = field.message_type
    if inner is None:
        return None
    if inner.GetOptions().map_entry:
        return _SECRET_MAPS.get(field.name)
    return _inside(inner, is_list_of_them=field.is_repeated)


def _inside(message: Descriptor, *, is_list_of_them: bool) -> Change:
    def change(redactor: Redactor, value: Any) -> Any:  # noqa: ANN401 - a JSON value
        if is_list_of_them and is_list(value):
            return [redacted_message(redactor, message, inner) for inner in value]
        return redactor.everything(value) if is_list_of_them else redacted_message(redactor, message, value)

    return change
