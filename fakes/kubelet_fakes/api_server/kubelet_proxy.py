"""What the API server does not answer itself: logs of pods, streams to them, and a kubelet's own pages."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from kubelet_fakes.api.errors import ApiStatusError, bad_request
from kubelet_fakes.api.objects import FrozenDict, at
from kubelet_fakes.api.requests import Client
from kubelet_fakes.api_server.routing import Route
from kubelet_fakes.upgrades import taken_over

_HOST = "127.0.0.1"
"""Where kubelets are, which are on this machine."""
_STREAMS = {"exec": "exec", "attach": "attach", "portforward": "portForward"}
_OF_PODS = frozenset({"log", *_STREAMS})
_STREAM_OPTIONS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
"""Options of a stream that are true or false, by the API's names, and by the kubelet's."""
_OWN_HEADERS = frozenset({"authorization", "host"})
_ERRORS = 400
_CHUNK_BYTES = 1 << 16


def kubelet_tls() -> ssl.SSLContext | None:
    """TLS to a kubelet, which signs its certificate itself; None would be without TLS."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def is_for_kubelet(about: Route) -> bool:
    """Whether the kubelet of a node answers that."""
    kind, subresource = about.kind.resource.name, about.subresource
    return (kind == "pods" and subresource in _OF_PODS) or (kind == "nodes" and subresource == "proxy")


async def pass_on(request: web.Request, about: Route, client: Client) -> web.StreamResponse:
    """Ask the kubelet; raises `ApiStatusError` with what it says where it refuses."""
    path, node = _kubelet_path(request, about, client)
    port = at(client.get("nodes", node, ""), "status", "daemonEndpoints", "kubeletEndpoint", "Port")
    if not port:
        raise _unavailable(node, "the node has no port in status.daemonEndpoints")
    try:
        if "Upgrade" in request.headers:
            return await tunnel(request, path, port)
        return await _answered(request, path, port)
    except (OSError, aiohttp.ClientError) as error:
        raise _unavailable(node, str(error)) from None


def _unavailable(node: str, why: str) -> ApiStatusError:
    return ApiStatusError(500, "InternalError", f"the kubelet of {node} cannot be reached: {why}")


def _kubelet_path(request: web.Request, about: Route, client: Client) -> tuple[str, str]:
    """What to ask the kubelet for, and the name of its node."""
    if about.kind.resource.name == "nodes":
        return _with_query(f"/{about.rest}", list(request.query.items())), about.name
    pod = client.get("pods", about.name, about.namespace)
    node = pod["spec"].get("nodeName")
    if not node:
        raise bad_request(f"pod {about.name} does not have a host assigned")
    place = f"{about.namespace}/{about.name}"
    options = [(name, value) for name, value in request.query.items() if name != "container"]
    if about.subresource == "portforward":
        return _with_query(f"/portForward/{place}", options), node
    container = _container(request.query.get("container", ""), pod)
    if about.subresource == "log":
        return _with_query(f"/containerLogs/{place}/{container}", options), node
    asked = [
        (_STREAM_OPTIONS[name], "1") if name in _STREAM_OPTIONS else (name, value)
        for name, value in options
        if name not in _STREAM_OPTIONS or value == "true"
    ]
    return _with_query(f"/{about.subresource}/{place}/{container}", asked), node


def _with_query(path: str, options: list[tuple[str, str]]) -> str:
    return f"{path}?{urlencode(options)}" if options else path


def _container(named: str, pod: FrozenDict) -> str:
    """The container of that name, or the only one."""
    spec = pod["spec"]
    names = [each["name"] for each in spec["containers"]]
    others = [
        each["name"] for kind in ("initContainers", "ephemeralContainers") for each in spec.get(kind) or ()
    ]
    if named and named not in [*names, *others]:
        raise bad_request(f"container {named} is not valid for pod {pod['metadata']['name']}")
    if not named and len(names) > 1:
        text = f"a container name must be specified for pod {pod['metadata']['name']}"
        raise bad_request(f"{text}, choose one of: [{' '.join(names)}]")
    return named or names[0]


async def _answered(request: web.Request, path: str, port: int) -> web.StreamResponse:
    """The kubelet's answer, passed on as it comes."""
    context = kubelet_tls()
    url = f"{'http' if context is None else 'https'}://{_HOST}:{port}{path}"
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.request(request.method, url, ssl=context or False) as answer,
    ):
        if answer.status >= _ERRORS:
            raise ApiStatusError(answer.status, answer.reason or "", (await answer.text()).strip())
        response = web.StreamResponse(headers={"Content-Type": answer.headers.get("Content-Type", "")})
        response.enable_chunked_encoding()
        await response.prepare(request)
        async for chunk in answer.content.iter_any():
            await response.write(chunk)
        return response


async def tunnel(request: web.Request, path: str, port: int) -> web.StreamResponse:
    """Connect the client with a server on this machine, whatever protocol they then speak."""
    headers = [
        f"{name}: {value}" for name, value in request.headers.items() if name.lower() not in _OWN_HEADERS
    ]
    head = "\r\n".join([f"{request.method} {path} HTTP/1.1", f"Host: {_HOST}:{port}", *headers, "", ""])
    async with _connected(port) as (reader, writer):
        writer.write(head.encode())
        from_client, to_client = taken_over(request)
        async with asyncio.TaskGroup() as both:
            both.create_task(_copy(from_client, writer), name="from a client to a kubelet")
            both.create_task(_copy(reader, to_client), name="from a kubelet to a client")
    return web.Response()


@asynccontextmanager
async def _connected(port: int) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(_HOST, port, ssl=kubelet_tls())
    try:
        yield reader, writer
    finally:
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end of one side, and say the end to the other."""
    try:
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        # Either side may break off, TLS among them.
        pass
    finally:
        writer.close()
