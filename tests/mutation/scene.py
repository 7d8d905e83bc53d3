"""What happens in a recording: its mutating calls, and which pod and object each is about.

Mutating are the calls that change what the runtime holds, and an ExecSync that runs a lifecycle hook: it
acts inside the container. The ExecSync of a probe asks a question and counts as a read.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from recording import Json, Recording

MUTATING = (
    "RunPodSandbox",
    "StopPodSandbox",
    "RemovePodSandbox",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
    "RemoveContainer",
    "PullImage",
    "ExecSync",
)


@dataclass(frozen=True, slots=True)
class Action:
    """One mutating call with its reply; `call` and `reply` are places in the list of records."""

    rpc: str
    call: int
    reply: int
    begin: float
    end: float
    request: Json
    failed: bool
    target: str
    """The sandbox or container it names or makes; the image of a pull."""
    pod: str
    """The pod's UID, or nothing."""

    @property
    def names_container(self) -> bool:
        """Its target is a container."""
        return self.rpc in {
            "CreateContainer",
            "StartContainer",
            "StopContainer",
            "RemoveContainer",
            "ExecSync",
        }


class Scene:
    """A recording, looked at once."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.records = recording.records
        self.replies: dict[str, int] = {
            record["id"]: place for place, record in enumerate(self.records) if record["kind"] == "reply"
        }
        self._pod_of_sandbox: dict[str, str] = {}
        self._sandbox_of: dict[str, str] = {}
        self.name_of: dict[str, str] = {}
        """The name of each container."""
        for record in self.records:
            if record["kind"] == "reply" and "response" in record:
                self._learn(record["rpc"], record["response"])

    def _learn(self, rpc: str, response: Json) -> None:
        for item in response.get("items", ()) if rpc == "ListPodSandbox" else ():
            self._pod_of_sandbox[item["id"]] = item["metadata"]["uid"]
        for item in response.get("containers", ()) if rpc == "ListContainers" else ():
            self._sandbox_of[item["id"]] = item["pod_sandbox_id"]
            self.name_of[item["id"]] = item["metadata"]["name"]

    @cached_property
    def hooks(self) -> list[list[str]]:
        """The commands of the lifecycle hooks of every pod wanted."""
        return [
            handler["exec"]["command"]
            for container in self._every_container_wanted()
            for handler in container.get("lifecycle", {}).values()
            if "exec" in handler
        ]

    @cached_property
    def sidecars(self) -> set[str]:
        """The names of the restartable init containers of every pod wanted."""
        return {
            container["name"]
            for container in self._every_container_wanted()
            if container.get("restartPolicy") == "Always"
        }

    def _every_container_wanted(self) -> Iterator[Json]:
        for record in self.records:
            if record["kind"] == "pod" and record["op"] == "set":
                spec = record["pod"]["spec"]
                yield from spec["containers"]
                yield from spec.get("initContainers", ())

    @cached_property
    def actions(self) -> list[Action]:
        """Every mutating call that was answered, in the order of their begin."""
        return [
            self._action(place, self.replies[record["id"]])
            for place, record in enumerate(self.records)
            if record["kind"] == "call" and self._mutates(record) and record["id"] in self.replies
        ]

    def _mutates(self, call: Json) -> bool:
        if call["rpc"] == "ExecSync":
            return call["request"].get("cmd") in self.hooks
        return call["rpc"] in MUTATING

    def _action(self, call: int, reply: int) -> Action:
        begin, end = self.records[call], self.records[reply]
        request: Json = begin["request"]
        target, sandbox, pod = self._about(request, end.get("response", {}))
        return Action(
            begin["rpc"],
            call,
            reply,
            begin["t"],
            end["t"],
            request,
            "error" in end,
            target,
            pod or self._pod_of_sandbox.get(sandbox, ""),
        )

    def _about(self, request: Json, response: Json) -> tuple[str, str, str]:
        """Its target, its sandbox and, where the request says it, its pod."""
        if "config" in request and "pod_sandbox_id" not in request:
            made = response.get("pod_sandbox_id", "")
            pod = request["config"]["metadata"]["uid"]
            self._pod_of_sandbox[made] = pod
            return made, made, pod
        if "config" in request:
            made, sandbox = response.get("container_id", ""), request["pod_sandbox_id"]
            self._sandbox_of[made] = sandbox
            self.name_of[made] = request["config"]["metadata"]["name"]
            return made, sandbox, ""
        if "container_id" in request:
            container = request["container_id"]
            return container, self._sandbox_of.get(container, ""), ""
        if "image" in request:
            config: dict[str, Any] = request.get("sandbox_config", {})
            return request["image"]["image"], "", config.get("metadata", {}).get("uid", "")
        sandbox = request.get("pod_sandbox_id", "")
        return sandbox, sandbox, ""

    @cached_property
    def by_reply(self) -> dict[int, Action]:
        """The actions by the place of their reply."""
        return {action.reply: action for action in self.actions}

    @cached_property
    def of_pod(self) -> dict[str, list[Action]]:
        """The actions of each pod."""
        found: dict[str, list[Action]] = defaultdict(list)
        for action in self.actions:
            if action.pod:
                found[action.pod].append(action)
        return found

    def next_of_pod(self, action: Action) -> Action | None:
        """The pod's next mutating call."""
        own = self.of_pod.get(action.pod, [])
        later = own[own.index(action) + 1 :] if action in own else []
        return later[0] if later else None

    def at_runtime(self, place: int, *, containers: bool) -> list[str]:
        """Ids of the containers, or sandboxes, the runtime holds before this place, oldest first."""
        made, gone = (
            ("CreateContainer", "RemoveContainer") if containers else ("RunPodSandbox", "RemovePodSandbox")
        )
        held: dict[str, None] = {}
        for action in self.actions:
            if action.reply >= place or action.failed:
                continue
            if action.rpc == made:
                held[action.target] = None
            elif action.rpc == gone:
                held.pop(action.target, None)
        return list(held)
