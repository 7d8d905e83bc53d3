"""The HTTP source: static pods from a URL (CONFIG-13, CONFIG-14)."""

import logging
from dataclasses import dataclass

from kubelet_reference.config.field_errors import ManifestError
from kubelet_reference.config.manifest import read_pods
from kubelet_reference.config.mux import Mux
from kubelet_reference.config.static_pods import Source, static_pod
from kubelet_reference.util.ports import Clock, FetchError, ManifestUrl
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

_LOG = logging.getLogger("kubelet_reference.config")
_OK = 200


@dataclass(eq=False)
class HttpSource:
    """Sends the mux the pods of the body at `settings.static_pod_url`, which it polls."""

    web: ManifestUrl
    clock: Clock
    mux: Mux
    settings: Settings
    behaviour: Behaviour

    def __post_init__(self) -> None:
        self._url = self.settings.static_pod_url
        self._body: bytes | None = None

    async def run(self) -> None:
        """Fetch every `settings.http_check_frequency` seconds until cancelled."""
        while True:
            await self.fetch()
            await self.clock.sleep(self.settings.http_check_frequency)

    async def fetch(self) -> None:
        """Fetch once; whatever goes wrong leaves the pods of the last good body in force."""
        try:
            status, body = await self.web.fetch(self._url)
        except FetchError as error:
            _LOG.warning("%s: %s", self._url, error)
            return
        if status != _OK:
            _LOG.warning("%s: expected HTTP status 200, got %d", self._url, status)
        elif body != self._body:
            self._body = body
            self._take(body)

    def _take(self, body: bytes) -> None:
        if not body:
            # An empty body wants nothing, which is suspicious but clear.
            _LOG.error("%s: expected a pod or a list of pods, got an empty body", self._url)
            self.mux.set_pods(Source.HTTP, ())
            return
        try:
            found = read_pods(body, self.behaviour)
        except ManifestError as error:
            # One pod of a list that is wrong has the whole list refused (CONFIG-13).
            _LOG.error("%s: %s", self._url, error)
            return
        node_name, minor = self.settings.node_name, self.behaviour.minor
        wanted = [static_pod(pod, Source.HTTP, self._url, node_name, minor) for pod in found]
        self.mux.set_pods(Source.HTTP, wanted)
