"""Images as OCI archives and blobs, made of one layer: busybox and our scripts."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from kubelet_conformance.targets.containerd.host_commands import said_by
from kubelet_conformance.targets.containerd.requirements import BUSYBOX

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_ARCHITECTURES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "armv7l": "arm",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
}
_MAIN = ("run", "exit", "seq", "serve")
"""The names under which a container's main process is known."""
_TOOLS = ("answer", "end", "oom", "pause", "x", "xf")
_USERS = """\
root:x:0:0:root:/:/bin/sh
app:x:1001:1001:app:/:/bin/sh
"""
_EXECUTABLE, _READABLE, _ANYBODYS = 0o755, 0o644, 0o1777


@dataclass(frozen=True, slots=True)
class ImageSource:
    """An image in the form in which registries and archives hold it: blobs by their digests."""

    manifest: bytes
    config: bytes
    layer: bytes

    @property
    def digest(self) -> str:
        """Names the image, with its scheme."""
        return _digest(self.manifest)

    @property
    def id(self) -> str:
        """What the CRI calls the image's id: the digest of its configuration."""
        return _digest(self.config)

    @property
    def blobs(self) -> dict[str, bytes]:
        """All of it, by digest."""
        return {_digest(each): each for each in (self.manifest, self.config, self.layer)}


def full_name(name: str) -> str:
    """An image's name as containerd reports it: with registry and tag, which may be left out.

    >>> full_name("img:1")
    'docker.io/library/img:1'
    """
    first, slash, _ = name.partition("/")
    if not slash:
        name = f"docker.io/library/{name}"
    elif not ("." in first or ":" in first or first == "localhost"):
        name = f"docker.io/{name}"
    last = name.rpartition("/")[2]
    return name if ":" in last or "@" in last else f"{name}:latest"


def image_source(name: str, *, command: tuple[str, ...] = ("run",), user: str = "") -> ImageSource:
    """The image of that name: all have one layer, and each a configuration, and thus an id, of its own."""
    settings: dict[str, Any] = {"Cmd": list(command), "Env": ["PATH=/bin"], "Labels": {"name": name}}
    return _image(layer(), {**settings, **({"User": user} if user else {})})


def tiny_image(content: str) -> ImageSource:
    """An image of one file with this content."""
    return _image(_tar([_file("made-for", content.encode())]), {"Cmd": ["/none"]})


def _image(content: bytes, settings: Mapping[str, Any]) -> ImageSource:
    config = _json(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [_digest(content)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [_descriptor(_LAYER, content)],
        }
    )
    return ImageSource(manifest, config, content)


def archive(images: Mapping[str, ImageSource]) -> bytes:
    """An OCI archive of these images, by their full names."""
    entries = [
        {**_descriptor(_MANIFEST, source.manifest), "annotations": {"io.containerd.image.name": name}}
        for name, source in images.items()
    ]
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries}
    blobs = {digest: blob for source in images.values() for digest, blob in source.blobs.items()}
    return _tar(
        [
            _file("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
            _file("index.json", _json(index)),
            *(
                _file(f"blobs/sha256/{digest.removeprefix('sha256:')}", blob)
                for digest, blob in blobs.items()
            ),
        ]
    )


@cache
def layer() -> bytes:
    """The file system of every image: busybox with its applets, and the scripts over them."""
    scripts = files("kubelet_conformance.targets.containerd") / "rootfs"
    applets = set(said_by(str(BUSYBOX), "--list").split()) - {"busybox", *_MAIN, *_TOOLS}
    return _tar(
        [
            *(_folder(name) for name in ("bin", "etc", "lib", "shared")),
            _folder("tmp", _ANYBODYS),
            _file("etc/passwd", _USERS.encode()),
            _file("bin/busybox", BUSYBOX.read_bytes(), _EXECUTABLE),
            _file("lib/common", (scripts / "common").read_bytes()),
            _file("lib/main", (scripts / "main").read_bytes(), _EXECUTABLE),
            *(_file(f"bin/{name}", (scripts / name).read_bytes(), _EXECUTABLE) for name in _TOOLS),
            *(_link(f"bin/{name}", "/lib/main") for name in _MAIN),
            *(_link(f"bin/{name}", "busybox") for name in sorted(applets)),
        ]
    )


_Entry = tuple[tarfile.TarInfo, bytes]


def _tar(entries: Iterable[_Entry]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode = kind, mode
    return info


def _folder(name: str, mode: int = _EXECUTABLE) -> _Entry:
    return _entry(name, tarfile.DIRTYPE, mode), b""


def _link(name: str, target: str) -> _Entry:
    info = _entry(name, tarfile.SYMTYPE, 0o777)
    info.linkname = target
    return info, b""


def _file(name: str, data: bytes, mode: int = _READABLE) -> _Entry:
    info = _entry(name, tarfile.REGTYPE, mode)
    info.size = len(data)
    return info, data


def _descriptor(kind: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
