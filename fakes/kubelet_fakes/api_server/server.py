"""The server: who may ask, what is asked of which part, and how answers and refusals look."""

import hmac
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Self

import msgspec
import yaml
from aiohttp import web

from kubelet_fakes.api.errors import ApiStatusError, bad_request
from kubelet_fakes.api.objects import EMPTY, FrozenDict, is_array, is_object, rfc3339
from kubelet_fakes.api.requests import Client, Request
from kubelet_fakes.api.watching import Watch
from kubelet_fakes.api_server.applying import configuration
from kubelet_fakes.api_server.discovery import Discovery
from kubelet_fakes.api_server.kubelet_proxy import is_for_kubelet, pass_on
from kubelet_fakes.api_server.pages import Pages
from kubelet_fakes.api_server.patches import APPLY, TYPES
from kubelet_fakes.api_server.routing import Call, Route, is_watch, request_of, route
from kubelet_fakes.api_server.tables import as_table
from kubelet_fakes.api_server.watch_stream import WatchOptions, abort, stream

_BODY_BYTES_MAX = 3 << 20
_GOODBYE_SECONDS = 0.5
_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_TOO_MANY = 429
_NOT_OF_THE_REQUEST = frozenset({401, 406, 415})
"""A client that is refused so is refused whatever it asks."""
_CREATED, _OK, _NOT_FOUND = 201, 200, 404
_ANY_VERSION = "0"
"""The resourceVersion of lists that a real server answers from its cache, whole."""
_SUCCESS = FrozenDict(kind="Status", apiVersion="v1", metadata=EMPTY, status="Success")


_Renderer = Callable[[FrozenDict], FrozenDict]


class CannotListenError(Exception):
    """The server cannot listen there; the text says why and what to do."""


