"""Registries on loopback: as much of the OCI distribution protocol as a pull over plain HTTP needs.

What they serve is made here, so that nothing has to come over a network.
"""

import threading
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, urlsplit

from kubelet_conformance.targets.containerd.archive import ImageSource, full_name, image_source, tiny_image

_NOTICES_CLOSE_SECONDS = 0.02
_ANSWER_SECONDS = 10.0
_LOOPBACK = "127.0.0.1"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_BLOB = "application/octet-stream"
_JSON = "application/json"
_Reply = tuple[HTTPStatus, str, str, bytes]
"""Status, type of content, digest and content."""
_NOT_FOUND: _Reply = (HTTPStatus.NOT_FOUND, _JSON, "", b'{"errors":[{"code":"NAME_UNKNOWN"}]}')


class LoopbackRegistry:
    """Serves images to any client, in threads of its own, until it is closed."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._away = False
        self.was_asked = False
        """Since `set_away`."""
        self._server = ThreadingHTTPServer((_LOOPBACK, 0), _handler(self))
        self._server.daemon_threads = True
        serve = partial(self._server.serve_forever, poll_interval=_NOTICES_CLOSE_SECONDS)
        self._thread = threading.Thread(target=serve, name="registry", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def host(self) -> str:
        """Its address and port."""
        return f"{_LOOPBACK}:{self._server.server_port}"

    @property
    def address(self) -> str:
        """Its URL."""
        return f"http://{self.host}"

    def close(self) -> None:
        """Answer no more requests."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def set_away(self, *, away: bool) -> None:
        """Answer everything with 503; or serve again."""
        self._away = away
        self.was_asked = False

    def find(self, host: str, repository: str, tag: str) -> ImageSource | None:
        """The image of that name, if it has it; `host` is the registry that it stands for."""
        raise NotImplementedError

    def answer(self, target: str) -> _Reply:
        """What it answers at a path of its API such as /v2/library/img/manifests/1?ns=docker.io."""
        self.was_asked = True
        if self._away:
            return HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", "", b"away"
        url = urlsplit(target)
        if url.path.rstrip("/") == "/v2":
            return HTTPStatus.OK, _JSON, "", b"{}"
        repository, kind, reference = _parted(url.path.removeprefix("/v2/"))
        if kind == "blobs" or (kind == "manifests" and reference.startswith("sha256:")):
            blob = self._blobs.get(reference)
            type_ = _MANIFEST if kind == "manifests" else _BLOB
            return _NOT_FOUND if blob is None else (HTTPStatus.OK, type_, reference, blob)
        host = parse_qs(url.query).get("ns", ["docker.io"])[0]
        source = self.find(host, repository, reference) if kind == "manifests" else None
        if source is None:
            return _NOT_FOUND
        self._blobs.update(source.blobs)
        return HTTPStatus.OK, _MANIFEST, source.digest, source.manifest


class Registry(LoopbackRegistry):
    """Has every image by default, as the fake runtime's registry has."""

    def __init__(self) -> None:
        self._absent: set[str] = set()
        self._users: dict[str, str] = {}
        super().__init__()

    def publish(self, name: str, *, there: bool = True, user: str = "") -> None:
        """Whether it has an image, and which user that image sets."""
        name = full_name(name)
        (self._absent.discard if there else self._absent.add)(name)
        self._users[name] = user

    def source(self, name: str) -> ImageSource:
        """The image of that name as it is served."""
        name = full_name(name)
        return image_source(name, user=self._users.get(name, ""))

    def find(self, host: str, repository: str, tag: str) -> ImageSource | None:
        """The image of that name."""
        name = f"{host}/{repository}:{tag}"
        return None if name in self._absent else self.source(name)


class TwoTags(LoopbackRegistry):
    """Has one tiny image under two tags; `content` makes it differ from all others of the runtime."""

    _repository = "kubelet-conformance/two"
    _tags = ("a", "b")

    def __init__(self, content: str) -> None:
        self._image = tiny_image(content)
        super().__init__()

    @property
    def absent(self) -> str:
        """The name of an image that it does not have."""
        return f"{self.host}/kubelet-conformance/absent:1"

    async def names(self) -> tuple[str, str]:
        """The image by both of its tags."""
        first, second = (f"{self.host}/{self._repository}:{tag}" for tag in self._tags)
        return first, second

    def find(self, host: str, repository: str, tag: str) -> ImageSource | None:
        """The image, by either tag."""
        del host
        return self._image if repository == self._repository and tag in self._tags else None


def _parted(path: str) -> tuple[str, str, str]:
    """The repository, what is asked of it, and its tag or digest."""
    parts = path.rsplit("/", 2)
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else (path, "", "")  # noqa: PLR2004 - see above


def _handler(registry: LoopbackRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _ANSWER_SECONDS

        def do_GET(self) -> None:
            self._reply(with_body=True)

        def do_HEAD(self) -> None:
            self._reply(with_body=False)

        def _reply(self, *, with_body: bool) -> None:
            status, kind, digest, content = registry.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Connection", "close")
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            if with_body:
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has there
            """Say nothing."""

    return Handler
