"""Play a stimulus on a stage: the deeds at their times, then quiet until the record ended."""

from __future__ import annotations

import json

from kubelet_conformance.reenact.deeds import (
    AddEphemeral,
    CreatePod,
    Deed,
    DeletePod,
    EndContainer,
    EndKubelet,
    FailCalls,
    KillSandbox,
    LoseSandbox,
    RemoveManifest,
    SetFile,
    StartKubelet,
    UpdatePod,
    WriteManifest,
)
from kubelet_conformance.reenact.stimulus import Stimulus
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.targets.protocols import FaultPlan, RuntimeContainer, RuntimeSandbox, Target

_CALL_SECONDS = 0.01
"""How long a real kubelet and its runtime take to make something. Where it took no time at all, a container
of one second would begin with one relist and be gone by the next."""


class NothingToDoItToError(LookupError):
    """A deed needs a container or sandbox that this kubelet has not made: it went another way before."""


def reenact(stimulus: Stimulus, *, longer_seconds: float = 0.0, kubelet: str = "reference") -> bytes:
    """Do it to that kubelet in process; the trace of what it did until that much later than in the record.

    Raises UnknownTargetError for a kubelet or version that cannot be chosen, StoryError with the trace where
    a deed was not possible.
    """

    async def story(target: Target) -> None:
        for rpc in ("RunPodSandbox", "CreateContainer", "StartContainer"):
            target.runtime.inject(FaultPlan(rpc, "none", delay_seconds=_CALL_SECONDS))
        for image, there in stimulus.images:
            (target.runtime.add_image if there else target.runtime.remove_image)(image)
        for t, deed in stimulus.deeds:
            await target.sleep(max(t - target.now(), 0.0))
            await _do(target, deed)
        await target.sleep(max(stimulus.ends + longer_seconds - target.now(), 0.0))

    stage = open_stage(Choice(kubelet=kubelet, kubernetes=stimulus.kubernetes))
    return stage.play(story, "reenacted", {}, stimulus.kubernetes)


async def _do(target: Target, deed: Deed) -> None:
    match deed:
        case EndKubelet(kill=True):
            await target.kubelet.kill()
        case EndKubelet():
            await target.kubelet.stop()
        case StartKubelet():
            await target.kubelet.start()
        case KillSandbox() | LoseSandbox() | EndContainer() | FailCalls() | SetFile():
            _disturb(target, deed)
        case _:
            _want(target, deed)


def _want(target: Target, deed: Deed) -> None:
    """What users and controllers do."""
    match deed:
        case CreatePod(manifest):
            target.api.create(manifest)
        case UpdatePod(namespace, name, changes):
            target.api.update(namespace, name, changes)
        case AddEphemeral(namespace, name, container):
            target.api.add_ephemeral(namespace, name, container)
        case DeletePod(namespace, name, grace):
            target.api.delete(namespace, name, grace)
        case WriteManifest(manifest):
            target.manifests.write(_file(manifest["metadata"]["name"]), json.dumps(manifest))
        case RemoveManifest(name):
            target.manifests.remove(_file(name))
        case _:
            raise TypeError(f"nobody wants {type(deed).__name__}")


def _file(name: str) -> str:
    return f"{name}.yaml"


def _disturb(target: Target, deed: Deed) -> None:
    """What happens to the runtime."""
    match deed:
        case KillSandbox(pod, attempt):
            target.runtime.kill_sandbox(_sandbox(target, pod, attempt).id)
        case LoseSandbox(pod):
            target.runtime.remove_sandbox(_sandbox(target, pod).id)
        case EndContainer():
            target.runtime.exit(_container(target, deed).id, deed.code)
        case SetFile(name, there):
            target.runtime.set_file(name, there=there)
            target.recorder.record("fault", what=f"{name} is {'there' if there else 'not there'}")
        case FailCalls(rpc, code, message, times):
            target.runtime.inject(FaultPlan(rpc, code=code, message=message, times=times))
            target.recorder.record("fault", what=f"{rpc} before: {code}, {times} times")
        case _:
            raise TypeError(f"no runtime knows {type(deed).__name__}")


def _sandbox(target: Target, pod: str, attempt: int | None = None) -> RuntimeSandbox:
    for sandbox in reversed(target.runtime.sandboxes()):
        if sandbox.pod_name == pod and attempt in {None, sandbox.attempt}:
            return sandbox
    raise NothingToDoItToError(f"pod {pod} has no sandbox {'' if attempt is None else f'#{attempt}'}")


def _container(target: Target, deed: EndContainer) -> RuntimeContainer:
    for container in reversed(target.runtime.containers()):
        names = container.sandbox.pod_name, container.name, container.attempt
        if names == (deed.pod, deed.container, deed.attempt):
            return container
    raise NothingToDoItToError(f"pod {deed.pod} has no container {deed.container}#{deed.attempt}")
