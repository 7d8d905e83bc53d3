"""Reads from a trace what was done to the kubelet from outside: pods, restarts and faults.

Pods sent and removed, kubelet restarts and what the runtime did by itself stand in the trace. Faults on
calls show in their replies: as many calls in a row as failed are to fail again. What a scripted container
does needs no action: its script is in its command.
"""

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from kubelet_conformance.node.actions import Action, act, awaited
from kubelet_conformance.reports.trace_text.steps import MUTATING
from kubelet_conformance.targets import controls
from kubelet_conformance.trace.format.bodies import (
    ExecSyncReply,
    ExecSyncRequest,
    ImageStatusReply,
    ImageStatusRequest,
)
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import (
    Deleted,
    Fault,
    Kubelet,
    PodChange,
    Record,
    Reply,
    RuntimeEvent,
    Unknown,
)
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.observe import update_world
from kubelet_conformance.trace.world.resolve import is_stopped, key_of, moment_of
from kubelet_conformance.trace.world.world import World

Json = dict[str, Any]
Timed: TypeAlias = tuple[float, tuple[Action, ...]]
"""When (s) and what; the actions of one moment belong together."""

_SCRIPTS = frozenset({"run", "exit", "seq"})
_STORED = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"}
)
"""Metadata that the API server gives."""


@dataclass(frozen=True, slots=True)
class RecordedActions:
    """What was done, and when.

    Attributes:
        kubernetes: the version of the kubelet it was done to, such as "1.32".
        images: by name, whether the node had it from the start.
        actions: with the seconds since the kubelet's first start, in order.
        ends: when observation ended, in the same seconds.
    """

    kubernetes: str
    images: tuple[tuple[str, bool], ...]
    actions: tuple[Timed, ...]
    ends: float


def read_actions(path: str) -> RecordedActions:
    """What was done, as a trace shows it; raises TraceError where the file is none."""
    reading = _Reading()
    with Reader(path) as reader:
        world = World(reader.header)
        last: Record | None = None
        for record in reader:
            last = record
            if isinstance(record, Unknown):
                continue
            moment = moment_of(world, record, key_of(record))
            reading.take(moment)
            update_world(moment)
    return reading.actions(reader.header.kubernetes or "", last.t if last is not None else 0.0)


@dataclass(slots=True)
class _Pod:
    """A pod at the API server as it was last sent."""

    namespace: str
    name: str
    spec: Json
    debug: list[Json]
    asked_to_go: bool = False


