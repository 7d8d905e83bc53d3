"""What a volume shows: the objects it names, fetched, as files."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from lightkube.models.core_v1 import (
    ConfigMapProjection,
    DownwardAPIProjection,
    KeyToPath,
    Pod,
    SecretProjection,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)

from kubelet_reference.api import pods
from kubelet_reference.util.ports import NOT_FOUND, ApiError, ApiServer, ServiceAccountTokens
from kubelet_reference.util.settings import Settings
from kubelet_reference.volumemanager.paths import SetUpError
from kubelet_reference.volumemanager.payload import Payload, ProjectedFile, downward_files, files_of_keys

_TOKENS = "serviceAccountToken: this kubelet makes no tokens; set automountServiceAccountToken to false"
_MISSING = {
    "configmap": "configmap references non-existent config key",
    "secret": "references non-existent secret key",
}


@dataclass(frozen=True, slots=True)
class NeededObject:
    """A config map or secret that a volume shows; `items` are the keys it shows, None for all."""

    kind: str
    name: str
    items: list[KeyToPath] | None
    optional: bool


def _shown(volume: Volume) -> tuple[Sequence[VolumeProjection], int | None]:
    """What a volume shows, as the sources of a projected one, and the permissions of its files.

    The API has a default for these.
    """
    if (projected := volume.projected) is not None:
        return projected.sources or (), projected.defaultMode
    if (config := volume.configMap) is not None:
        shown = ConfigMapProjection(items=config.items, name=config.name, optional=config.optional)
        return [VolumeProjection(configMap=shown)], config.defaultMode
    if (secret := volume.secret) is not None:
        kept = SecretProjection(items=secret.items, name=secret.secretName, optional=secret.optional)
        return [VolumeProjection(secret=kept)], secret.defaultMode
    if (downward := volume.downwardAPI) is not None:
        return [VolumeProjection(downwardAPI=DownwardAPIProjection(downward.items))], downward.defaultMode
    return (), None


class Contents:
    """Fetches what volumes show; `api` is None on a node without an API server, where no object is there.

    `tokens` is None where no service account has any.
    """

    def __init__(
        self, api: ApiServer | None, tokens: ServiceAccountTokens | None, settings: Settings
    ) -> None:
        self._api = api
        self._tokens = tokens
        self._settings = settings

    async def files(self, pod: Pod, volume: Volume) -> Payload:
        """The files of a volume as they are to be now; raises `SetUpError` with all that is missing."""
        files: Payload = {}
        problems: list[str] = []
        sources, mode = _shown(volume)
        for source in sources:
            try:
                files.update(await self._source(pod, source, cast("int", mode)))
            except SetUpError as error:
                problems.append(str(error))
        if problems:
            raise SetUpError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        return files

    async def _source(self, pod: Pod, source: VolumeProjection, mode: int) -> Payload:
        if source.serviceAccountToken is not None:
            return await self._token(pod, source.serviceAccountToken, mode)
        if source.downwardAPI is not None:
            return downward_files(pod, source.downwardAPI.items, mode, self._settings)
        needed = _needed(source)
        if needed is None:
            raise SetUpError("a source of this projected volume is not supported by this kubelet")
        return await self._object(pod, needed, mode)

    async def _token(self, pod: Pod, wanted: ServiceAccountTokenProjection, mode: int) -> Payload:
        if self._tokens is None:
            raise SetUpError(_TOKENS)
        try:
            text = await self._tokens.get(pod, wanted.audience or "", wanted.expirationSeconds)
        except ApiError as error:
            raise SetUpError(f"failed to fetch token: {error}") from error
        return {wanted.path: ProjectedFile(text.encode(), mode)}

    async def _object(self, pod: Pod, needed: NeededObject, mode: int) -> Payload:
        missing = None if needed.optional else _MISSING[needed.kind]
        return files_of_keys(await self._data(pods.namespace(pod), needed), needed.items, mode, missing)

    async def _data(self, namespace: str, needed: NeededObject) -> Mapping[str, bytes]:
        """The keys of an object; nothing for an optional one that is not there."""
        try:
            return await self._fetched(namespace, needed)
        except ApiError as error:
            if error.is_not_found and needed.optional:
                return {}
            missing = f'{needed.kind} "{needed.name}" not found'
            raise SetUpError(missing if error.is_not_found else str(error)) from error

    async def _fetched(self, namespace: str, needed: NeededObject) -> dict[str, bytes]:
        if self._api is None:
            raise ApiError(NOT_FOUND, "NotFound", "there is no API server")
        if needed.kind == "secret":
            secret = await self._api.get_secret(namespace, needed.name)
            return _decoded(cast("dict[str, str] | None", secret.data))  # pyright: ignore[reportUnknownMemberType]
        config = await self._api.get_config_map(namespace, needed.name)
        data = cast("dict[str, str] | None", config.data) or {}  # pyright: ignore[reportUnknownMemberType]
        binary = cast("dict[str, str] | None", config.binaryData)  # pyright: ignore[reportUnknownMemberType]
        return {**{key: text.encode() for key, text in data.items()}, **_decoded(binary)}


def _needed(source: VolumeProjection) -> NeededObject | None:
    if source.configMap is not None:
        config = source.configMap
        return NeededObject("configmap", config.name or "", config.items, bool(config.optional))
    if source.secret is not None:
        secret = source.secret
        return NeededObject("secret", secret.name or "", secret.items, bool(secret.optional))
    return None


def _decoded(data: Mapping[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (data or {}).items()}
