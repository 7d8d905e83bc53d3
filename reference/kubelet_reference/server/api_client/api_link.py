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

_UNAUTHORIZED = 401


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
            where = f"API server at {access.origin}: {error}"
            if error.code == _UNAUTHORIZED:
                text = f"{where}: put a token or certificate that it accepts into {access.path}"
                raise BadInputError(text) from None
            if error.reason == UNTRUSTED:
                text = f"{where}: correct server or certificate-authority in {access.path}"
                raise BadInputError(text) from None
            if error.code:
                return
            remedy = f"start it, or correct server in {access.path}"
            if not may_wait:
                raise BadInputError(f"{where}: {remedy}") from None
            LOG.warning("%s: %s; until it answers only pods from manifests run", where, remedy)


@asynccontextmanager
async def linked(
    access: Access, clock: Clock, random: Random, node_name: str, log: EventSink
) -> AsyncGenerator[ApiLink]:
    """The link of one kubelet; its events go to `log` too."""
    async with ApiClient(access, clock) as client:
        server = HttpApiServer(client, clock, random, node_name)
        events = PostedEvents(client, clock, node_name, log)
        yield ApiLink(client, clock, random, server, events, TokenRequests(client, clock, random))
