"""Run a scenario on virtual time, to learn whether and where it is played on a real runtime.

A dry_run takes milliseconds, and its control objects note what they are asked to do. Nothing is inferred
from how it ends: what counts is what a scenario asks for, what it makes the kubelet ask for, and how long it
takes.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, cast

from kubelet_conformance.node import Node, Scenario, scenario_of
from kubelet_conformance.plugin.live.forecast import duration
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.controls import PLUGIN_USE, THEN_USE, ApiControl, ScenarioError, Target
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.targets.process.kubelet_paths import has_api_server, unknown_setting
from kubelet_conformance.targets.process.manifest_api import FolderRehearsal
from kubelet_conformance.trace.format.recorder import Failed, Item, RecordedCall, RecordedReply, Recorder

_BY_KIND = frozenset({"api.put", "api.remove"})
"""Controls of which it matters to what kind of object they are applied."""
_SCRIPTED = (
    *("inject", "oom", "lose_track", "restart", "reboot"),
    *("set_conditions", "set_address", "set_file", "add_image", "remove_image", "remove_cgroup"),
    *("protect_image", "lose_events", "delay_events", "reverse_events", "cut_events"),
)
"""What only a runtime that follows a script can be made to do."""
_SCOPED = "set_file"
"""Of these, what each scenario has for itself."""
_SERVERS = ("answer_http", "headers", "open_port", "report_health")
_REGISTRY = "publish_image"
_OF_THE_WHOLE_NODE = frozenset(
    {
        "api.inject",
        "api.forget_history",
        "api.tolerate",
        "api.put Node",
        "api.remove Node",
        "manifests.serve",
        "manifests.make_folder",
    }
    | {f"runtime.{name}" for name in _SERVERS}
    | {"api.put RuntimeClass", "api.remove RuntimeClass"}
)
_OF_SERVERS = frozenset(f"runtime.{name}" for name in _SERVERS)
_OF_THE_IMAGES = frozenset({"runtime.add_image", "runtime.remove_image", "runtime.publish_image"})
_EXTRA_WAIT_SECONDS = 95.0
"""How much longer than in the dry run one wait may take: a healthy pod may be synced that late (WORK-15)."""


@dataclass(slots=True)
class DryRun:
    """What a scenario turned out to need.

    Attributes:
        uses: the controls that it used, such as `runtime.inject`, `kubelet.kill` or `api.put Node`.
        seconds: how long it took.
        images: those of the containers that were made.
        pulled: the images that were pulled.
        handlers: the runtime handlers by which sandboxes were run.
        host_ports: it wanted ports of the node, or containers on the node's network.
        servers: something was sent over the network to its pods.
        refused: what a kubelet that is fed by a manifest folder cannot be made to do for it, or nothing.
    """

    uses: set[str] = field(default_factory=set[str])
    seconds: float = 0
    images: set[str] = field(default_factory=set[str])
    pulled: set[str] = field(default_factory=set[str])
    handlers: set[str] = field(default_factory=set[str])
    host_ports: bool = False
    servers: bool = False
    refused: str = ""


def dry_run(
    function: Callable[..., Awaitable[None]],
    name: str,
    choice: Choice,
    arguments: Mapping[str, Any],
    *,
    by_files: bool = False,
) -> DryRun:
    """Play the scenario on the reference and the fake, for this choice of a target; what it needed.

    Pods are delivered `by_files` to a kubelet without an API server.
    """
    found = DryRun()

    async def on(target: Target) -> None:
        api = FolderRehearsal(target.api)
        watched = _watched(replace(target, api=cast("ApiControl", api)), found.uses)
        try:
            await function(**{**arguments, "node": Node(watched)})
        finally:
            found.seconds = target.now()
            if choice.is_process:
                settings = dict(scenario_of(function).settings)
                found.refused = unknown_setting(settings, ours=not choice.is_foreign)
                if by_files or not has_api_server(settings):
                    found.refused = found.refused or api.refused
            _look_at(target.recorder, found)

    # One that fails may depend on a real runtime; how far it came shows enough.
    with suppress(ScenarioError):
        declared = scenario_of(function)
        version = choice.kubernetes or declared.nearest()
        usual, then = Choice(kubernetes=choice.kubernetes, seed=choice.seed), declared.then_kubernetes
        found.uses.update([THEN_USE] if then else [])
        open_stage(usual).play(on, name, dict(declared.settings), version, then=then)
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


def _look_at(recorder: Recorder, found: DryRun) -> None:
    request: Any
    for seen in recorder.records:
        match seen:
            case RecordedCall(rpc="RunPodSandbox"):
                request = seen.request
                found.handlers.update(filter(None, [request.runtime_handler]))
            case RecordedCall(rpc="NodePrepareResources"):
                found.uses.add(PLUGIN_USE)
            case RecordedCall(rpc="CreateContainer"):
                request = seen.request
                image = request.config.image
                found.images.add(image.user_specified_image or image.image)
            case RecordedReply() if seen.call.rpc == "PullImage" and not isinstance(seen.outcome, Failed):
                request = seen.call.request
                found.pulled.add(request.image.image)
            case Item(kind="probe"):
                found.servers = True
            case Item(kind="pod", fields={"op": "set", "pod": pod}):
                spec: Mapping[str, Any] = pod.get("spec") or {}
                containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
                ports = [port for each in containers for port in each.get("ports") or ()]
                found.host_ports |= any(port.get("hostPort") for port in ports)
            case _:
                pass


class Place(StrEnum):
    """Where a scenario is played."""

    SHARED = "shared"
    ALONE = "alone"
    NOWHERE = "not applicable"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where, why (for one that is not applicable: what is missing), and how many seconds it should take."""

    place: Place
    reason: str = ""
    seconds: float = 0

    @property
    def wait_seconds_max(self) -> float:
        """How long one wait may take."""
        return self.seconds + _EXTRA_WAIT_SECONDS


