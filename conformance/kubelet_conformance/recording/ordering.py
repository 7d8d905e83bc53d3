"""Where the changes of desired pods belong among the calls that were observed between two looks.

Pods are read from time to time, so a change is found after what the kubelet did about it. A kubelet runs no
pod that it has not been sent yet, and stops none for a change that it does not know yet. So a change is put
before the first call that it explains, and else at the time of the look.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import DecodeError, Message

from kubelet_conformance.recording.pod_sources import Change
from kubelet_conformance.tap.events import Answered, CallBegan, CallEnded, Observation
from kubelet_conformance.tap.messages import METHODS
from kubelet_conformance.trace.format.labels import Label
from kubelet_conformance.trace.world.in_flight import WORK


class Owner(NamedTuple):
    """A pod as its sandbox is called."""

    namespace: str
    name: str
    uid: str


class Work(NamedTuple):
    """A call that works on a pod: `container` is the name of one it makes, a `hook` execs without timeout."""

    owner: Owner
    rpc: str
    container: str = ""
    hook: bool = False


_STOPS = frozenset({"StopContainer", "StopPodSandbox"})
_BRINGS_UP = frozenset({"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer"})
_REQUESTS = {each.rpc: each.request for each in METHODS.values() if each.rpc in WORK}
_LISTS = frozenset({"ListContainers", "ListPodSandbox"})
_EMPTY_FILTER_BYTES = 2
"""A request with a filter that is there and empty."""


class Owners:
    """Learns from every observation, in order. Lists are read only when an unknown id is met."""

    def __init__(self) -> None:
        self._of: dict[str, Owner] = {}
        """Of sandboxes and containers, by id."""
        self._open: dict[str, Message] = {}
        self._listing: dict[str, str] = {}
        """Calls under way that list everything, by id."""
        self._lists: dict[str, bytes] = {}

    def observe(self, observation: Observation) -> Work | None:
        """Learn; if it is the begin of a call that works on a known pod, which."""
        if isinstance(observation, CallBegan):
            return self._began(observation)
        if isinstance(observation, Answered):
            if observation.id in self._listing:
                self._lists[self._listing.pop(observation.id)] = observation.response
            self._answered(observation)
        elif isinstance(observation, CallEnded):
            self._listing.pop(observation.id, None)
            self._open.pop(observation.id, None)
        return None

    def _began(self, observation: CallBegan) -> Work | None:
        if observation.rpc in _LISTS and len(observation.request) <= _EMPTY_FILTER_BYTES:
            self._listing[observation.id] = observation.rpc
        kind = _REQUESTS.get(observation.rpc)
        if kind is None:
            return None
        try:
            request = kind.FromString(observation.request)
        except DecodeError:
            return None
        self._open[observation.id] = request
        owner = self._owner(request)
        if owner is None:
            return None
        container = request.config.metadata.name if isinstance(request, cri.CreateContainerRequest) else ""
        hook = isinstance(request, cri.ExecSyncRequest) and request.timeout == 0
        return Work(owner, observation.rpc, container, hook)

    def _owner(self, request: Message) -> Owner | None:
        match request:
            case cri.RunPodSandboxRequest():
                return _named(request.config.metadata)
            case cri.PullImageRequest():
                return _named(request.sandbox_config.metadata)
            case cri.CreateContainerRequest():
                return self._of.get(request.pod_sandbox_id) or _named(request.sandbox_config.metadata)
            case cri.StopPodSandboxRequest() | cri.RemovePodSandboxRequest():
                return self._found(request.pod_sandbox_id)
            case _:
                return self._found(getattr(request, "container_id", ""))

    def _found(self, identity: str) -> Owner | None:
        found = self._of.get(identity)
        if found is None and self._lists:
            self._read_lists()
            found = self._of.get(identity)
        return found

    def _answered(self, observation: Answered) -> None:
        request = self._open.pop(observation.id, None)
        try:
            if isinstance(request, cri.RunPodSandboxRequest):
                made = cri.RunPodSandboxResponse.FromString(observation.response).pod_sandbox_id
                self._of[made] = _named(request.config.metadata)
            elif isinstance(request, cri.CreateContainerRequest):
                owner = self._owner(request)
                if owner is not None:
                    made = cri.CreateContainerResponse.FromString(observation.response).container_id
                    self._of[made] = owner
        except DecodeError:
            return
        if isinstance(request, cri.RemoveContainerRequest):
            self._of.pop(request.container_id, None)
        elif isinstance(request, cri.RemovePodSandboxRequest):
            self._of.pop(request.pod_sandbox_id, None)

    def _read_lists(self) -> None:
        """Learn the owners of what was there before the tap began to observe."""
        lists, self._lists = self._lists, {}
        try:
            for sandbox in cri.ListPodSandboxResponse.FromString(lists.get("ListPodSandbox", b"")).items:
                self._of[sandbox.id] = _named(sandbox.metadata)
            for one in cri.ListContainersResponse.FromString(lists.get("ListContainers", b"")).containers:
                labels = one.labels
                self._of[one.id] = self._of.get(one.pod_sandbox_id) or Owner(
                    labels.get(Label.POD_NAMESPACE, ""),
                    labels.get(Label.POD_NAME, ""),
                    labels.get(Label.POD_UID, ""),
                )
        except DecodeError:
            return


def _named(metadata: cri.PodSandboxMetadata) -> Owner:
    return Owner(metadata.namespace, metadata.name, metadata.uid)


def place_of(change: Change, works: Sequence[tuple[int, Work]]) -> int | None:
    """Before which of these calls the change is recorded; None for the time of the look.

    `works` are the calls since the look before, in order, each with its place.
    """
    about = [(place, work) for place, work in works if change.key.fits(*work.owner)]
    match change.what:
        case "new":
            return about[0][0] if about else None
        case "changed":
            return _first(about, lambda work: work.rpc in _STOPS or _is_new(work, change.known))
        case "going":
            return _stop(about)
        case _:
            return None


def _is_new(work: Work, known: frozenset[str]) -> bool:
    return work.rpc == "CreateContainer" and work.container not in known


def _first(works: Sequence[tuple[int, Work]], fits: Callable[[Work], bool]) -> int | None:
    return next((place for place, work in works if fits(work)), None)


def _stop(works: Sequence[tuple[int, Work]]) -> int | None:
    """The first stop, or the hook that goes before it: an exec after which nothing is brought up any more."""
    hook: int | None = None
    for place, work in works:
        if work.rpc in _STOPS:
            return place if hook is None else hook
        if work.rpc in _BRINGS_UP:
            hook = None
        elif work.hook and hook is None:
            hook = place
    return hook
