"""A copy of this node's Node object: admission compares node selectors and affinity with its labels."""

import logging

from lightkube.models.core_v1 import Node

from kubelet_reference.util.ports import ApiError, ApiServer, Clock

PERIOD_SECONDS = 10.0
RETRY_SECONDS = 1.0

_log = logging.getLogger("kubelet_reference.node_view")


class NodeView:
    """Reads the Node object every ten seconds; when that fails the last copy stays."""

    def __init__(self, api: ApiServer, clock: Clock, name: str) -> None:
        self._api = api
        self._clock = clock
        self._name = name
        self._node: Node | None = None

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(RETRY_SECONDS if self._node is None else PERIOD_SECONDS)

    async def look(self) -> None:
        """Read the object once."""
        try:
            self._node = await self._api.get_node(self._name)
        except ApiError as error:
            _log.warning("node %s: %s", self._name, error)

    def node(self) -> Node | None:
        """The object as last seen, None before it was."""
        return self._node
