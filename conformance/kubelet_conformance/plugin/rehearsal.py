"""Rehearse a scenario on virtual time, to learn what it needs before it is played on a real runtime.

A rehearsal takes milliseconds, and its control objects note what they are asked to do. Nothing is inferred
from how it ends: what counts is what a scenario asks for, what it makes the kubelet ask for, and how long it
takes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from kubelet_conformance.node import Node, scenario_of
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.targets.protocols import StoryError, Target
from kubelet_conformance.trace.recorder import Failed, Item, RecordedCall, RecordedReply, Recorder

_BY_KIND = frozenset({"api.put", "api.remove"})
"""Controls of which it matters to what kind of object they are applied."""


@dataclass(slots=True)
class Rehearsal:
    """What a scenario turned out to need.

    Attributes:
        uses: the controls that it used, such as `runtime.inject`, `kubelet.kill` or `api.put Node`.
        seconds: how long it took.
        images: those of the containers that were made.
        pulled: the images that were pulled.
        handlers: the runtime handlers by which sandboxes were run.
        host_ports: it wanted ports of the node, or containers on the node's network.
        servers: something was sent over the network to its pods.
    """

    uses: set[str] = field(default_factory=set[str])
    seconds: float = 0
    images: set[str] = field(default_factory=set[str])
    pulled: set[str] = field(default_factory=set[str])
    handlers: set[str] = field(default_factory=set[str])
    host_ports: bool = False
    servers: bool = False


def rehearse(
    story: Callable[..., Awaitable[None]], name: str, choice: Choice, arguments: Mapping[str, Any]
) -> Rehearsal:
    """Play the scenario on the reference and the fake, as this version of Kubernetes; what it needed."""
    found = Rehearsal()

    async def on(target: Target) -> None:
        try:
            await story(**{**arguments, "node": Node(_watched(target, found.uses))})
        finally:
            found.seconds = target.now()
            _look_at(target.recorder, found)

    # One that fails may depend on a real runtime; how far it came tells enough.
    with suppress(StoryError):
        declared = scenario_of(story)
        version = choice.kubernetes or declared.nearest()
        open_stage(choice).play(on, name, dict(declared.settings), version)
    return found


def _watched(target: Target, uses: set[str]) -> Target:
    """The target with controls that note their use."""
    controls = ("runtime", "api", "manifests", "kubelet", "machine")
    noting: Any = {name: _Control(name, getattr(target, name), uses) for name in controls}
    return replace(target, **noting)


class _Control:
    """One of a target's control objects; each use of it is noted."""

    def __init__(self, name: str, control: object, uses: set[str]) -> None:
        self._name = name
        self._control = control
        self._uses = uses

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the control has
        use = f"{self._name}.{name}"
        found = getattr(self._control, name)
        if use not in _BY_KIND:
            self._uses.add(use)
            return found

        def noted(kind: str, *arguments: object) -> object:
            self._uses.add(f"{use} {kind}")
            return found(kind, *arguments)

        return noted


def _look_at(recorder: Recorder, found: Rehearsal) -> None:
    for seen in recorder.records:
        match seen:
            case RecordedCall():
                _look_at_call(seen, found)
            case RecordedReply() if seen.call.rpc == "PullImage" and not isinstance(seen.outcome, Failed):
                request: Any = seen.call.request
                found.pulled.add(request.image.image)
            case Item():
                _look_at_item(seen, found)
            case _:
                pass


def _look_at_call(call: RecordedCall, found: Rehearsal) -> None:
    request: Any = call.request
    if call.rpc == "RunPodSandbox":
        if request.runtime_handler:
            found.handlers.add(request.runtime_handler)
    elif call.rpc == "CreateContainer":
        image = request.config.image
        found.images.add(image.user_specified_image or image.image)


def _look_at_item(item: Item, found: Rehearsal) -> None:
    if item.kind == "probe":
        found.servers = True
    elif item.kind == "pod" and item.fields["op"] == "set":
        spec: Mapping[str, Any] = item.fields["pod"].get("spec") or {}
        containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
        ports = [port for each in containers for port in each.get("ports") or ()]
        found.host_ports |= any(port.get("hostPort") for port in ports)
