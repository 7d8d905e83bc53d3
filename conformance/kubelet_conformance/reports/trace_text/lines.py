"""One readable line for a record of a trace: what was asked of whom, and how it ended."""

from collections.abc import Callable
from typing import Any, TypeAlias

from kubelet_conformance.reports.safe import safe, short
from kubelet_conformance.trace.format.bodies import (
    ContainerRequest,
    ContainerStatusReply,
    CreateContainerReply,
    CreateContainerRequest,
    ExecSyncReply,
    ExecSyncRequest,
    ImageStatusReply,
    ImageStatusRequest,
    ListContainersReply,
    ListPodSandboxReply,
    PodSandboxStatusReply,
    PullImageReply,
    PullImageRequest,
    RunPodSandboxReply,
    RunPodSandboxRequest,
    SandboxRequest,
    StopContainerRequest,
)
from kubelet_conformance.trace.format.manifests import ContainerStatus
from kubelet_conformance.trace.format.records import (
    ApiWrite,
    Deleted,
    End,
    Event,
    Expect,
    Fault,
    Kubelet,
    PodChange,
    RuntimeEvent,
    Stall,
    Status,
)
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Container, Pod, Sandbox

_Say: TypeAlias = Callable[[Moment], str]
_MESSAGE_CHARS_MAX = 160
_IMAGE_CHARS_MAX = 40


def asked(moment: Moment) -> str:
    """The call that begins or ends here: rpc, whom it is about, and what distinguishes it from others."""
    rpc = moment.call.rpc
    say = _ASKED.get(rpc)
    return f"{safe(rpc)} {say(moment)}" if say else safe(rpc)


def replied(moment: Moment) -> str:
    """How the call ended."""
    reply = moment.reply
    if reply.error is not None:
        text = f"{safe(reply.error.code)}: {safe(reply.error.message, _MESSAGE_CHARS_MAX)}"
        return text if reply.effect else f"{text} (without effect)"
    say = _REPLIED.get(reply.call.rpc)
    return say(moment) if say else "ok"


def described(moment: Moment) -> str:
    """Any record that is no call and no reply."""
    record = moment.record
    say = _DESCRIBED.get(type(record))
    return say(moment, record) if say else safe(record.kind)


def _pod_name(pod: Pod | None, uid: str = "") -> str:
    if pod is not None:
        return safe(f"{pod.namespace or 'default'}/{pod.name}")
    return f"pod {short(uid)}" if uid else "an unknown pod"


def _container_name(container: Container) -> str:
    return f"{safe(container.name)}#{container.attempt}"


def _container(container: Container | None, container_id: str) -> str:
    if container is None:
        return f"container {short(container_id)}"
    return f"{_container_name(container)} ({short(container.id)}) of {_pod_name(container.pod)}"


def _sandbox(sandbox: Sandbox | None, sandbox_id: str) -> str:
    if sandbox is None:
        return f"sandbox {short(sandbox_id)}"
    return f"sandbox {short(sandbox.id)} (attempt {sandbox.attempt}) of {_pod_name(sandbox.pod)}"


def _run_sandbox(moment: Moment) -> str:
    metadata = moment.request(RunPodSandboxRequest).config.metadata
    return f"{safe(f'{metadata.namespace}/{metadata.name}')} attempt {metadata.attempt}"


def _named_sandbox(moment: Moment) -> str:
    return _sandbox(moment.sandbox, moment.request(SandboxRequest).pod_sandbox_id)


def _create(moment: Moment) -> str:
    request = moment.request(CreateContainerRequest)
    meta = request.config.metadata
    sandbox = _sandbox(moment.sandbox, request.pod_sandbox_id)
    image = request.config.image.user_specified_image or request.config.image.image
    return f"{safe(meta.name)}#{meta.attempt} in {sandbox}, image {safe(image, _IMAGE_CHARS_MAX)}"


def _named_container(moment: Moment) -> str:
    return _container(moment.container, moment.request(ContainerRequest).container_id)


def _stop(moment: Moment) -> str:
    return f"{_named_container(moment)}, timeout {moment.request(StopContainerRequest).timeout} s"


def _exec(moment: Moment) -> str:
    request = moment.request(ExecSyncRequest)
    command = safe(" ".join(request.cmd), _MESSAGE_CHARS_MAX)
    return f"{_named_container(moment)}, `{command}`, timeout {request.timeout} s"


def _image(moment: Moment) -> str:
    return safe(moment.request(ImageStatusRequest).image.image)


def _pull(moment: Moment) -> str:
    return f"{safe(moment.request(PullImageRequest).image.image)} for {_pod_name(moment.pod)}"


def _container_state(moment: Moment) -> str:
    record = moment.response(ContainerStatusReply).status
    if record is None:
        return "no status"
    state = safe(record.state).removeprefix("CONTAINER_").lower()
    if record.state != "CONTAINER_EXITED":
        return state
    return f"{state} with code {record.exit_code} {safe(record.reason)}".rstrip()


def _sandbox_state(moment: Moment) -> str:
    record = moment.response(PodSandboxStatusReply).status
    return "no status" if record is None else safe(record.state).removeprefix("SANDBOX_").lower()


