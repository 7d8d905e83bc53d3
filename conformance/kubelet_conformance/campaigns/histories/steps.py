"""The actions of a history as data: each step becomes calls of the node's methods.

Steps name things by a number that counts modulo what is there when their turn comes, so that a history from
which steps were taken is still one. A step for which nothing is there is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import msgspec

from kubelet_conformance.node import Node, PodHandle
from kubelet_conformance.node.actions import Action, Name, act, awaited
from kubelet_conformance.node.manifests import IMAGE
from kubelet_conformance.targets.controls import Effect, Fault, RuntimeContainer

Json = dict[str, Any]
T = TypeVar("T")
_OK = 200


@dataclass(frozen=True, slots=True)
class PerformedStep:
    """What a step came to: when (s), in words, and as actions."""

    at: float
    words: str
    actions: tuple[Action, ...]

    @property
    def code(self) -> list[str]:
        """The lines of a scenario that do the same."""
        return [each.code for each in self.actions]


@dataclass(slots=True)
class HistoryPod:
    """A name under which pods are created, one after another.

    Attributes:
        name: the pod's, and the variable's in a scenario, with an underscore.
        manifest: that of the latest pod.
        static: it comes from a file.
        there: the pod is desired: its deletion has not been asked for since.
    """

    name: str
    manifest: Json
    static: bool
    _names: Mapping[str, Any]
    there: bool = True

    @property
    def variable(self) -> str:
        """What it is called in a scenario."""
        return self.name.replace("-", "_")

    @property
    def handle(self) -> PodHandle:
        """That of the latest pod of this name."""
        handle: PodHandle = self._names[self.variable]
        return handle


class NothingThereError(LookupError):
    """What a step is about is not there."""


@dataclass(slots=True)
class Progress:
    """How far a history has come.

    Attributes:
        evented: the kubelet uses container events.
        missed: some of these may have been lost or late.
        done: what the steps came to.
        not_converged: what had not converged long after the node was healed, in words.
        watched: for how long the node was watched after it was healed, in seconds.
    """

    evented: bool = False
    missed: bool = False
    done: list[PerformedStep] = field(default_factory=list[PerformedStep])
    not_converged: Sequence[str] = ()
    watched: float = 0.0


class LiveHistory:
    """One history on a node.

    Attributes:
        node: where it happens.
        progress: what has happened.
        wanted: every name under which pods were created, in order.
        answers: what servers in pods answer, by path.
        unpublished: the images that the registry does not have.
    """

    def __init__(self, node: Node, progress: Progress) -> None:
        self.node = node
        self.progress = progress
        self.wanted: list[HistoryPod] = []
        self.answers: dict[str, int] = {}
        self.unpublished: set[str] = set()
        self._names: dict[str, Any] = {"node": node, "faults": ExitStack()}

    async def perform(self, step: Step) -> None:
        """Let one step happen; nothing, if what it is about is not there."""
        try:
            words, *actions = step.on(self)
        except NothingThereError:
            return
        self.progress.done.append(PerformedStep(self.node.now, words, tuple(actions)))
        for action in actions:
            await action.do(self._names)

    async def heal_all(self) -> None:
        """End whatever is wrong with the node: faults, servers that fail, images that are missing."""
        await self.perform(Heal())
        for path, status in list(self.answers.items()):
            if status != _OK:
                await self.perform(SetProbeResponse(path, _OK))
        for image in sorted(self.unpublished):
            await self.perform(Publish(image, there=True))

    def add(self, manifest: Json, *, static: bool) -> HistoryPod:
        """Another name, under which this pod is going to be created."""
        name = f"pod-{len(self.wanted) + 1}"
        manifest = {**manifest, "metadata": {**manifest["metadata"], "name": name}}
        self.wanted.append(HistoryPod(name, manifest, static, self._names))
        return self.wanted[-1]

    def is_stored(self, one: HistoryPod) -> bool:
        """Whether the API server has a pod of that name."""
        return self.node.api.get(one.handle.namespace, one.handle.name) is not None

    def newest(self) -> list[tuple[HistoryPod, RuntimeContainer]]:
        """The newest instance of each container of each pod that a scenario can name."""
        by_uid: dict[str, HistoryPod] = {}
        for one in self.wanted:
            by_uid.setdefault(one.handle.uid, one)
        by_name: dict[tuple[str, str], tuple[HistoryPod, RuntimeContainer]] = {}
        for container in self.node.runtime.containers():
            found = by_uid.get(container.sandbox.pod_uid)
            if found is not None:
                by_name[found.name, container.name] = found, container
        return list(by_name.values())


_Comes: TypeAlias = tuple[str, *tuple[Action, ...]]
"""What a step comes to: words and actions."""


class _Step(msgspec.Struct, frozen=True, tag_field="step", forbid_unknown_fields=True):
    comes: ClassVar[_Comes]
    """What it comes to, where that is always the same."""

    def on(self, live: LiveHistory) -> _Comes:
        """What it comes to there; raises NothingThereError."""
        return self._on(live)

    def _on(self, live: LiveHistory, /) -> _Comes:  # noqa: ARG002 - most steps look at what is there
        return self.comes


def _pick(found: Sequence[T], number: int) -> T:
    if not found:
        raise NothingThereError
    return found[number % len(found)]


def _want(one: HistoryPod, again: str = "") -> _Comes:
    verb, source = ("want_static", "static pod") if one.static else ("want", "pod")
    words = f"{source} {one.name} is created{again}: {in_words(one.manifest)}"
    return words, Action(f"node.{verb}", (one.manifest,), to=one.variable)


def _delete(one: HistoryPod, grace: int | None) -> tuple[str, Action]:
    """How much grace is given in words, and the deletion."""
    if grace is None:
        return "", act(f"{one.variable}.delete")
    return f" with a grace of {grace} s", act(f"{one.variable}.delete", grace)


# Pods.


class Want(_Step, tag="want", frozen=True):
    """Another pod is created, at the API server or by a file; its name is its number."""

    manifest: Json
    static: bool = False

    def _on(self, live: LiveHistory, /) -> _Comes:
        return _want(live.add(self.manifest, static=self.static))


class AddAgain(_Step, tag="add-again", frozen=True):
    """A pod that was deleted is created again under its name, a static one by the same file."""

    pod: int

    def _on(self, live: LiveHistory, /) -> _Comes:
        gone = [each for each in live.wanted if not each.there and (each.static or not live.is_stored(each))]
        one = _pick(gone, self.pod)
        one.there = True
        return _want(one, " again")


class Update(_Step, tag="update", frozen=True):
    """A container gets another image; a static pod's file is written anew, and makes another pod of it."""

    pod: int
    container: int
    image: str

    def _on(self, live: LiveHistory, /) -> _Comes:
        there = [each for each in live.wanted if each.there and (each.static or live.is_stored(each))]
        one = _pick(there, self.pod)
        spec = one.manifest["spec"]
        containers = list(spec["containers"])
        number = self.container % len(containers)
        containers[number] = {**containers[number], "image": self.image}
        one.manifest = {**one.manifest, "spec": {**spec, "containers": containers}}
        if one.static:
            return _want(one, " again")
        name = containers[number]["name"]
        words = f"the image of {name} of {one.name} becomes {self.image}"
        return words, act(f"{one.variable}.set_image", name, self.image)


