"""A registry on loopback with one tiny image under two tags, for runtimes that pull over plain HTTP there.

It speaks as much of the OCI distribution protocol as a pull needs. What it serves is made here, so that
nothing has to come over a network.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import platform
import tarfile
from asyncio import StreamReader, StreamWriter
from typing import Any, Self

_LOOPBACK = "127.0.0.1"
_REPOSITORY = "kubelet-conformance/two"
_TAGS = ("a", "b")
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_ANSWER_SECONDS = 10.0
_HEADER_LINES_MAX = 100


class LoopbackRegistry:
    """Serves while its context is open, at a port that the system chooses.

    `content` makes the image one of its own, so that no other image of the runtime is the same.
    """

    def __init__(self, content: str) -> None:
        self._blobs: dict[str, tuple[str, bytes]] = {}
        self._manifest = _manifest(content, self._blobs)
        self._away = False
        self.was_asked = False
        """Since `set_away`."""
        self._server: asyncio.Server | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, _LOOPBACK, 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def host(self) -> str:
        """Its address and port."""
        return f"{_LOOPBACK}:{self._port}"

    @property
    def absent(self) -> str:
        """The name of an image that it does not have."""
        return f"{self.host}/kubelet-conformance/absent:1"

    async def names(self) -> tuple[str, str]:
        """The image by both of its tags."""
        first, second = (f"{self.host}/{_REPOSITORY}:{tag}" for tag in _TAGS)
        return first, second

    def set_away(self, *, away: bool) -> None:
        """Answer everything with 503; or serve again."""
        self._away = away
        self.was_asked = False

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """One request a connection."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                method, path, *_ = (await reader.readline()).decode("latin-1").split()
                for _ in range(_HEADER_LINES_MAX):
                    if (await reader.readline()).strip() == b"":
                        break
                writer.write(self._answer(method, path))
                await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass
        finally:
            writer.close()

    def _answer(self, method: str, path: str) -> bytes:
        self.was_asked = True
        if self._away:
            return _response("503 Service Unavailable", "text/plain", b"away", method)
        if path.rstrip("/") == "/v2":
            return _response("200 OK", "application/json", b"{}", method)
        kind, _, name = path.removeprefix(f"/v2/{_REPOSITORY}/").partition("?")[0].partition("/")
        if kind == "manifests" and name in {*_TAGS, _digest(self._manifest)}:
            return _response("200 OK", _MANIFEST, self._manifest, method)
        if kind == "blobs" and name in self._blobs:
            return _response("200 OK", *self._blobs[name], method)
        return _response("404 Not Found", "application/json", b'{"errors":[]}', method)


def _response(status: str, kind: str, body: bytes, method: str) -> bytes:
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        f"Docker-Content-Digest: {_digest(body)}",
        "Docker-Distribution-API-Version: registry/2.0",
        "Connection: close",
    )
    head = "".join(f"{line}\r\n" for line in lines) + "\r\n"
    return head.encode() + (b"" if method == "HEAD" else body)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _manifest(content: str, blobs: dict[str, tuple[str, bytes]]) -> bytes:
    """The manifest of an image with one file in one layer; what it refers to goes into `blobs`."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        data = content.encode()
        entry = tarfile.TarInfo("made-for")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    machine = _MACHINES.get(platform.machine(), platform.machine())
    config = {
        "architecture": machine,
        "os": "linux",
        "config": {"Cmd": ["/none"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer.getvalue())]},
    }

    def kept(kind: str, blob: bytes) -> dict[str, Any]:
        blobs[_digest(blob)] = kind, blob
        return {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": kept(_CONFIG, json.dumps(config).encode()),
        "layers": [kept(_LAYER, layer.getvalue())],
    }
    return json.dumps(manifest).encode()
