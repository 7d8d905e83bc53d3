"""The state of one node as a trace has shown it so far: the entities that still exist, and nothing else.

What is gone at the runtime and at the API server is forgotten, so memory grows with the entities that exist,
not with the length of the trace.

When the kubelet saw the manifest of a static pod is known from its own annotations.
"""

import math
from collections import OrderedDict
from collections.abc import Mapping

from kubelet_conformance.trace.format.bodies import (
    ContainerRecord,
    CreateContainerRequest,
    PodSandboxConfig,
    PodSandboxMetadata,
    RunPodSandboxRequest,
    SandboxRecord,
)
from kubelet_conformance.trace.format.errors import BodyError
from kubelet_conformance.trace.format.header import Header, epoch_seconds
from kubelet_conformance.trace.format.labels import STATIC_SOURCES, Annotation, Label
from kubelet_conformance.trace.format.records import Call
from kubelet_conformance.trace.world.readings import Readings
from kubelet_conformance.trace.world.views import Container, ImageKnown, Latest, Node, Pod, Pulls, Sandbox

PODS_MAX = 20_000
"""More pods alive at one time are bad input."""
CONTAINERS_MAX = 100_000
"""More containers, or sandboxes, recorded at one time are bad input."""
RECORDS_OF_POD_MAX = 5_000
"""More sandboxes, or containers, recorded for one pod at one time are bad input."""
IMAGES_REMEMBERED = 10_000
"""How many image names are remembered; the one unused longest is forgotten first."""
FINISHED_REMEMBERED = 10_000
"""How many of the latest finished and forgotten pods are still known by UID."""

_VERSIONS_REMEMBERED = 5
"""How many earlier versions of a static pod are kept that may yet be run."""
REMOVED_REMEMBERED = 10_000
"""How many of the latest sandboxes and containers that went are still known by id."""