class Delete(_Step, tag="delete", frozen=True):
    """A pod's deletion is asked for, or its file removed; `grace` in seconds, None leaves it to the pod."""

    pod: int
    grace: int | None = None

    def _on(self, live: LiveHistory, /) -> _Comes:
        found = [each for each in live.wanted if (each.there if each.static else live.is_stored(each))]
        one = _pick(found, self.pod)
        one.there = False
        if one.static:
            return f"the file of {one.name} is removed", act("node.manifests.remove", f"{one.name}.yaml")
        grace, action = _delete(one, self.grace)
        return f"the deletion of {one.name} is asked for{grace}", action


class DeleteMirror(_Step, tag="delete-mirror", frozen=True):
    """A user deletes the mirror of a static pod at the API server; `grace` as of `Delete`."""

    pod: int
    grace: int | None = None

    def _on(self, live: LiveHistory, /) -> _Comes:
        shown = [each for each in live.wanted if each.static and live.is_stored(each)]
        one = _pick(shown, self.pod)
        grace, action = _delete(one, self.grace)
        return f"a user deletes the mirror of {one.name}{grace}", action


# What happens in pods.


class End(_Step, tag="end", frozen=True):
    """A container that runs ends by itself, or for lack of memory."""

    container: int
    code: int = 0
    oom: bool = False

    def _on(self, live: LiveHistory, /) -> _Comes:
        found = _pick([each for each in live.newest() if each[1].state == "RUNNING"], self.container)
        one, name = found[0], found[1].name
        if self.oom:
            container = Action(f"{one.variable}.container", (name,), part="id")
            words = f"{name} of {one.name} is killed for lack of memory"
            return words, act("node.runtime.oom", container)
        return f"{name} of {one.name} exits with {self.code}", act(f"{one.variable}.exit", name, self.code)


