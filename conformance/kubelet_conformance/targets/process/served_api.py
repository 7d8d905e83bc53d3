"""The API server of a kubelet in another process: served on loopback, all about its pods on the record."""

from typing import Any, Self

from kubelet_conformance.targets.in_process.api_server import RecordedApi
from kubelet_conformance.targets.process.manifest_api import unique_uids
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_conformance.trace.format.records import EVENT_KINDS
from kubelet_fakes.api import ApiCore, ApiStatusError, Change
from kubelet_fakes.api.objects import EMPTY, at
from kubelet_fakes.api_server import ApiServer
from kubelet_fakes.dra.claims import Claims
from kubelet_reference.server.host.system_clock import WallClock

_UNAUTHORIZED = 401
_KUBECONFIG = "start it with --kubeconfig={kubeconfig}"
_GENERATIONS_SINCE = 1, 33
"""From this version on API servers count the changes of a pod's spec."""


class ServedApi:
    """Serves an API server for as long as its context is open.

    Args:
        recorder: takes desired pods, what the kubelet writes of them, and its events.
        node_name: the node's name, on which pods are created.
        version: the server's.
    """

    def __init__(self, recorder: Recorder, node_name: str, version: tuple[int, int]) -> None:
        self._recorder = recorder
        self._node_name = node_name
        counts = version >= _GENERATIONS_SINCE
        self._core = ApiCore(WallClock().wall_ns, unique_uids(), pod_generations=counts)
        recorded = RecordedApi(self._core, recorder, node_name)
        self._connection = recorded.connection
        self.world = recorded.world
        self._core.on_change += [self._record_event, Claims(self._core).take]
        self._server = ApiServer(self._connection)
        self._was_ready = False

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Listen no more."""
        await self._server.__aexit__()

    @property
    def kubeconfig(self) -> str:
        """What the kubelet needs to find it."""
        return self._server.kubeconfig()

    @property
    def allocatable(self) -> dict[str, str] | None:
        """What the kubelet has reported of the node's resources for pods, None before that."""
        try:
            node = self._core.get("nodes", self._node_name, "")
        except ApiStatusError:
            return None
        return dict(at(node, "status", "allocatable") or {}) or None

    def missing(self) -> str:
        """What a kubelet has not done yet to get pods, to follow "does not"; "" if it gets them.

        Its node has to be ready once: when it is started again, a fault of the runtime may forbid that.
        """
        try:
            node = self._core.get("nodes", self._node_name, "")
        except ApiStatusError:
            return f"register node {self._node_name} at its API server: {self._why_unregistered()}"
        conditions = at(node, "status", "conditions") or ()
        ready = next((each for each in conditions if each["type"] == "Ready"), EMPTY)
        self._was_ready = self._was_ready or ready.get("status") == "True"
        if self._was_ready:
            # Its other sources are there at once: what is in them would be seen long before the pods here.
            return "" if "pods" in self._connection.watched else "watch its pods at its API server"
        return f"report node {self._node_name} as ready: {ready.get('message', 'it says nothing')}"

    def _why_unregistered(self) -> str:
        refusal = self._server.first_refusal
        if not self._server.was_asked:
            return f"it asks nothing of it; {_KUBECONFIG}"
        if refusal is None:
            return "its log says why"
        if refusal.code == _UNAUTHORIZED:
            return f"its requests show no token; {_KUBECONFIG}"
        return str(refusal)

    def _record_event(self, change: Change) -> None:
        """An event of a pod or the node; of one that comes again, how often it has since."""
        about: Any = change.object.get("involvedObject") or EMPTY
        if change.resource != "events" or about.get("kind") not in EVENT_KINDS:
            return
        event, before = change.object, change.before or EMPTY
        # A kubelet that does not know its node's UID yet takes the node's name for it, as the record does.
        uid = about.get("name") if about["kind"] == "Node" else about.get("uid")
        self._recorder.record(
            "event",
            uid=uid or None,
            namespace=about.get("namespace", ""),
            name=about.get("name", ""),
            type=event.get("type", ""),
            reason=event.get("reason", ""),
            message=event.get("message", ""),
            count=(event.get("count") or 1) - (before.get("count") or 0),
            container=about.get("fieldPath") or None,
        )
