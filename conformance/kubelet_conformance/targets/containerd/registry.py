"""A registry on loopback that has every image unless it is told otherwise, as the fake runtime's has."""

from __future__ import annotations

import threading
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from kubelet_conformance.targets.containerd.archive import ImageSource, full_name, image_source

_NOTICES_CLOSE_SECONDS = 0.02
_LOOPBACK = "127.0.0.1"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_BLOB = "application/octet-stream"
_Reply = tuple[str, str, bytes]
"""Type of content, digest and content."""


class Registry:
    """Serves images to whoever asks at its address, in threads of its own, until it is closed."""

    def __init__(self) -> None:
        self._absent: set[str] = set()
        self._users: dict[str, str] = {}
        self._blobs: dict[str, bytes] = {}
        self._server = ThreadingHTTPServer((_LOOPBACK, 0), _handler(self))
        self._server.daemon_threads = True
        serve = partial(self._server.serve_forever, poll_interval=_NOTICES_CLOSE_SECONDS)
        self._thread = threading.Thread(target=serve, name="registry", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Its URL."""
        return f"http://{_LOOPBACK}:{self._server.server_port}"

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def publish(self, name: str, *, there: bool = True, user: str = "") -> None:
        """Whether it has an image, and which user that image sets."""
        name = full_name(name)
        (self._absent.discard if there else self._absent.add)(name)
        self._users[name] = user

    def source(self, name: str) -> ImageSource:
        """The image of that name as it is served."""
        name = full_name(name)
        return image_source(name, user=self._users.get(name, ""))

    def answer(self, target: str) -> _Reply | None:
        """What it has at a path of its API such as /v2/library/img/manifests/1?ns=docker.io."""
        url = urlsplit(target)
        before, kind, reference = _parted(url.path.removeprefix("/v2/"))
        if kind == "blobs" or (kind == "manifests" and reference.startswith("sha256:")):
            blob = self._blobs.get(reference)
            return None if blob is None else (_MANIFEST if kind == "manifests" else _BLOB, reference, blob)
        host = parse_qs(url.query).get("ns", ["docker.io"])[0]
        name = f"{host}/{before}:{reference}"
        if kind != "manifests" or name in self._absent:
            return None
        source = self.source(name)
        self._blobs.update(source.blobs)
        return _MANIFEST, source.digest, source.manifest


def _parted(path: str) -> tuple[str, str, str]:
    """The repository, what is asked of it, and its tag or digest."""
    parts = path.rsplit("/", 2)
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else (path, "", "")  # noqa: PLR2004 - see above


def _handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(with_body=True)

        def do_HEAD(self) -> None:
            self._reply(with_body=False)

        def _reply(self, *, with_body: bool) -> None:
            reply = registry.answer(self.path)
            kind, digest, content = reply or ("application/json", "", b'{"errors":[{"code":"NAME_UNKNOWN"}]}')
            self.send_response(HTTPStatus.OK if reply else HTTPStatus.NOT_FOUND)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            if with_body:
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has there
            """Say nothing."""

    return Handler
