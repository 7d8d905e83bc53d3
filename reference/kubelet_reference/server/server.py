"""What is served over HTTP: /healthz, /pods and /metrics, as the kubelet's read-only port has them."""

import json
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from kubelet_reference.api.models import as_json
from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.server.configuration import Configuration
from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.log import LOG

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_GOODBYE_SECONDS = 1.0
_UNWELL = 500


def problems(kubelet: Kubelet) -> list[str]:
    """What is wrong with the kubelet, as /healthz says it; empty if nothing is (LOOP-19)."""
    parts = kubelet.components
    found: list[str] = []
    if not parts.loop.is_healthy():
        found.append("syncloop: it has not turned for too long")
    silent = parts.pleg.healthy()
    if silent is not None:
        found.append(f"pleg: {silent}")
    return found


def pod_list(kubelet: Kubelet) -> dict[str, Any]:
    """The desired pods as a v1 PodList, each with the status that was made for it last."""
    statuses = kubelet.components.statuses
    items = [as_json(each) for each in kubelet.components.manager.pods()]
    for item in items:
        status = statuses.get(item["metadata"]["uid"])
        if status is not None:
            item["status"] = as_json(status)
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}


@dataclass(frozen=True, slots=True)
class _Listener:
    """One address: `whole` serves everything there is, otherwise /healthz alone. `flag` sets the port."""

    host: str
    port: int
    flag: str
    whole: bool


def _listeners(configuration: Configuration) -> Iterator[_Listener]:
    """What is to be served where; 0 switches all but the main port off, as in the kubelet."""
    yield _Listener(configuration.address, configuration.port, "--port", whole=True)
    if configuration.read_only_port:
        yield _Listener(configuration.address, configuration.read_only_port, "--read-only-port", whole=True)
    if configuration.healthz_port:
        address = configuration.healthz_address
        yield _Listener(address, configuration.healthz_port, "--healthz-port", whole=False)


@asynccontextmanager
async def served(kubelet: Kubelet, configuration: Configuration) -> AsyncGenerator[None]:
    """Serve while the context is open; raises `BadInputError` where a port is taken."""
    runners: list[web.AppRunner] = []
    try:
        for listener in _listeners(configuration):
            runner = web.AppRunner(
                _application(kubelet, whole=listener.whole),
                access_log=None,
                shutdown_timeout=_GOODBYE_SECONDS,
            )
            runners.append(runner)
            await runner.setup()
            await _listen(runner, listener)
        yield
    finally:
        for runner in runners:
            await runner.cleanup()


async def _listen(runner: web.AppRunner, listener: _Listener) -> None:
    try:
        await web.TCPSite(runner, listener.host, listener.port).start()
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise BadInputError(
            f"cannot serve on {listener.host} port {listener.port}: {why}: "
            f"end what listens there, or choose another port with {listener.flag}"
        ) from None
    port = runner.addresses[0][1]
    host = f"[{listener.host}]" if ":" in listener.host else listener.host
    what = "/healthz, /pods and /metrics" if listener.whole else "/healthz"
    LOG.info("Serving %s at http://%s:%d", what, host, port)


def _application(kubelet: Kubelet, *, whole: bool) -> web.Application:
    """The kubelet that answers; None between listening and running."""

    async def healthz(_: web.Request) -> web.Response:
        _check_started(kubelet)
        found = problems(kubelet)
        if found:
            text = "".join(f"{line}\n" for line in found) + "healthz check failed\n"
            return web.Response(status=_UNWELL, text=text)
        return web.Response(text="ok")

    async def pods(_: web.Request) -> web.Response:
        _check_started(kubelet)
        return web.Response(text=json.dumps(pod_list(kubelet)), content_type="application/json")

    async def metrics(_: web.Request) -> web.Response:
        _check_started(kubelet)
        return web.Response(body=kubelet.metrics_text().encode(), headers={"Content-Type": _METRICS_TYPE})

    application = web.Application()
    application.router.add_get("/healthz", healthz)
    if whole:
        application.router.add_get("/pods", pods)
        application.router.add_get("/pods/", pods)
        application.router.add_get("/metrics", metrics)
    return application


def _check_started(kubelet: Kubelet) -> None:
    if not hasattr(kubelet, "components"):
        raise web.HTTPServiceUnavailable(text="the kubelet does not run yet\n")
