"""The environment of a container: declared variables, config maps and secrets, and fields of the pod itself.

There are no services here, so no variables of services either. A variable may refer to those before it as
$(NAME); what cannot be resolved stays as it is written, and $$ is a dollar sign.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from lightkube.models.core_v1 import (
    ConfigMapEnvSource,
    ConfigMapKeySelector,
    EnvFromSource,
    EnvVar,
    EnvVarSource,
    Pod,
    SecretEnvSource,
    SecretKeySelector,
)

from kubelet_reference.api import pods
from kubelet_reference.api.expansion import SUBSCRIPT, ConfigError, expand, resource_text
from kubelet_reference.api.go_text import text_of
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.util.ports import NOT_FOUND, ApiError, ApiServer
from kubelet_reference.util.settings import Settings

_KeyReference: TypeAlias = ConfigMapKeySelector | SecretKeySelector
_Reference: TypeAlias = ConfigMapEnvSource | SecretEnvSource | _KeyReference


@dataclass(frozen=True, slots=True)
class Environment:
    """Makes the environment of containers; `api` is None on a node without an API server."""

    api: ApiServer | None
    settings: Settings

    async def make(self, pod: Pod, container: AnyContainer, pod_ips: tuple[str, ...]) -> dict[str, str]:
        """The variables by name, in order; raises `ConfigError` if a source is missing (START-09).

        Where `envFrom` and `env` give the same name, `env` wins.
        """
        imported: dict[str, str] = {}
        for source in container.envFrom or ():
            imported.update(await self._imported(pod, source))
        declared: dict[str, str] = {}
        for variable in container.env or ():
            known = {**imported, **declared}
            value = await self._value(pod, container, variable, known, pod_ips)
            if value is not None:
                declared[variable.name] = value
        return {**declared, **{name: value for name, value in imported.items() if name not in declared}}

    async def _imported(self, pod: Pod, source: EnvFromSource) -> dict[str, str]:
        found: dict[str, str] = {}
        if source.configMapRef is not None:
            found = await self._config_map(pod, source.configMapRef)
        elif source.secretRef is not None:
            found = await self._secret(pod, source.secretRef)
        return {f"{source.prefix or ''}{key}": value for key, value in found.items()}

    async def _value(
        self,
        pod: Pod,
        container: AnyContainer,
        variable: EnvVar,
        known: Mapping[str, str],
        pod_ips: tuple[str, ...],
    ) -> str | None:
        """The variable's value; None leaves it out, where an optional source is missing."""
        source = variable.valueFrom
        if source is None:
            return expand(variable.value or "", known)
        if source.fieldRef is not None:
            return self._field(pod, source.fieldRef.fieldPath, pod_ips)
        if source.resourceFieldRef is not None:
            return resource_text(pod, container, source.resourceFieldRef, self.settings)
        return await self._from_object(pod, source)

    async def _from_object(self, pod: Pod, source: EnvVarSource) -> str | None:
        if source.configMapKeyRef is not None:
            ref = source.configMapKeyRef
            return _chosen(await self._config_map(pod, ref), ref, f"ConfigMap {pods.namespace(pod)}")
        if source.secretKeyRef is not None:
            secret = source.secretKeyRef
            return _chosen(await self._secret(pod, secret), secret, f"Secret {pods.namespace(pod)}")
        return ""

    async def _config_map(self, pod: Pod, ref: _Reference) -> dict[str, str]:
        """The data of a config map; nothing if it is optional and not there."""
        name = ref.name or ""
        try:
            found = await self._server("configmap", name).get_config_map(pods.namespace(pod), name)
        except ApiError as error:
            _forgive(error, ref)
            return {}
        return cast("dict[str, str] | None", found.data) or {}  # pyright: ignore[reportUnknownMemberType]

    async def _secret(self, pod: Pod, ref: _Reference) -> dict[str, str]:
        """The data of a secret; nothing if it is optional and not there."""
        name = ref.name or ""
        try:
            found = await self._server("secret", name).get_secret(pods.namespace(pod), name)
        except ApiError as error:
            _forgive(error, ref)
            return {}
        data = cast("dict[str, str] | None", found.data) or {}  # pyright: ignore[reportUnknownMemberType]
        return {key: text_of(base64.b64decode(value)) for key, value in data.items()}

    def _server(self, kind: str, name: str) -> ApiServer:
        if self.api is None:
            raise ApiError(NOT_FOUND, "NotFound", f'{kind} "{name}" not found')
        return self.api

    def _field(self, pod: Pod, path: str, pod_ips: tuple[str, ...]) -> str:
        subscript = SUBSCRIPT.fullmatch(path)
        if subscript is not None:
            every = pods.labels(pod) if subscript[1] == "labels" else pods.annotations(pod)
            return every.get(subscript[2], "")
        fields = {
            "metadata.name": pods.name(pod),
            "metadata.namespace": pods.namespace(pod),
            "metadata.uid": pods.uid(pod),
            "spec.nodeName": pods.spec(pod).nodeName or self.settings.node_name,
            "spec.serviceAccountName": pods.spec(pod).serviceAccountName or "",
            "status.hostIP": self.settings.node_ip,
            "status.hostIPs": self.settings.node_ip,
            "status.podIP": pod_ips[0] if pod_ips else "",
            "status.podIPs": ",".join(pod_ips),
        }
        if path not in fields:
            raise ConfigError(f"unsupported fieldPath: {path}")
        return fields[path]


def _chosen(data: Mapping[str, str], ref: _KeyReference, where: str) -> str | None:
    """The value of the key that is referred to; None if it is optional and not there."""
    if ref.key not in data and not ref.optional:
        raise ConfigError(f"couldn't find key {ref.key} in {where}/{ref.name}")
    return data.get(ref.key)


def _forgive(error: ApiError, ref: _Reference) -> None:
    """A source that does not exist is fine if it is optional; every other error is not."""
    if not (ref.optional and error.is_not_found):
        raise ConfigError(str(error)) from error
