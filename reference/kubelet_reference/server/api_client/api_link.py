"""The whole way to the API server: made before the kubelet, and run beside it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NoReturn

from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.server.api_client.api_server import NODES, HttpApiServer
from kubelet_reference.server.api_client.client import UNTRUSTED, ApiClient
from kubelet_reference.server.api_client.events import PostedEvents
from kubelet_reference.server.api_client.kubeconfig import Access
from kubelet_reference.server.api_client.node_object import NodeFacts
from kubelet_reference.server.api_client.node_registration import NodeRegistration
from kubelet_reference.server.api_client.tokens import TokenRequests
from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.log import LOG
from kubelet_reference.util.ports import ApiError, Clock, EventSink, Random

_UNAUTHORIZED, _FAILED_INSIDE = 401, 500


@dataclass(eq=False)
class ApiLink:
    """The ports that the API server fills, and what runs so that they do."""

    client: ApiClient
    clock: Clock
    random: Random
    server: HttpApiServer
    events: PostedEvents
    tokens: TokenRequests

    async def run(self, kubelet: Kubelet, facts: NodeFacts) -> NoReturn:
        """Register the node and keep everything up to date, until cancelled; the kubelet runs."""
        node = NodeRegistration(self.client, self.clock, self.random, facts, kubelet)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.server.node.run())
            tasks.create_task(self.server.objects.run())
            tasks.create_task(self.events.run())
            tasks.create_task(node.run())
        raise AssertionError("these tasks end by cancellation alone")

    async def check(self, node_name: str, *, may_wait: bool) -> None:
        """See whether the server answers and knows who asks; raises `BadInputError`.

        Where the kubelet has other pods to run, `may_wait`, a server that is away is only logged: it may be
        one of those pods.
        """
        access = self.client.access
        try:
            await self.client.get(f"{NODES}/{node_name}")
        except ApiError as error:
            remedy = _remedy(error)
            if remedy is None:
                return
            text = f"API server at {access.origin}: {error}: {remedy} in {access.path}"
            if error.code or error.reason == UNTRUSTED or not may_wait:
                raise BadInputError(text) from None
            LOG.warning("%s; until it answers only pods from manifests run", text)


def _remedy(error: ApiError) -> str | None:
    """What to do about a first request that failed; None where the server may yet come to answer it."""
    if error.code == _UNAUTHORIZED:
        return "put a token or certificate that it accepts"
    if error.reason == UNTRUSTED:
        return "correct server or certificate-authority"
    if not error.code:
        return "start it, or correct server"
    is_no_api = not error.reason and error.code < _FAILED_INSIDE
    return "this is no API server: correct server" if is_no_api else None


@asynccontextmanager
async def linked(
    access: Access, clock: Clock, random: Random, node_name: str, log: EventSink
) -> AsyncGenerator[ApiLink]:
    """The link of one kubelet; its events go to `log` too."""
    async with ApiClient(access, clock) as client:
        server = HttpApiServer(client, clock, random, node_name)
        events = PostedEvents(client, clock, node_name, log)
        yield ApiLink(client, clock, random, server, events, TokenRequests(client, clock, random))