def placed(
    declared: Scenario, found: DryRun, budget: float, controls: frozenset[str] = frozenset()
) -> Placement:
    """Where a scenario is played that was tried so.

    `budget` is in seconds of wall time; `controls` are what the runtime can be made to do beyond the CRI.
    """
    missing = next(_missing(declared, found, budget, controls), "")
    if missing:
        return Placement(Place.NOWHERE, f"needs {missing}")
    reason = _why_alone(declared, found)
    return Placement(Place.ALONE if reason else Place.SHARED, reason, found.seconds)


def _missing(declared: Scenario, found: DryRun, budget: float, controls: frozenset[str]) -> Iterator[str]:
    """What a real runtime does not have, or the wall time."""
    is_real = "inject" not in controls
    if is_real and declared.needs:
        yield declared.needs
    scripted = [name for name in _SCRIPTED if f"runtime.{name}" in found.uses and name not in controls]
    if scripted or (is_real and declared.exempt):
        yield f"a scripted runtime: {', '.join(scripted) or 'one that breaks contracts'}"
    if not controls.issuperset(_SERVERS) and (found.servers or _OF_SERVERS & found.uses):
        yield "servers in its pods"
    if any(use.startswith("machine.") for use in found.uses - {"machine.leave_file"}):
        yield "a machine that can be short of memory or disk, or shut down"
    by_digest = sorted(each for each in found.pulled if "@" in each)
    if is_real and by_digest:
        yield f"a registry with {', '.join(by_digest)}"
    if _REGISTRY not in controls and (found.pulled or f"runtime.{_REGISTRY}" in found.uses):
        yield f"a registry{' with ' * bool(found.pulled)}{', '.join(sorted(found.pulled))}"
    if is_real and found.handlers:
        yield f"runtime handlers: {', '.join(sorted(found.handlers))}"
    if found.seconds > budget:
        yield f"{duration(found.seconds)} of wall time"
    if found.refused:
        yield found.refused


def _why_alone(declared: Scenario, found: DryRun) -> str:
    """Why a scenario cannot share a node; "" if it can."""
    if declared.settings:
        return "sets " + ", ".join(name for name, _ in declared.settings)
    if any(use.startswith("kubelet.") for use in found.uses):
        return "starts and ends the kubelet"
    if found.pulled or found.uses & _OF_THE_IMAGES:
        return "changes the images of the node"
    misbehaves = any(f"runtime.{name}" in found.uses for name in _SCRIPTED if name != _SCOPED)
    if misbehaves or declared.exempt:
        return "makes the runtime misbehave"
    of_node = sorted(found.uses & _OF_THE_WHOLE_NODE)
    if of_node:
        return f"touches the whole node: {', '.join(of_node)}"
    return "takes ports of the node" if found.host_ports else ""
