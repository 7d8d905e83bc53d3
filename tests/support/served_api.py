"""A fake API server on loopback in a test, and a client that shows its token."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from api_world import ApiWorld

from kubelet_fakes.api import Connection
from kubelet_fakes.api_server import ApiServer

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"


class ServedApi:
    """What a test needs: the world's core, the connection in between, and requests over HTTP."""

    def __init__(
        self, core: ApiWorld, connection: Connection, server: ApiServer, session: aiohttp.ClientSession
    ) -> None:
        self.core = core
        self.connection = connection
        self.server = server
        self.session = session

    async def ask(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json", **headers: str
    ) -> tuple[int, Json]:
        """The status and the object of an answer."""
        data = None if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(
            method, path, data=data, headers={"Content-Type": kind, **named}
        ) as answer:
            return answer.status, json.loads(await answer.read())

    async def patch(self, path: str, body: object, how: str = "strategic-merge-patch") -> tuple[int, Json]:
        """Patch an object."""
        return await self.patch_as(path, body, f"application/{how}+json")

    async def patch_as(self, path: str, body: object, kind: str) -> tuple[int, Json]:
        """Patch an object by a patch of any type."""
        return await self.ask("PATCH", path, body, kind=kind)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncGenerator[aiohttp.ClientResponse]:
        """A watch; its `content` is read line by line."""
        async with self.session.get(path, params={"watch": "true", **query}) as answer:
            yield answer


async def event(answer: aiohttp.ClientResponse) -> tuple[str, Json]:
    """The next event of a watch; its type is "" at the end."""
    line = await answer.content.readline()
    found: Mapping[str, Any] = json.loads(line) if line else {"type": "", "object": {}}
    return found["type"], found["object"]


@asynccontextmanager
async def served_api(**options: Any) -> AsyncGenerator[ServedApi]:
    """A server of a new core for as long as the context is open."""
    core = ApiWorld(**options)
    connection = Connection(core)
    headers = {"Authorization": "Bearer secret"}
    async with (
        ApiServer(connection, token="secret") as server,  # noqa: S106 - it is none outside the test
        aiohttp.ClientSession(server.url, headers=headers) as session,
    ):
        yield ServedApi(core, connection, server, session)