class World:
    """The node as seen from outside; `kubernetes` is the version it is judged for, such as (1, 32).

    Where kubelets of two versions take turns, `releases` are both by their texts; it is that of the latest.
    """

    def __init__(
        self,
        header: Header,
        kubernetes: tuple[int, int] | None = None,
        releases: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        self.header = header
        self.kubernetes = kubernetes
        self.releases = releases or {}
        self.is_renewed = False
        """The kubelet that runs has taken the place of one of another version."""
        self.node = Node(born=header.from_start)
        self.pods: dict[str, Pod] = {}
        self.names: dict[tuple[str, str], Pod] = {}
        """The pod that last had this namespace and name."""
        self.edited = Latest[tuple[str, str], tuple[Pod, ...]]()
        """Earlier versions of static pods whose UID no sandbox has shown: the kubelet may yet run them."""
        self.mirrors: dict[str, Pod] = {}
        """Static pods by the UID of their mirror."""
        self.versions = Latest[str, Pod]()
        """Which version of a static pod has this UID, where its mirror showed it before any sandbox did."""
        self.sandboxes: dict[str, Sandbox] = {}
        self.containers: dict[str, Container] = {}
        self.calls_open: dict[str, Call] = {}
        """The calls that no reply has ended yet, by id; calls of a kubelet that is gone are dropped."""
        self.called: dict[str, Container] = {}
        """The containers of unanswered calls, by the ids of the calls."""
        self.called_sandboxes: dict[str, Sandbox] = {}
        """The sandboxes of unanswered calls, likewise."""
        self.node_is_another = False
        """The kubelet does not call its node as the header assumes."""
        self.changed_seq = 0
        """The latest record, other than a reading, that changed what is known of sandboxes and containers."""
        self.readings = Readings(self.containers, self.sandboxes)
        self.images: dict[str, ImageKnown] = {}
        """By the name the kubelet asks for."""
        self._pulls: Latest[str, dict[str, Pulls]] = Latest()
        """The pulls for static pods that are forgotten, by UID: a pod that comes back has the same."""
        self._left = Latest[str, str]()
        """The UIDs of static pods that are forgotten, by that of their mirror."""
        self._gone = OrderedDict[str, str]()
        self._removed = OrderedDict[str, float]()
        """When the latest sandboxes and containers that are gone at the runtime went, by id."""

    def begin_release(self, text: str | None) -> None:
        """A kubelet starts: from now on all is judged for its version, if it is one of `releases`."""
        release = self.releases.get(text or "", self.kubernetes)
        self.is_renewed = release != self.kubernetes
        self.kubernetes = release

    @property
    def past_known(self) -> bool:
        """Whether a pod that appears now did not exist before the trace."""
        return not self.node_is_another and (self.header.from_start or self.node.listed)

    def compare_node(self, config: PodSandboxConfig) -> None:
        """A static pod may show that the node has another name than assumed: then no manifest is known."""
        if not self.header.node_assumed or config.annotations.get(Annotation.SOURCE) not in STATIC_SOURCES:
            return
        if not config.metadata.name.endswith(f"-{(self.header.node or '').lower()}"):
            self.node_is_another = True
            for pod in self.names.values():
                pod.born = pod.born and not pod.static

    @property
    def has_every_pod(self) -> bool:
        """Whether the trace is of all pods of the node: a slice may be of some."""
        return self.header.slice is None or not self.header.slice.pods

    def new_pod(self, uid: str, namespace: str, name: str, *, born: bool) -> Pod:
        """Add a pod. A static pod is not known by UID before its sandbox is asked for."""
        if len(self.pods) >= PODS_MAX or len(self.names) >= PODS_MAX:
            raise _too_many(f"more than {PODS_MAX} pods are alive")
        is_midway = not (born or self.header.from_start or self.node.lives)
        pod = Pod(uid, namespace, name, born=born, work_unknown=is_midway)
        if uid:
            pod.finished_before = uid in self._gone
            self.pods[uid] = pod
        self.names[namespace, name] = pod
        return pod

    def may_yet_run(self, pod: Pod) -> None:
        """The manifest of this static pod is edited or gone, and no sandbox has shown its UID so far."""
        before = (one for one in self.edited.get((pod.namespace, pod.name), ()) if one is not pod)
        self.edited[pod.namespace, pod.name] = (*before, pod)[-_VERSIONS_REMEMBERED:]

    def nameless(self, namespace: str, name: str) -> list[Pod]:
        """Every version of the static pod of that name whose UID is not known yet; the newest comes last."""
        newest = self.names.get((namespace, name))
        former = (pod for pod in self.edited.get((namespace, name), ()) if not pod.uid)
        return [*former] if newest is None or newest.uid else [*former, newest]

    def waiting(self, namespace: str, name: str, uid: str, seen_t: float | None) -> Pod | None:
        """The static pod of that name that this unknown UID means, as its manifest was at `seen_t`.

        A delayed kubelet runs a version that has been edited meanwhile. Of two that were sent at one time
        only the mirror shows which it is.
        """
        versions = self.nameless(namespace, name)
        if not versions:
            return None
        reported = self.versions.get(uid)
        if reported in versions:
            return reported
        *former, newest = versions
        if seen_t is None or newest.set_t is None or newest.set_t <= seen_t:
            return newest
        span = self.header.slice
        begun = span.begin if span is not None else None
        is_cut_off = begun is not None and seen_t < begun <= newest.set_t
        known = (pod for pod in reversed(former) if pod.set_t is None or pod.set_t <= seen_t)
        # A file is recorded when it has been written: the kubelet may see it a moment before.
        return next(known, None if is_cut_off else versions[0])

    def pod_of(self, metadata: PodSandboxMetadata, seen_t: float | None = None) -> Pod | None:
        """The pod a sandbox's metadata names; binds a static pod to the UID the kubelet gave it.

        `seen_t` is when the kubelet saw its manifest, if that is known.
        """
        if not metadata.uid:
            return None
        pod = self.pods.get(metadata.uid)
        if pod is not None and (pod.manifest is not None or pod.wanted):
            return pod
        waiting = self.waiting(metadata.namespace, metadata.name, metadata.uid, seen_t)
        if pod is not None:
            if waiting is None or waiting.set_t is None or seen_t is None or seen_t < waiting.set_t:
                return pod
            waiting.adopt(pod)
        if waiting is not None:
            waiting.uid = metadata.uid
            waiting.finished_before = metadata.uid in self._gone
            waiting.pulls = self._pulls.pop(metadata.uid, waiting.pulls)
            self.pods[metadata.uid] = waiting
            if self.names.get((waiting.namespace, waiting.name)) is waiting:
                self.edited.pop((waiting.namespace, waiting.name), None)
            return waiting
        newest = self.names.get((metadata.namespace, metadata.name))
        pod = self.new_pod(metadata.uid, metadata.namespace, metadata.name, born=self.past_known)
        if newest is not None and not newest.uid:  # It is a version of it that was cut off.
            self.names[pod.namespace, pod.name], pod.static, pod.born = newest, True, False
        return pod

    def pod_of_object(self, uid: str, namespace: str = "", name: str = "") -> Pod | None:
        """The pod an API object stands for, a mirror pod's included."""
        pod = self.pods.get(uid) or self.mirrors.get(uid)
        if pod is None and name:
            named = self.names.get((namespace, name))
            comes_again = named is not None and bool(named.uid) and self._left.get(uid) == named.uid
            if named is not None and named.static and (uid not in self._gone or comes_again):
                named.mirror_uid = uid
                self.mirrors[uid] = named
                pod = named
        return pod

    def add_sandbox(self, sandbox_id: str, pod: Pod | None, *, born: bool) -> Sandbox:
        """Add a sandbox that has just been run, or was found at the runtime."""
        if len(self.sandboxes) >= CONTAINERS_MAX:
            raise _too_many(f"more than {CONTAINERS_MAX} sandboxes are recorded")
        sandbox = self.sandboxes[sandbox_id] = Sandbox(sandbox_id, born=born)
        sandbox.pod = pod
        if pod is not None:
            pod.sandboxes[:] = [s for s in pod.sandboxes if s.state != "removed"]
            pod.sandboxes.append(sandbox)
            if len(pod.sandboxes) > RECORDS_OF_POD_MAX:
                raise _too_many(f"more than {RECORDS_OF_POD_MAX} sandboxes of one pod are recorded")
        return sandbox

    def add_container(
        self, container_id: str, name: str, sandbox: Sandbox | None, pod: Pod | None, *, born: bool
    ) -> Container:
        """Add a container that has just been created, or was found at the runtime."""
        if len(self.containers) >= CONTAINERS_MAX:
            raise _too_many(f"more than {CONTAINERS_MAX} containers are recorded")
        container = self.containers[container_id] = Container(container_id, born=born)
        container.name, container.sandbox, container.pod = name, sandbox, pod
        if sandbox is not None:
            sandbox.containers[container_id] = container
        if pod is not None:
            records = pod.containers.setdefault(name, [])
            records[:] = [c for c in records if c.state != "removed"]
            records.append(container)
            if sum(map(len, pod.containers.values())) > RECORDS_OF_POD_MAX:
                raise _too_many(f"more than {RECORDS_OF_POD_MAX} containers of one pod are recorded")
        return container

    def found_sandbox(self, record: SandboxRecord) -> Sandbox:
        """The sandbox of a runtime's record; one that no call in the trace ran has an unknown past."""
        sandbox = self.sandboxes.get(record.id)
        if sandbox is None:
            pod = self.pod_of(record.metadata, seen_at(self.header, record.annotations))
            running = _running(pod, record)
            if running is None:
                sandbox = self.stray_sandbox(record.id, pod)
            else:
                sandbox = self.add_sandbox(record.id, pod, born=True)
                sandbox.run, sandbox.config = running, running.request.view(RunPodSandboxRequest).config
                sandbox.attempt = record.metadata.attempt
        if not sandbox.born and sandbox.state == "unseen":
            sandbox.attempt = record.metadata.attempt
            if sandbox.pod is not None:
                _sort(sandbox.pod.sandboxes, sandbox, record)
        return sandbox

    def found_container(self, record: ContainerRecord) -> Container:
        """The container of a runtime's record; one that no call in the trace created has an unknown past."""
        container = self.containers.get(record.id)
        if container is None:
            pod = self.pod_of(_pod_in_labels(record.labels))
            sandbox = self.sandboxes.get(record.pod_sandbox_id)
            if sandbox is None and record.pod_sandbox_id:
                sandbox = self.stray_sandbox(record.pod_sandbox_id, pod)
            making = _making(pod, record)
            container = self.add_container(
                record.id, record.metadata.name, sandbox, pod, born=making is not None
            )
            container.attempt = record.metadata.attempt
            if making is not None:
                container.create, container.config = (
                    making,
                    making.request.view(CreateContainerRequest).config,
                )
            if pod is not None and making is None:
                pod.born = False
                pod.containers[container.name].sort(key=lambda c: (_is_of_the_trace(c), c.attempt))
        return container

    def image_known(self, name: str) -> ImageKnown:
        """What is known of an image by the name it is asked for."""
        known = self.images.pop(name, None) or ImageKnown()
        self.images[name] = known
        if len(self.images) > IMAGES_REMEMBERED:
            del self.images[next(iter(self.images))]
        return known

    def image_name(self, image: str) -> str:
        """How the kubelet asks for an image of a manifest, its tag implied; "" if it has not asked."""
        return next((name for name in (image, f"{image}:latest") if name in self.images), "")

    def is_in_the_making(self, record: ContainerRecord) -> bool:
        """A CreateContainer that has not been answered yet makes this container."""
        return _making(self.pods.get(record.labels.get(Label.POD_UID, "")), record) is not None

    def stray_sandbox(self, sandbox_id: str, pod: Pod | None) -> Sandbox:
        """Add a sandbox that was there before the trace."""
        if pod is not None:
            pod.born = False
        return self.add_sandbox(sandbox_id, pod, born=False)

    def went_since(self, record_id: str, t: float) -> bool:
        """This sandbox or container was removed at `t` or later: a reading begun then may still hold it."""
        return self._removed.get(record_id, -math.inf) >= t

    def _remember_removal(self, record_id: str, t: float) -> None:
        self._removed[record_id] = t
        if len(self._removed) > REMOVED_REMEMBERED:
            self._removed.popitem(last=False)

    def drop_container(self, container: Container, t: float, *, vanished: bool = False) -> None:
        """The record of a container is gone at the runtime."""
        container.state = "removed"
        container.removed_t = t
        container.vanished = vanished
        container.hooks_open.clear()
        self.containers.pop(container.id, None)
        self._remember_removal(container.id, t)
        if container.sandbox is not None:
            container.sandbox.containers.pop(container.id, None)
        pod = container.pod
        if pod is not None:
            records = pod.containers.get(container.name, [])
            if records and records[-1] is not container and container in records:
                records.remove(container)
            self.forget_if_gone(pod)

    def drop_sandbox(self, sandbox: Sandbox, t: float, *, vanished: bool = False) -> None:
        """The record of a sandbox is gone at the runtime, and its containers with it."""
        sandbox.state = "removed"
        sandbox.removed_t = t
        sandbox.vanished = vanished
        self.sandboxes.pop(sandbox.id, None)
        self._remember_removal(sandbox.id, t)
        for container in list(sandbox.containers.values()):
            self.drop_container(container, t, vanished=vanished)
        pod = sandbox.pod
        if pod is not None:
            if pod.sandboxes and pod.sandboxes[-1] is not sandbox and sandbox in pod.sandboxes:
                pod.sandboxes.remove(sandbox)
            self.forget_if_gone(pod)

    def forget_if_gone(self, pod: Pod) -> None:
        """Forget a pod that is not desired and of which the runtime has no record, and is making none."""
        is_stored = pod.status is not None and pod.deleted_t is None and not pod.static
        if pod.wanted or pod.calls_open or is_stored:
            return
        if any(s.state != "removed" for s in pod.sandboxes):
            return
        if any(c.state != "removed" for c in pod.every_container()):
            return
        if pod.uid:
            self.pods.pop(pod.uid, None)
            if pod.static and pod.pulls:
                self._pulls[pod.uid] = pod.pulls
            self._gone[pod.uid] = pod.finished
            if len(self._gone) > FINISHED_REMEMBERED:
                self._gone.popitem(last=False)
        if self.names.get((pod.namespace, pod.name)) is pod:
            del self.names[pod.namespace, pod.name]
        if pod.mirror_uid:
            self.mirrors.pop(pod.mirror_uid, None)
            self._gone[pod.mirror_uid] = pod.finished
            self._left[pod.mirror_uid] = pod.uid


def _too_many(problem: str) -> BodyError:
    return BodyError(problem, "cut the trace before this line, or record fewer pods")


def _sort(sandboxes: list[Sandbox], found: Sandbox, record: SandboxRecord) -> None:
    """Oldest first, by the runtime's records; one that has none yet was run just now."""

    def created_at(one: Sandbox) -> float:
        reported = record if one is found else one.record
        return reported.created_at if reported is not None else math.inf if one.born else record.created_at

    sandboxes.sort(key=lambda one: (created_at(one), one.born))


def _running(pod: Pod | None, record: SandboxRecord) -> Call | None:
    """The RunPodSandbox that runs this sandbox and has not been answered yet, if there is one."""
    for call in pod.calls_open.values() if pod is not None else ():
        if call.rpc == "RunPodSandbox":
            asked = call.request.view(RunPodSandboxRequest).config
            # A kubelet that was killed may have asked for the same sandbox, seen at another time.
            if (asked.metadata, asked.annotations) == (record.metadata, record.annotations):
                return call
    return None


def _is_of_the_trace(container: Container) -> bool:
    """It was made within the trace, whether its creation was answered or not."""
    return container.born or (container.sandbox is not None and container.sandbox.born)


def _making(pod: Pod | None, record: ContainerRecord) -> Call | None:
    """The CreateContainer that makes this container and was not answered yet, or with an error."""
    if pod is None:
        return None
    failed = pod.create_failed.get(record.metadata.name)
    for call in (*pod.calls_open.values(), *([failed] if failed is not None else [])):
        if call.rpc == "CreateContainer":
            asked = call.request.view(CreateContainerRequest)
            if asked.config.metadata == record.metadata and asked.pod_sandbox_id == record.pod_sandbox_id:
                return call
    return None


def _pod_in_labels(labels: dict[str, str]) -> PodSandboxMetadata:
    """The pod that a container's labels name."""
    return PodSandboxMetadata(
        name=labels.get(Label.POD_NAME, ""),
        namespace=labels.get(Label.POD_NAMESPACE, ""),
        uid=labels.get(Label.POD_UID, ""),
    )


def seen_at(header: Header, annotations: Mapping[str, str]) -> float | None:
    """On the trace's clock; None where that is not known."""
    began = epoch_seconds(header.started or "")
    seen = epoch_seconds(annotations.get(Annotation.SEEN, ""))
    return None if began is None or seen is None else round(seen - began, 6)
