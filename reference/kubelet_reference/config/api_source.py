"""The API source: the pods that are bound to this node (CONFIG-11, CONFIG-12)."""

import logging
from typing import NoReturn

from kubelet_reference.api import pods
from kubelet_reference.config.mux import Mux
from kubelet_reference.config.static_pods import Source
from kubelet_reference.util.backoff_manager import BackoffManager
from kubelet_reference.util.ports import ApiError, ApiServer, Clock, Random, WatchEvent

_LOG = logging.getLogger("kubelet_reference.config")
_NODE_CHECK_SECONDS = 1.0


class ApiSource:
    """Lists the node's pods, then watches them.

    An API server that fails changes nothing: the last snapshot stays in force (CONFIG-12). A watch
    that lost its connection goes on where it was; after any other failure everything is listed anew.
    """

    def __init__(self, api: ApiServer, clock: Clock, random: Random, mux: Mux, node_name: str) -> None:
        self._api = api
        self._clock = clock
        self._backoff = BackoffManager(clock, random)
        self._mux = mux
        self._node_name = node_name

    async def run(self) -> NoReturn:
        """Follow the API server until cancelled."""
        await self._node_is_answered_for()
        while True:
            try:
                await self._watch(await self._list())
            except ApiError as error:
                _LOG.warning("pods of node %s: %s", self._node_name, error)
            await self._backoff.wait()

    async def _node_is_answered_for(self) -> None:
        """Return once the API server has answered for the node, be it that there is none (CONFIG-11)."""
        while True:
            try:
                await self._api.get_node(self._node_name)
            except ApiError as error:
                if error.is_not_found:
                    return
                await self._clock.sleep(_NODE_CHECK_SECONDS)
            else:
                return

    async def _list(self) -> str:
        """Make what the API server has the new snapshot; gives the version to watch from."""
        found, version = await self._api.list_pods(self._node_name)
        self._mux.set_pods(Source.API, found)
        return version

    async def _watch(self, version: str) -> None:
        """Follow the changes after `version`; returns when a watch ends without having brought anything.

        One that breaks as the API server is out of reach goes on where it was: then nothing is missed.
        """
        before = None
        while before != version:
            before = version
            try:
                async for event in self._api.watch_pods(self._node_name, version):
                    version = pods.metadata(event.pod).resourceVersion or version
                    self._take(event)
            except ApiError as error:
                if not error.is_passing:
                    raise
                before = None
                await self._backoff.wait()

    def _take(self, event: WatchEvent) -> None:
        if event.type == "DELETED":
            self._mux.change_pods(Source.API, (), (pods.uid(event.pod),))
        else:
            self._mux.change_pods(Source.API, (event.pod,))
