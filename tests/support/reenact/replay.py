"""Replay recorded actions on another kubelet: each at its time, then quiet until the record ended."""

from dataclasses import dataclass

from kubelet_conformance.node import Node
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.controls import Effect, Fault, RuntimeControl, Target
from kubelet_conformance.targets.opening import open_stage
from reenact.actions import RecordedActions

_CALL_SECONDS = 0.01
"""How long a real kubelet and its runtime take to make something. Where it took no time at all, a container
of one second would begin with one relist and be gone by the next."""


class NotThereError(LookupError):
    """An action needs a container or sandbox that this kubelet has not made: it went another way before."""


def replay(recorded: RecordedActions, *, longer_seconds: float = 0.0, kubelet: str = "reference") -> bytes:
    """Do the same to that kubelet in process; the trace of what it did until that much later than recorded.

    Raises UnknownTargetError for a kubelet or version that cannot be chosen, ScenarioError with the trace
    where an action was not possible.
    """

    async def scenario(target: Target) -> None:
        for rpc in ("RunPodSandbox", "CreateContainer", "StartContainer"):
            target.runtime.inject(Fault(rpc, Effect.NONE, delay=_CALL_SECONDS))
        for image, there in recorded.images:
            (target.runtime.add_image if there else target.runtime.remove_image)(image)
        names = {"node": Node(target), "records": _Records(target.runtime)}
        for t, actions in recorded.actions:
            await target.sleep(max(t - target.now(), 0.0))
            for action in actions:
                await action.do(names)
        await target.sleep(max(recorded.ends + longer_seconds - target.now(), 0.0))

    stage = open_stage(Choice(kubelet=kubelet, kubernetes=recorded.kubernetes))
    return stage.play(scenario, "reenacted", {}, recorded.kubernetes)


@dataclass(frozen=True, slots=True)
class _Records:
    """The ids that a runtime has given to what a recorded action names."""

    runtime: RuntimeControl

    def sandbox(self, pod: str, attempt: int | None = None) -> str:
        """That attempt of a pod's sandbox, or the newest."""
        for sandbox in reversed(self.runtime.sandboxes()):
            if sandbox.pod_name == pod and attempt in {None, sandbox.attempt}:
                return sandbox.id
        raise NotThereError(f"pod {pod} has no sandbox {'' if attempt is None else f'#{attempt}'}")

    def container(self, pod: str, name: str, attempt: int) -> str:
        """That attempt of a pod's container."""
        for container in reversed(self.runtime.containers()):
            if (container.sandbox.pod_name, container.name, container.attempt) == (pod, name, attempt):
                return container.id
        raise NotThereError(f"pod {pod} has no container {name}#{attempt}")
