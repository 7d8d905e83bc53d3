"""Whose credentials brought an image, and who may use it for that (IMAGE-21, KEP-2535)."""

import json

import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.disk import MemoryDisk
from kubelet_reference.images.keyring import Credential
from kubelet_reference.images.pull_records import PullRecords, without_tag
from kubelet_reference.util.settings import Settings

IMAGE, REF = "registry/app:1", "sha256:1"


def _mine(word: str = "p", name: str = "one") -> Credential:
    return Credential(cri.AuthConfig(username="u", password=word), f"uid-{name}", "default", name)


def _records(
    disk: MemoryDisk | None = None,
    policy: str = "NeverVerifyPreloadedImages",
    listed: tuple[str, ...] = ("registry/*",),
) -> PullRecords:
    settings = Settings(
        image_pull_credentials_verification_policy=policy,
        preloaded_images_verification_allowlist=listed,
    )
    return PullRecords(disk or MemoryDisk(), settings)


def _pulled(records: PullRecords, credential: Credential | None = None) -> PullRecords:
    records.begin(IMAGE)
    records.succeed(IMAGE, REF, credential)
    return records


def test_secret_proves_itself() -> None:
    """Who has what brought the image may use it, under whatever name; nobody else may."""
    records = _pulled(_records(), _mine())

    assert records.may_use(IMAGE, REF, [_mine()])
    assert records.may_use(IMAGE, REF, [_mine(name="two")])
    assert not records.may_use(IMAGE, REF, [_mine(word="other")])
    assert not records.may_use(IMAGE, REF, [])
    assert not records.may_use("mirror/app:1", REF, [_mine()])


def test_anonymous_pull_is_for_all() -> None:
    """What came without credentials is anybody's, and stays so."""
    records = _pulled(_pulled(_records()), _mine())

    assert records.may_use(IMAGE, REF, [])


def test_changed_secret_replaces_itself() -> None:
    """A secret that brought the image again is remembered as it is now."""
    records = _pulled(_pulled(_records(), _mine()), _mine(word="new"))

    assert records.may_use(IMAGE, REF, [_mine(word="new")])
    assert not records.may_use(IMAGE, REF, [_mine()])


@pytest.mark.parametrize(
    ("policy", "preloaded", "pulled"),
    [
        ("NeverVerify", True, True),
        ("NeverVerifyPreloadedImages", True, False),
        ("NeverVerifyAllowlistedImages", True, True),
        ("AlwaysVerify", False, False),
    ],
)
def test_policy(policy: str, *, preloaded: bool, pulled: bool) -> None:
    """Images that nobody here has pulled are trusted as the policy says, others by it alone."""
    assert _records(policy=policy).may_use(IMAGE, REF, []) is preloaded
    assert _pulled(_records(policy=policy), _mine()).may_use(IMAGE, REF, []) is pulled


def test_only_what_is_listed_is_trusted() -> None:
    """The list says which images need no proof: whole names, and paths that end with `/*`."""
    records = _records(policy="NeverVerifyAllowlistedImages", listed=("registry/*", "img"))
    images = (
        "registry/app:1",
        "registry/sub/app@sha256:1",
        "img:1",
        "img/app:1",
        "image:1",
        "registry2/app:1",
    )

    assert [each for each in images if records.may_use(each, REF, [])] == list(images[:3])


def test_records_outlive_the_kubelet() -> None:
    """Another kubelet reads them; a pull that was cut off proves nothing, and one that failed is none."""
    disk = MemoryDisk()
    _pulled(_records(disk), _mine())
    _records(disk).begin("cut/off:1")
    failing = _records(disk)
    failing.begin("failed/app:1")
    failing.fail("failed/app:1")

    assert not _records(disk).may_use(IMAGE, REF, [])
    assert not _records(disk).may_use("cut/off:1", "sha256:2", [])
    assert _records(disk).may_use("failed/app:1", "sha256:3", [])


def test_form_on_disk() -> None:
    """They are written as Kubernetes writes them, with digests in the place of secrets."""
    disk = MemoryDisk()
    _pulled(_records(disk), _mine())
    (name,) = disk.names("/var/lib/kubelet/image_manager/pulled")

    record = json.loads(disk.read(f"/var/lib/kubelet/image_manager/pulled/{name}"))

    assert (record["kind"], record["imageRef"]) == ("ImagePulledRecord", REF)
    (secret,) = record["credentialMapping"]["registry/app"]["kubernetesSecrets"]
    assert (secret["uid"], secret["namespace"], secret["name"]) == ("uid-one", "default", "one")
    assert len(secret["credentialHash"]) == 64


def test_damaged_record_proves_nothing() -> None:
    """A record that cannot be read is none, and the image was not preloaded if its pull was begun."""
    disk = MemoryDisk()
    records = _pulled(_records(disk), None)
    (name,) = disk.names("/var/lib/kubelet/image_manager/pulled")
    disk.write(f"/var/lib/kubelet/image_manager/pulled/{name}", b"{")
    records.begin(IMAGE)

    assert not records.may_use(IMAGE, REF, [])


@pytest.mark.parametrize("image", ["host:5000/app", "host:5000/app:1", "host:5000/app@sha256:1"])
def test_repository(image: str) -> None:
    """Tag and digest do not matter, a port does."""
    assert without_tag(image) == "host:5000/app"
