"""What a volume shows: the objects it names, fetched, as files."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from lightkube.models.core_v1 import KeyToPath, Pod, ServiceAccountTokenProjection, Volume, VolumeProjection

from kubelet_reference.api import pods
from kubelet_reference.util.ports import ApiError, ApiServer, ServiceAccountTokens
from kubelet_reference.util.settings import Settings
from kubelet_reference.volumemanager.paths import SetUpError
from kubelet_reference.volumemanager.payload import (
    DEFAULT_MODE,
    Payload,
    ProjectedFile,
    downward_files,
    files_of_keys,
)

_NOT_FOUND = 404
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


def needed_objects(volume: Volume) -> Iterator[NeededObject]:
    """The config maps and secrets that the volume shows, optional ones included."""
    config, secret = volume.configMap, volume.secret
    if config is not None:
        yield NeededObject("configmap", config.name or "", config.items, bool(config.optional))
    if secret is not None:
        yield NeededObject("secret", secret.secretName or "", secret.items, bool(secret.optional))
    for source in (volume.projected and volume.projected.sources) or ():
        found = _projected_object(source)
        if found is not None:
            yield found


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
        if volume.projected is not None:
            return await self._projected(pod, volume)
        downward, source = volume.downwardAPI, volume.configMap or volume.secret
        if downward is not None:
            return downward_files(pod, downward.items, downward.defaultMode, self._settings)
        [needed] = needed_objects(volume)
        return await self._object(pod, needed, source.defaultMode if source else None)

    async def _projected(self, pod: Pod, volume: Volume) -> Payload:
        files: Payload = {}
        problems: list[str] = []
        mode = volume.projected.defaultMode if volume.projected else None
        for source in (volume.projected and volume.projected.sources) or ():
            try:
                files.update(await self._source(pod, source, mode))
            except SetUpError as error:
                problems.append(str(error))
        if problems:
            raise SetUpError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        return files

    async def _source(self, pod: Pod, source: VolumeProjection, mode: int | None) -> Payload:
        if source.serviceAccountToken is not None:
            return await self._token(pod, source.serviceAccountToken, mode)
        if source.downwardAPI is not None:
            return downward_files(pod, source.downwardAPI.items, mode, self._settings)
        needed = _projected_object(source)
        if needed is None:
            raise SetUpError("a source of this projected volume is not supported by this kubelet")
        return await self._object(pod, needed, mode)

    async def _token(self, pod: Pod, wanted: ServiceAccountTokenProjection, mode: int | None) -> Payload:
        if self._tokens is None:
            raise SetUpError(_TOKENS)
        try:
            text = await self._tokens.get(pod, wanted.audience or "", wanted.expirationSeconds)
        except ApiError as error:
            raise SetUpError(f"failed to fetch token: {error}") from error
        return {wanted.path: ProjectedFile(text.encode(), DEFAULT_MODE if mode is None else mode)}

    async def _object(self, pod: Pod, needed: NeededObject, mode: int | None) -> Payload:
        missing = None if needed.optional else _MISSING[needed.kind]
        return files_of_keys(await self._data(pods.namespace(pod), needed), needed.items, mode, missing)

    async def _data(self, namespace: str, needed: NeededObject) -> Mapping[str, bytes]:
        """The keys of an object; nothing for an optional one that is not there."""
        try:
            return await self._fetched(namespace, needed)
        except ApiError as error:
            if error.code != _NOT_FOUND:
                raise SetUpError(str(error)) from error
            if needed.optional:
                return {}
            raise SetUpError(f'{needed.kind} "{needed.name}" not found') from error

    async def _fetched(self, namespace: str, needed: NeededObject) -> dict[str, bytes]:
        if self._api is None:
            if needed.optional:
                return {}
            raise SetUpError("there is no API server")
        if needed.kind == "secret":
            secret = await self._api.get_secret(namespace, needed.name)
            return _decoded(cast("dict[str, str] | None", secret.data))  # pyright: ignore[reportUnknownMemberType]
        config = await self._api.get_config_map(namespace, needed.name)
        data = cast("dict[str, str] | None", config.data) or {}  # pyright: ignore[reportUnknownMemberType]
        binary = cast("dict[str, str] | None", config.binaryData)  # pyright: ignore[reportUnknownMemberType]
        return {**{key: text.encode() for key, text in data.items()}, **_decoded(binary)}


def _projected_object(source: VolumeProjection) -> NeededObject | None:
    if source.configMap is not None:
        config = source.configMap
        return NeededObject("configmap", config.name or "", config.items, bool(config.optional))
    if source.secret is not None:
        secret = source.secret
        return NeededObject("secret", secret.name or "", secret.items, bool(secret.optional))
    return None


def _decoded(data: Mapping[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (data or {}).items()}
