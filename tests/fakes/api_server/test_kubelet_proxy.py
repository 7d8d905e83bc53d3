"""Logs and streams of pods come from the kubelet of their node, through the API server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import WSMsgType, web
from api_world import pod
from on_loop import on_loop
from served_api import PODS, ServedApi, served_api

from kubelet_fakes.api_server import kubelet_proxy


@asynccontextmanager
async def with_kubelet(
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncGenerator[tuple[ServedApi, list[str]]]:
    """A server, a pod on a node, and that node's kubelet without TLS; each path that it was asked for."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path_qs)
        if "Upgrade" not in request.headers:
            refused = request.path.endswith("/side")
            return web.Response(
                text="no log yet" if refused else "one\ntwo\n", status=400 if refused else 200
            )
        stream = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await stream.prepare(request)
        async for message in stream:
            await stream.send_bytes(message.data)
            await stream.close()
        return stream

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setattr(kubelet_proxy, "kubelet_tls", lambda: None)
    endpoint = {"kubeletEndpoint": {"Port": runner.addresses[0][1]}}
    async with served_api() as api:
        api.core.create("nodes", {"metadata": {"name": "node-1"}, "status": {"daemonEndpoints": endpoint}})
        made = pod()
        made["spec"]["containers"].append({"name": "side", "image": "img:1"})
        api.core.create("pods", made)
        yield api, asked
    await runner.cleanup()


@on_loop
async def test_logs_and_pages_of_a_kubelet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The container and all options are passed on; so are a node's own pages, and refusals."""
    async with with_kubelet(monkeypatch) as (api, asked):
        async with api.session.get(f"{PODS}/web/log?container=app&tailLines=2") as answer:
            text = await answer.text()
        async with api.session.get("/api/v1/nodes/node-1/proxy/stats/summary?a=b"):
            pass
        code, refused = await api.ask("GET", f"{PODS}/web/log?container=side")

    assert text == "one\ntwo\n"
    assert asked[:2] == ["/containerLogs/default/web/app?tailLines=2", "/stats/summary?a=b"]
    assert (code, refused["message"]) == (400, "no log yet")


#: A request for a stream, and what the kubelet is asked for.
STREAMS = {
    "exec?command=ls&command=/&container=app&stdout=true&stdin=true&tty=false": (
        "/exec/default/web/app?command=ls&command=/&output=1&input=1"
    ),
    "attach?container=side&stderr=true": "/attach/default/web/side?error=1",
    "portforward?ports=80": "/portForward/default/web?ports=80",
}


@pytest.mark.parametrize("path", STREAMS)
@on_loop
async def test_streams(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """A client and the kubelet speak with each other as if nobody were in between."""
    async with (
        with_kubelet(monkeypatch) as (api, asked),
        api.session.ws_connect(f"{PODS}/web/{path}", protocols=("v5.channel.k8s.io",)) as stream,
    ):
        await stream.send_bytes(b"hello")
        said, end = await stream.receive(), await stream.receive()

    assert (stream.protocol, said.data, end.type) == ("v5.channel.k8s.io", b"hello", WSMsgType.CLOSE)
    assert [each.replace("%2F", "/") for each in asked] == [STREAMS[path]]


#: What cannot be passed on, and the words of the refusal.
REFUSED = {
    "pods/web/log": (400, "a container name must be specified for pod web, choose one of: [app side]"),
    "pods/web/log?container=other": (400, "container other is not valid for pod web"),
    "pods/none/log": (404, 'pods "none" not found'),
    "pods/free/log": (400, "pod free does not have a host assigned"),
    "pods/lost/log": (500, "the kubelet of node-2 cannot be reached: the node has no port"),
    "pods/dead/log": (500, "the kubelet of node-3 cannot be reached: "),
}


@on_loop
async def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """No such container, no node, no kubelet: each is said."""
    async with with_kubelet(monkeypatch) as (api, _):
        for name, node in {"free": "", "lost": "node-2", "dead": "node-3"}.items():
            api.core.create("pods", pod(name, node=node))
        ports = {"node-2": {}, "node-3": {"kubeletEndpoint": {"Port": 1}}}
        for name, endpoints in ports.items():
            status = {"daemonEndpoints": endpoints}
            api.core.create("nodes", {"metadata": {"name": name}, "status": status})
        for path, (code, words) in REFUSED.items():
            got, refused = await api.ask("GET", f"/api/v1/namespaces/default/{path}")
            assert (got, refused["message"].startswith(words)) == (code, True), refused