@dataclass(slots=True)
class _Reading:
    """What has been found out so far."""

    begun: float | None = None
    done: list[Timed] = field(default_factory=list[Timed])
    pods: dict[str, _Pod] = field(default_factory=dict[str, _Pod])
    images: dict[str, bool] = field(default_factory=dict[str, bool])
    files: dict[str, bool] = field(default_factory=dict[str, bool])
    fault_t: float = 0.0
    healthy_t: dict[str, float] = field(default_factory=dict[str, float])
    """When a call of an rpc last succeeded, or the first of those that fail now began to."""
    failing: dict[str, controls.Fault] = field(default_factory=dict[str, controls.Fault])

    def actions(self, kubernetes: str, ends: float) -> RecordedActions:
        for rpc in list(self.failing):
            self._no_longer_fails(rpc)
        begun = self.begun or 0.0
        done = sorted(self.done, key=lambda each: each[0])
        images = tuple(self.images.items())
        return RecordedActions(kubernetes, images, tuple((t - begun, each) for t, each in done), ends - begun)

    def take(self, moment: Moment) -> None:
        """Take in the next record."""
        match moment.record:
            case Kubelet() as record:
                self._kubelet(record)
            case PodChange(source="api") as record:
                self._api(record)
            case PodChange() as record:
                self._file(record)
            case Deleted() as record:
                self._deleted(record)
            case RuntimeEvent() as record:
                self._by_itself(moment, record)
            case Fault() as record:
                self._fault(moment, record)
            case Reply() as record:
                self._reply(moment, record)
            case _:
                pass

    def _do(self, t: float, *actions: Action) -> None:
        self.done.append((t, actions))

    def _disturb(self, t: float, action: Action, what: str) -> None:
        """A fault, which is recorded."""
        self._do(t, action, act("node.target.recorder.record", "fault", what=what))

    def _kubelet(self, record: Kubelet) -> None:
        if record.op != "started":
            self._do(record.t, awaited(f"node.kubelet.{'kill' if record.op == 'killed' else 'stop'}"))
        elif self.begun is None:
            self.begun = record.t
        else:
            self._do(record.t, awaited("node.kubelet.start"))

    # Pods.

    def _api(self, record: PodChange) -> None:
        if record.op == "remove":
            return
        manifest: Json = msgspec.json.decode(record.pod)
        metadata: Json = manifest["metadata"]
        spec = {name: value for name, value in manifest["spec"].items() if name != "ephemeralContainers"}
        debug: list[Json] = manifest["spec"].get("ephemeralContainers", [])
        known = self.pods.get(metadata["uid"])
        if known is None:
            kept = {name: value for name, value in metadata.items() if name not in _STORED}
            self.pods[metadata["uid"]] = known = _Pod(
                metadata.get("namespace", "default"), metadata["name"], spec, []
            )
            self._do(record.t, act("node.api.create", {**manifest, "metadata": kept, "spec": spec}))
        self._changed(record.t, known, spec, debug)
        grace = metadata.get("deletionGracePeriodSeconds")
        # Grace 0 may be the kubelet's own final deletion, which a client that polls happens to see.
        if metadata.get("deletionTimestamp") and grace and not known.asked_to_go:
            known.asked_to_go = True
            self._do(record.t, act("node.api.delete", known.namespace, known.name, grace))

    def _changed(self, t: float, pod: _Pod, spec: Json, debug: list[Json]) -> None:
        if spec != pod.spec:
            self._do(t, act("node.api.update", pod.namespace, pod.name, {"spec": spec}))
        for container in debug:
            if container not in pod.debug:
                self._do(t, act("node.api.add_ephemeral", pod.namespace, pod.name, container))
        pod.spec, pod.debug = spec, debug

    def _deleted(self, record: Deleted) -> None:
        """An object was deleted by force, without a recorded request."""
        pod = self.pods.pop(record.uid, None)
        if pod is not None and not pod.asked_to_go:
            self._do(record.t, act("node.api.delete", pod.namespace, pod.name, 0))

    def _file(self, record: PodChange) -> None:
        if record.op == "set":
            manifest: Json = msgspec.json.decode(record.pod)
            file, text = f"{manifest['metadata']['name']}.yaml", json.dumps(manifest)
            self._do(record.t, act("node.manifests.write", file, text))
        else:
            self._do(record.t, act("node.manifests.remove", f"{record.name}.yaml"))

    # The runtime.

    def _by_itself(self, moment: Moment, record: RuntimeEvent) -> None:
        pod = moment.pod.name if moment.pod is not None else ""
        if record.op == "sandbox-died" and moment.sandbox is not None:
            dead = act("records.sandbox", pod, moment.sandbox.attempt)
            self._do(record.t, act("node.runtime.kill_sandbox", dead))
        container, end = moment.container, moment.exit
        if container is None or end is None or is_stopped(container, record.t):
            return
        command = container.spec.command if container.spec is not None else None
        if not command or command[0] not in _SCRIPTS:
            ended = act("records.container", pod, container.name, container.attempt)
            self._do(record.t, act("node.runtime.exit", ended, end.code or 0))

    def _fault(self, moment: Moment, record: Fault) -> None:
        self.fault_t = record.t
        if record.what == "sandbox+containers vanish":
            newest = act("records.sandbox", next(iter(moment.world.pods.values())).name)
            self._do(record.t, act("node.runtime.remove_sandbox", newest))

    def _reply(self, moment: Moment, reply: Reply) -> None:
        rpc = reply.call.rpc
        if rpc == "ExecSync" and reply.error is None:
            self._executed(moment)
        elif rpc == "ImageStatus" and reply.error is None:
            name = moment.request(ImageStatusRequest).image.image
            self.images.setdefault(name, moment.response(ImageStatusReply).image is not None)
        if rpc in MUTATING:
            self._ended(reply)

    def _executed(self, moment: Moment) -> None:
        """`xf FILE` shows whether the file is there; it came or went with the latest fault."""
        match moment.request(ExecSyncRequest).cmd:
            case ["xf", file]:
                there = moment.response(ExecSyncReply).exit_code == 0
                if there != self.files.get(file, False):
                    before = min(self.fault_t if file in self.files else 0.0, moment.t)
                    what = f"{file} is {'there' if there else 'not there'}"
                    self._disturb(before, act("node.runtime.set_file", file, there=there), what)
                self.files[file] = there
            case _:
                pass

    def _ended(self, reply: Reply) -> None:
        """Count the calls in a row that fail without the runtime's own reason."""
        rpc, error = reply.call.rpc, reply.error
        if error is None:
            self._no_longer_fails(rpc)
            self.healthy_t[rpc] = reply.t
        elif error.code != "NOT_FOUND":
            run = self.failing.get(rpc)
            times = (run.times if run is not None else None) or 0
            self.failing[rpc] = controls.Fault(rpc, code=error.code, message=error.message, times=times + 1)

    def _no_longer_fails(self, rpc: str) -> None:
        run = self.failing.pop(rpc, None)
        if run is not None:
            self._disturb(self.healthy_t.get(rpc, 0.0), act("node.runtime.inject", run), str(run))