class KillSandbox(_Step, tag="break-records", frozen=True):
    """A sandbox dies."""

    how: Literal["kill_sandbox"]
    number: int

    def _on(self, live: LiveHistory, /) -> _Comes:
        one = _pick([each for each in live.wanted if each.handle.sandboxes()], self.number)
        words = f"sandbox {one.handle.sandbox().attempt} of {one.name} dies"
        return words, act("node.runtime.kill_sandbox", Action(f"{one.variable}.sandbox", part="id"))


class SetProbeResponse(_Step, tag="flip", frozen=True):
    """The servers in pods answer at a path with this status from now on."""

    path: str
    status: int

    def _on(self, live: LiveHistory, /) -> _Comes:
        live.answers[self.path] = self.status
        words = f"servers answer {self.status} at {self.path}"
        return words, act("node.runtime.answer_http", self.path, self.status)


class Publish(_Step, tag="publish", frozen=True):
    """The registry has an image, or no longer."""

    image: str
    there: bool

    def _on(self, live: LiveHistory, /) -> _Comes:
        (live.unpublished.discard if self.there else live.unpublished.add)(self.image)
        words = f"the registry {'has' if self.there else 'no longer has'} {self.image}"
        return words, act("node.runtime.publish_image", self.image, there=self.there)


# Faults.


class InjectFault(_Step, tag="strike", frozen=True):
    """The next `times` calls fail or are late by `delay` seconds; all until things are healed, if None.

    What is called `rpc` may be a request to the API server or one of a probe too, as faults name them, with
    the codes of HTTP or none.
    """

    rpc: str
    effect: Effect
    times: int | None = 1
    delay: float = 0.0
    code: str = "INTERNAL"

    @property
    def fault(self) -> Fault:
        """The fault that is put in force; only a call that fails has a code."""
        code = self.code if self.effect in {Effect.BEFORE, Effect.AFTER} else ""
        return Fault(self.rpc, self.effect, code, times=self.times, delay=self.delay)

    def _on(self, _: LiveHistory, /) -> _Comes:
        text = str(self.fault)
        return f"from now on {text}", act("faults.enter_context", act("node.inject", text))


class Outage(_Step, tag="outage", frozen=True):
    """The API server is away until things are healed."""

    comes = "the API server goes away", act("faults.enter_context", act("node.outage"))


class DelayWatch(_Step, tag="late-watch", frozen=True):
    """The API server reports each change so much later (s), until things are healed."""

    seconds: float

    def _on(self, _: LiveHistory, /) -> _Comes:
        words = f"the API server reports each change {self.seconds:g} s later"
        return words, act("faults.enter_context", act("node.late_watch", self.seconds))


class ExpireWatch(_Step, tag="forget-history", frozen=True):
    """The watch ends with 410 Gone."""

    comes = "the watch ends with 410 Gone", act("node.forget_history")