def _image_found(moment: Moment) -> str:
    image = moment.response(ImageStatusReply).image
    return "absent" if image is None else f"present, {safe(image.id, _IMAGE_CHARS_MAX)}"


_ASKED: dict[str, _Say] = {
    "RunPodSandbox": _run_sandbox,
    "StopPodSandbox": _named_sandbox,
    "RemovePodSandbox": _named_sandbox,
    "PodSandboxStatus": _named_sandbox,
    "CreateContainer": _create,
    "StartContainer": _named_container,
    "StopContainer": _stop,
    "RemoveContainer": _named_container,
    "ContainerStatus": _named_container,
    "ReopenContainerLog": _named_container,
    "UpdateContainerResources": _named_container,
    "ExecSync": _exec,
    "ImageStatus": _image,
    "PullImage": _pull,
}
_REPLIED: dict[str, _Say] = {
    "RunPodSandbox": lambda moment: f"sandbox {short(moment.response(RunPodSandboxReply).pod_sandbox_id)}",
    "CreateContainer": lambda moment: (
        f"container {short(moment.response(CreateContainerReply).container_id)}"
    ),
    "ContainerStatus": _container_state,
    "PodSandboxStatus": _sandbox_state,
    "ListContainers": lambda moment: f"{len(moment.response(ListContainersReply).containers)} containers",
    "ListPodSandbox": lambda moment: f"{len(moment.response(ListPodSandboxReply).items)} sandboxes",
    "ExecSync": lambda moment: f"exit code {moment.response(ExecSyncReply).exit_code}",
    "ImageStatus": _image_found,
    "PullImage": lambda moment: safe(moment.response(PullImageReply).image_ref, _IMAGE_CHARS_MAX),
}


def _pod_change(moment: Moment, record: PodChange) -> str:
    source = f"({safe(record.source)})"
    if moment.manifest is None:
        pod = moment.pod
        name = safe(f"{record.namespace or 'default'}/{record.name}") if pod is None else _pod_name(pod)
        return f"pod removed from its source: {name} {source}"
    meta = moment.manifest.metadata
    name = safe(f"{meta.namespace or 'default'}/{meta.name}")
    if meta.deletion_timestamp:
        return f"pod is being deleted: {name} {source}, grace {meta.deletion_grace_period_seconds} s"
    return f"pod wanted: {name} {source}, restartPolicy {moment.manifest.spec.restart_policy}"


def _status(moment: Moment, record: Status) -> str:
    status = moment.status
    if status is None:
        return "status"
    each = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    name = safe(f"{record.namespace}/{record.name}") if record.name else _pod_name(moment.pod, record.uid)
    states = "; ".join(_container_status(one) for one in each)
    return f"status of {name}: {safe(status.phase)}{f' ({states})' if states else ''}"


def _container_status(status: ContainerStatus) -> str:
    state = status.state
    if state.terminated is not None:
        now = f"terminated {state.terminated.exit_code}"
    elif state.running is not None:
        now = "running" + (", ready" if status.ready else ", not ready")
    else:
        now = f"waiting {state.waiting.reason if state.waiting else ''}".rstrip()
    return safe(f"{status.name} {now}, restarts {status.restart_count}", 120)


def _runtime(moment: Moment, record: RuntimeEvent) -> str:
    if moment.container is not None:
        whom = _container(moment.container, record.container_id)
    elif record.container_id:
        whom = f"{safe(record.name)} ({short(record.container_id)})".lstrip()
    else:
        whom = _sandbox(moment.sandbox, record.sandbox_id) if record.sandbox_id else safe(record.name)
    code = "" if record.exit_code is None else f", code {record.exit_code}"
    return f"the runtime reports: {safe(record.op)} {whom}{code}".rstrip()


def _event(moment: Moment, record: Event) -> str:
    where = f" {safe(record.container)}" if record.container else ""
    words = (record.type, record.reason, safe(record.message, _MESSAGE_CHARS_MAX))
    return f"event{where} of {_pod_name(moment.pod, record.uid)}: {safe(' '.join(filter(None, words)))}"


def _api_write(moment: Moment, record: ApiWrite) -> str:
    words = (record.verb, record.resource, record.subresource, str(record.code or ""))
    pod = moment.pod or moment.world.pod_of_object(record.uid)
    return f"API write {safe(' '.join(filter(None, words)))} of {_pod_name(pod, record.uid)}"


def _expect(_: Moment, record: Expect) -> str:
    return (
        f"wait for {safe(record.awaited or record.contract)}: it {'came' if record.met else 'did not come'}"
    )


_DESCRIBED: dict[type, Callable[[Moment, Any], str]] = {
    PodChange: _pod_change,
    Status: _status,
    RuntimeEvent: _runtime,
    Event: _event,
    ApiWrite: _api_write,
    Expect: _expect,
    Deleted: lambda moment, record: f"pod object deleted: {_pod_name(moment.pod, record.uid)}",
    Kubelet: lambda _, record: f"kubelet {record.op}",
    Fault: lambda _, record: f"fault: {safe(record.what)}",
    Stall: lambda _, record: f"the {safe(record.of)} waited for a processor, {record.seconds:g} s",
    End: lambda _moment, _record: "end of observation",
}
