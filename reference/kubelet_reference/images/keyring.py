"""Credentials for registries, from the secrets that a pod names (IMAGE-13, IMAGE-14)."""

import base64
import fnmatch
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod, Secret
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_reference.api import pods
from kubelet_reference.api.events import Recorder
from kubelet_reference.api.go_text import text_of
from kubelet_reference.images.image_names import DEFAULT_REGISTRY, registry_of
from kubelet_reference.util.ports import ApiError, ApiServer

FAILED_TO_RETRIEVE = "FailedToRetrieveImagePullSecret"
_DOCKER_HUB = "index.docker.io"
_KEY = re.compile(r"^(?:https?://)?([^/]*)/?(?:v[12]/)?(.*)$", re.DOTALL)


async def pull_secrets(api: ApiServer | None, recorder: Recorder, pod: Pod) -> tuple[Secret, ...]:
    """The existing pull secrets that the pod names; one that is missing is only reported by an event."""
    found: list[Secret] = []
    missing: list[str] = []
    for name in [ref.name for ref in pods.spec(pod).imagePullSecrets or () if ref.name]:
        secret = await _secret(api, pods.namespace(pod), name)
        if secret is None:
            missing.append(name)
        else:
            found.append(secret)
    if missing:
        text = f"Unable to retrieve some image pull secrets ({', '.join(missing)})"
        recorder.warning(pod, FAILED_TO_RETRIEVE, f"{text}; attempting to pull the image may not succeed.")
    return tuple(found)


async def _secret(api: ApiServer | None, namespace: str, name: str) -> Secret | None:
    try:
        return await api.get_secret(namespace, name) if api is not None else None
    except ApiError:
        return None


class SecretRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A secret that has brought an image, and a digest of what it held."""

    uid: str
    namespace: str
    name: str
    credential_hash: str


@dataclass(frozen=True, slots=True)
class Credential:
    """What one secret gives for a registry, and which secret that is."""

    auth: cri.AuthConfig
    uid: str
    namespace: str
    name: str

    @property
    def digest(self) -> str:
        """Identifies credentials without revealing them."""
        return hashlib.sha256(f"{self.auth.username}:{self.auth.password}".encode()).hexdigest()

    def record(self) -> SecretRecord:
        """How it is remembered on disk."""
        return SecretRecord(
            uid=self.uid, namespace=self.namespace, name=self.name, credential_hash=self.digest
        )

    def is_of(self, record: SecretRecord) -> bool:
        """Whether the record is of the same secret, whatever that held then."""
        return (self.uid, self.namespace, self.name) == (record.uid, record.namespace, record.name)

    def proves(self, record: SecretRecord) -> bool:
        """Whether it is the credential of the record: it holds the same, in that secret or in another."""
        return record.credential_hash == self.digest


def secret_credentials(image: str, known: Sequence[Secret]) -> tuple[Credential, ...]:
    """The credentials that fit an image, the most specific first; none means an anonymous pull."""
    registry, repository = registry_of(image)
    fitting: list[tuple[int, Credential]] = []
    for secret in known:
        for where, entry in _entries(secret).items():
            host, path = _place(where)
            if fnmatch.fnmatchcase(registry, host) and repository.startswith(path):
                fitting.append((len(path), _credential(secret, _auth(entry))))
    fitting.sort(key=_specificity, reverse=True)
    return tuple(credential for _, credential in fitting)


def _credential(secret: Secret, auth: cri.AuthConfig) -> Credential:
    meta = secret.metadata or ObjectMeta()
    return Credential(auth, meta.uid or "", meta.namespace or "", meta.name or "")


def _specificity(fit: tuple[int, Credential]) -> int:
    return fit[0]


def _entries(secret: Secret) -> Mapping[str, Mapping[str, str]]:
    """The registries of a secret of either form; none if it cannot be read."""
    data = cast("dict[str, str] | None", secret.data) or {}  # pyright: ignore[reportUnknownMemberType]
    try:
        if ".dockerconfigjson" in data:
            read = json.loads(base64.b64decode(data[".dockerconfigjson"]))["auths"]
        else:
            read = json.loads(base64.b64decode(data[".dockercfg"]))
    except (ValueError, KeyError, TypeError):
        return {}
    return cast("dict[str, dict[str, str]]", read) if isinstance(read, dict) else {}


def _place(where: str) -> tuple[str, str]:
    """Host pattern and path of a registry key such as https://index.docker.io/v1/ or quay.io/team."""
    _, host, path, _ = _KEY.split(where)
    return DEFAULT_REGISTRY if host == _DOCKER_HUB else host, path


def _auth(entry: Mapping[str, str]) -> cri.AuthConfig:
    user, password = entry.get("username", ""), entry.get("password", "")
    if entry.get("auth"):
        user, _, password = text_of(base64.b64decode(entry["auth"])).partition(":")
    return cri.AuthConfig(username=user, password=password)
