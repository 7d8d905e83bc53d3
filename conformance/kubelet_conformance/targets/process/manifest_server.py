"""The manifest URL for a kubelet in another process: served on loopback, with answers that can be set."""

from aiohttp import web

_NOT_FOUND = 404
_GOODBYE_SECONDS = 0.5


class ManifestServer:
    """Serves one URL, by whatever name its answer is set; a refusal breaks the connection off."""

    def __init__(self) -> None:
        self._answer: tuple[int, bytes] | None = _NOT_FOUND, b"404 page not found\n"
        self._runner: web.AppRunner | None = None
        self.url = ""
        """The URL for the kubelet; "" before it is started."""

    def serve(self, url: str, body: bytes, status: int = 200) -> None:
        """From now on answer with this."""
        del url
        self._answer = status, body

    def refuse(self, url: str, trouble: str = "") -> None:
        """From now on answer nothing."""
        del url, trouble
        self._answer = None

    async def start(self) -> None:
        """Listen on a free port."""
        application = web.Application()
        application.router.add_get("/manifests", self._get)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=_GOODBYE_SECONDS)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/manifests"

    async def close(self) -> None:
        """Listen no more."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _get(self, request: web.Request) -> web.Response:
        if self._answer is None:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        status, body = self._answer
        return web.Response(status=status, body=body)
