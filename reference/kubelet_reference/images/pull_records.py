"""What is kept on disk of pulls: which are under way, and whose credentials brought what came (KEP-2535).

An image that one pod has pulled with its secrets is on the node for all. With these records the kubelet
can ask every other pod to prove that it may use the image too (IMAGE-21). They outlive the kubelet: an image
whose pull was begun and never recorded as done proves nothing.
"""

import hashlib
import re
from collections.abc import Sequence

import msgspec

from kubelet_reference.images.keyring import Credential, SecretRecord
from kubelet_reference.util.ports import Disk
from kubelet_reference.util.settings import Settings

_API_VERSION = "kubelet.config.k8s.io/v1alpha1"
NEVER = "NeverVerify"
PRELOADED, ALLOWED = "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages"
VERIFICATION_POLICIES = (PRELOADED, ALLOWED, NEVER, "AlwaysVerify")
"""What imagePullCredentialsVerificationPolicy may be, the usual one first."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind"):
    """An object on disk, as Kubernetes has it."""

    api_version: str = _API_VERSION


class _Intent(_Kept, frozen=True, kw_only=True, tag="ImagePullIntent"):
    image: str


class _Access(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Who may use an image under one name: every pod of the node, or those with one of these secrets."""

    node_pods_accessible: bool = False
    kubernetes_secrets: tuple[SecretRecord, ...] = ()


class _Pulled(_Kept, frozen=True, kw_only=True, tag="ImagePulledRecord"):
    image_ref: str
    credential_mapping: dict[str, _Access]


class PullRecords:
    """The records of one node, below its kubelet's folder; images are named as they are pulled."""

    def __init__(self, disk: Disk, settings: Settings) -> None:
        self._disk = disk
        self._settings = settings
        self._root = f"{settings.root_dir}/image_manager"

    def begin(self, image: str) -> None:
        """A pull begins."""
        self._write(self._pulling(image), _Intent(image=image))

    def fail(self, image: str) -> None:
        """It has failed."""
        self._disk.remove(self._pulling(image))

    def succeed(self, image: str, ref: str, credential: Credential | None) -> None:
        """It has brought the image `ref`, with that credential or anonymously: then every pod may use it."""
        path = self._pulled(ref)
        known = self._read(path)
        mapping = known.credential_mapping if known is not None else {}
        repository = without_tag(image)
        before = mapping.get(repository, _Access())
        if credential is None or before.node_pods_accessible:
            after = _Access(node_pods_accessible=True)
        else:
            others = tuple(one for one in before.kubernetes_secrets if not credential.is_of(one))
            after = _Access(kubernetes_secrets=(*others, credential.record()))
        self._write(path, _Pulled(image_ref=ref, credential_mapping={**mapping, repository: after}))
        self._disk.remove(self._pulling(image))

    def may_use(self, image: str, ref: str, credentials: Sequence[Credential]) -> bool:
        """Whether a pod with these credentials may use the image that is there, without pulling it."""
        policy = self._settings.image_pull_credentials_verification_policy
        if policy == NEVER or (policy == ALLOWED and self._is_listed(image)):
            return True
        record = self._read(self._pulled(ref))
        if record is None:
            return policy == PRELOADED and self._is_preloaded(image)
        access = record.credential_mapping.get(without_tag(image), _Access())
        if access.node_pods_accessible:
            return True
        return any(mine.proves(one) for mine in credentials for one in access.kubernetes_secrets)

    def _is_preloaded(self, image: str) -> bool:
        """This kubelet never began to pull it."""
        return self._disk.kind(self._pulling(image)) is None

    def _is_listed(self, image: str) -> bool:
        """It is on the allowlist, itself or by a path that ends with `/*`."""
        allowed, name = self._settings.preloaded_images_verification_allowlist, without_tag(image)
        return any(name == one or (one.endswith("/*") and name.startswith(one[:-1])) for one in allowed)

    def _pulling(self, image: str) -> str:
        return f"{self._root}/pulling/sha256-{hashlib.sha256(image.encode()).hexdigest()}"

    def _pulled(self, ref: str) -> str:
        return f"{self._root}/pulled/sha256-{hashlib.sha256(ref.encode()).hexdigest()}"

    def _read(self, path: str) -> _Pulled | None:
        """The record; None if there is none, or none that can be read."""
        try:
            return msgspec.json.decode(self._disk.read(path), type=_Pulled)
        except (OSError, msgspec.MsgspecError):
            return None

    def _write(self, path: str, record: _Intent | _Pulled) -> None:
        self._disk.make_folder(path.rpartition("/")[0])
        self._disk.write(path, msgspec.json.encode(record), 0o600)


def without_tag(image: str) -> str:
    """The repository of an image, by which its credentials are known."""
    return re.sub(r"(:[^/@]*)?(@.*)?$", "", image)