_DISTURBED = {
    "lose": "does not report {}",
    "delay": "reports {} only {:g} s later",
    "reverse": "reports {} in reverse order",
}


class DisturbEvents(_Step, tag="disturb-events", frozen=True):
    """The next `count` container events are lost, late by `seconds`, or reversed, or their stream breaks."""

    how: Literal["lose", "delay", "reverse", "cut"]
    count: int = 1
    seconds: float = 0.0

    def _on(self, live: LiveHistory, /) -> _Comes:
        # The count of an earlier step gives way to the new one.
        if not live.progress.evented:
            raise NothingThereError
        if self.how == "cut":
            return "the stream of container events breaks", act("node.runtime.cut_events")
        live.progress.missed = True
        which = f"its next {self.count} events" if self.count > 1 else "its next event"
        words = f"the runtime {_DISTURBED[self.how].format(which, self.seconds)}"
        method = f"node.runtime.{self.how}_events"
        some, none = ((self.count, self.seconds), (0, 0)) if self.how == "delay" else ((self.count,), (0,))
        return words, act(method, *some), act("faults.callback", Name(method), *none)


class Heal(_Step, tag="heal", frozen=True):
    """All faults end."""

    comes = "all faults are healed", act("faults.close")


# The node.


class Wait(_Step, tag="wait", frozen=True):
    """Time passes, in seconds."""

    seconds: float

    def _on(self, _: LiveHistory, /) -> _Comes:
        return f"{self.seconds:g} s pass", awaited("node.wait", self.seconds)


class RestartKubelet(_Step, tag="restart-kubelet", frozen=True):
    """The kubelet is asked to end, or killed, and started again after `down` seconds."""

    down: float = 1.0
    kill: bool = True

    def _on(self, _: LiveHistory, /) -> _Comes:
        verb, how = ("kill", "is killed") if self.kill else ("stop", "is stopped")
        return (
            f"the kubelet {how} and started {self.down:g} s later",
            awaited(f"node.kubelet.{verb}"),
            awaited("node.wait", self.down),
            awaited("node.kubelet.start"),
        )


class RestartRuntime(_Step, tag="restart-runtime", frozen=True):
    """The runtime goes down and comes up; containers go on."""

    comes = "the runtime restarts", act("node.runtime.restart")


class Reboot(_Step, tag="reboot", frozen=True):
    """The node goes down, kubelet and all, and comes up."""

    comes = (
        "the node reboots",
        awaited("node.kubelet.kill"),
        act("node.runtime.reboot"),
        awaited("node.wait", 5),
        awaited("node.kubelet.start"),
    )


_OfPods: TypeAlias = Want | AddAgain | Update | Delete | DeleteMirror
_InPods: TypeAlias = End | KillSandbox | SetProbeResponse | Publish
_Faults: TypeAlias = InjectFault | Outage | DelayWatch | ExpireWatch | DisturbEvents | Heal
_OfTheNode: TypeAlias = Wait | RestartKubelet | RestartRuntime | Reboot
Step: TypeAlias = _OfPods | _InPods | _Faults | _OfTheNode


# Manifests.

_OF_POD = ("containers", "initContainers", "restartPolicy", "terminationGracePeriodSeconds")
_OF_CONTAINER = ("name", "command", "image")


def in_words(manifest: Json) -> str:
    """A pod in one line."""
    spec = manifest["spec"]
    inits = ", ".join(_container_words(each) for each in spec.get("initContainers") or ())
    parts = [
        *([f"init {inits}"] if inits else []),
        ", ".join(_container_words(each) for each in spec["containers"]),
        f"restart {spec['restartPolicy']}",
        f"grace {spec['terminationGracePeriodSeconds']} s",
        *(f"{name} {value}" for name, value in spec.items() if name not in _OF_POD),
    ]
    return "; ".join(parts)


def _container_words(container: Json) -> str:
    image = "" if container["image"] == IMAGE else f", image {container['image']}"
    others = [f", {name} {value}" for name, value in container.items() if name not in _OF_CONTAINER]
    return f"{container['name']} ({' '.join(container['command'])}{image}{''.join(others)})"
