"""The fakes fit what the kubelet asks for: the type checkers hold it, and here it is tried once."""

import pytest

from kubelet_fakes.clock import run
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.util.ports import Disk, FetchError, ManifestUrl


def test_disk_fits() -> None:
    """The kubelet's disk can be memory."""
    disk: Disk = MemoryDisk()
    disk.make_folder("/manifests")
    disk.write("/manifests/web.yaml", b"kind: Pod")

    assert list(disk.names("/manifests")) == ["web.yaml"]


def test_manifest_url_fits() -> None:
    """The kubelet's manifest URL can be memory, and fails with the kubelet's own error."""
    web = MemoryUrl(FetchError)
    web.refuse("http://manifests")
    url: ManifestUrl = web

    with pytest.raises(FetchError, match="connection refused"):
        run(url.fetch("http://manifests"))