class ApiServer:
    """Serves the API on loopback for as long as its context is open.

    A client shows the token as a bearer token, or as the first segment of the path: clients made with
    client-go, kubelet and kubectl among them, keep bearer tokens to themselves unless they speak TLS.

    Args:
        client: Who answers: an `ApiCore`, or a `Connection` to one, whose faults and outages it then has.
        token: What clients have to show; by default 128 random bits.
        host: The address to listen at.
        port: The port; 0 is a free one.
    """

    def __init__(
        self, client: Client, *, token: str | None = None, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.token = token or os.urandom(16).hex()
        self.url = ""
        """Where it listens; "" before it does."""
        self.first_refusal: ApiStatusError | None = None
        """Why a client cannot be understood or trusted, if one was refused for that."""
        self.was_asked = False
        """Any request has come."""
        self._client = client
        self._place = host, port
        self._watches: dict[Watch, None] = {}
        self._discovery = Discovery()
        self._pages = Pages()
        application = web.Application(client_max_size=_BODY_BYTES_MAX)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=_GOODBYE_SECONDS, handler_cancellation=True
        )

    async def __aenter__(self) -> Self:
        """Begin to listen; raises `CannotListenError` where that cannot be."""
        host, port = self._place
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self._runner.cleanup()
            number = error.errno or 0
            why = os.strerror(number) if number > 0 else error.strerror
            raise CannotListenError(
                f"{host}:{port}: {why}: name another port, or 0 for any that is free"
            ) from None
        port = self._runner.addresses[0][1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all watches, and listen no more."""
        for watch in tuple(self._watches):
            watch.stop()
        await self._runner.cleanup()

    @property
    def open_watches(self) -> int:
        """How many watches there are."""
        return len(self._watches)

    def kubeconfig(self) -> str:
        """A kubeconfig of one context, for a kubelet's `--kubeconfig` or for kubectl."""
        name = "kubelet-conformance"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": f"{self.url}/{self.token}"}}],
            "users": [{"name": name, "user": {"token": self.token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        return msgspec.yaml.encode(config).decode()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; a refusal is an object of kind Status, and one with code 0 is no answer."""
        self.was_asked = True
        try:
            path = self._authorized(request)
            if path in _HEALTH:
                return web.Response(text="ok")
            document = self._discovery.answer(request, path)
            if document is not None:
                return document
            about = route(path)
            if is_for_kubelet(about):
                return await pass_on(request, about, self._client)
            return await self._answer(request, about)
        except ApiStatusError as error:
            if error.code in _NOT_OF_THE_REQUEST:
                self.first_refusal = self.first_refusal or error
            if error.code == 0:
                abort(request)
                return web.Response()
            headers = {"Retry-After": "1"} if error.code == _TOO_MANY else None
            return _json(error.status(), error.code, headers)

    def _authorized(self, request: web.Request) -> str:
        """The path without the token; raises `ApiStatusError` 401 for a request that does not show it."""
        first, slash, rest = request.path[1:].partition("/")
        if hmac.compare_digest(first.encode(), self.token.encode()):
            return slash + rest
        shown = request.headers.get("Authorization", "")
        if request.path in _HEALTH or hmac.compare_digest(shown.encode(), f"Bearer {self.token}".encode()):
            return request.path
        raise ApiStatusError(401, "Unauthorized", "Unauthorized")

    async def _answer(self, request: web.Request, about: Route) -> web.StreamResponse:
        call = Call(request.method, request.query, request.content_type, await _body(request))
        asked = request_of(about, call)
        _check_accept(request)
        render = self._renderer(request, about)
        if is_watch(call):
            return await self._watch(request, asked, about, render)
        if asked.subresource == "eviction":
            options = call.body.get("deleteOptions") or EMPTY
            grace = options.get("gracePeriodSeconds")
            self._client.handle(
                Request("delete", asked.resource, asked.namespace, asked.name, grace_seconds=grace)
            )
            return _json(_SUCCESS, _CREATED)
        if asked.verb == "deletecollection":
            return _json(render(self._delete_all(asked)))
        if call.content_type == APPLY:
            return await self._apply(asked, call, about, render)
        found = await self._client.ask(asked)
        if asked.subresource == "binding":
            return _json(_SUCCESS, _CREATED)
        if asked.verb == "list" and asked.resource_version != _ANY_VERSION:
            found = self._pages.page(found, call.query.get("limit", ""), call.query.get("continue", ""))
        return _json(render(found), _CREATED if asked.verb == "create" else _OK)

    async def _apply(self, asked: Request, call: Call, about: Route, render: _Renderer) -> web.StreamResponse:
        """Change an object by server-side apply, or create it."""
        wanted = configuration(
            asked.body,
            call.query,
            api_version=about.kind.api_version,
            subresource=asked.subresource,
            time=rfc3339(self._client.now_ns()),
        )
        change = msgspec.structs.replace(asked, body=EMPTY, change=wanted.onto)
        try:
            return _json(render(await self._client.ask(change)))
        except ApiStatusError as error:
            if error.code != _NOT_FOUND or asked.subresource:
                raise
        new = Request("create", asked.resource, asked.namespace, body=wanted.onto(EMPTY))
        return _json(render(await self._client.ask(new)), _CREATED)

    def _delete_all(self, asked: Request) -> FrozenDict:
        """Delete what the request selects, one after another; the list of it comes back."""
        found = self._client.handle(msgspec.structs.replace(asked, verb="list"))
        for each in found["items"]:
            metadata = each["metadata"]
            place = (asked.resource, metadata.get("namespace", ""), metadata["name"])
            self._client.handle(Request("delete", *place, uid=metadata["uid"]))
        return found

    def _renderer(self, request: web.Request, about: Route) -> _Renderer:
        """What makes an answer of what is stored: the version of the path, as a table where one is wanted."""
        if "as=Table" not in request.headers.get("Accept", ""):
            return about.kind.shown
        with_objects = request.query.get("includeObject", "Metadata")
        return lambda thing: as_table(
            about.kind, about.kind.shown(thing), self._client.now_ns(), with_objects
        )

    async def _watch(
        self,
        request: web.Request,
        asked: Request,
        about: Route,
        render: _Renderer,
    ) -> web.StreamResponse:
        query = request.query
        seconds = query.get("timeoutSeconds", "")
        initial = query.get("sendInitialEvents") == "true"
        options = WatchOptions(
            about.kind.resource.kind,
            about.kind.api_version,
            render,
            bookmarks=query.get("allowWatchBookmarks") in {"true", "1"},
            initial_events=initial,
            **({"timeout_seconds": float(seconds)} if seconds.isdecimal() and seconds != "0" else {}),
        )
        watch = self._client.open_watch(asked)
        self._watches[watch] = None
        try:
            return await stream(request, watch, options)
        finally:
            del self._watches[watch]


async def _body(request: web.Request) -> Any:  # noqa: ANN401 - JSON of any shape
    """What the body holds; raises `ApiStatusError` for what the server does not read."""
    data = await request.read()
    if not data:
        return EMPTY
    kind = request.content_type
    if kind == _PROTOBUF:
        raise ApiStatusError(
            415,
            "UnsupportedMediaType",
            "this API server reads JSON and no protobuf: set a kubelet's `contentType: application/json` in "
            "its KubeletConfiguration; with kubectl use `apply -f` or `create -f` and a manifest",
        )
    if request.method == "PATCH" and kind not in TYPES:
        text = f"patches of type {kind} are not supported: use one of {', '.join(TYPES)}"
        raise ApiStatusError(415, "UnsupportedMediaType", text)
    try:
        found = yaml.safe_load(data) if kind == APPLY else json.loads(data)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request(f"the body of the request is no JSON: {error}") from None
    if not is_object(found) and not (request.method == "PATCH" and is_array(found)):
        raise bad_request("the body of the request is no object")
    return found


def _check_accept(request: web.Request) -> None:
    accepted = request.headers.get("Accept", "*/*")
    if not any(each in accepted for each in ("json", "*/*", "application/*")):
        text = "only the following media types are accepted: application/json"
        raise ApiStatusError(406, "NotAcceptable", text)


def _json(
    thing: Mapping[str, Any], code: int = _OK, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(thing), status=code, headers=headers, content_type="application/json"
    )
