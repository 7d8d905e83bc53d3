"""Pods, records and situations in few words, for tests of the decisions about a pod."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lightkube.models.core_v1 import Container, Pod

from kubelet_reference.api.records import ContainerRecord, ContainerState, PodRecords, SandboxRecord
from kubelet_reference.api.results import ProbeOutcome
from kubelet_reference.kuberuntime.actions.container_hash import container_hash
from kubelet_reference.kuberuntime.actions.pod_actions import PodActions, compute_actions
from kubelet_reference.kuberuntime.actions.sandbox_changed import sandbox_changed
from kubelet_reference.kuberuntime.actions.sync_input import SyncInput
from kubelet_reference.util.versions import Behaviour

BEHAVIOUR = Behaviour.of()
START_NS = 1_700_000_000_000_000_000
"""When the test begins: 2023-11-14T22:13:20Z."""


def a_pod(
    *,
    policy: str = "Always",
    apps: Sequence[str] = ("c1",),
    inits: Sequence[str] = (),
    ephemeral: Sequence[str] = (),
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    deleting: bool = False,
    source: str = "api",
    uid: str = "u1",
    name: str = "web",
    mirror: str = "",
    conditions: Sequence[Mapping[str, Any]] = (),
) -> Pod:
    """A pod of containers named by `apps`, `inits` and `ephemeral`; an init named "sc..." is a sidecar.

    `mirror` is the hash of the static pod that it mirrors.
    """
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": uid}
    metadata["annotations"] = {"kubernetes.io/config.source": source}
    if mirror:
        metadata["annotations"]["kubernetes.io/config.mirror"] = mirror
    if deleting:
        metadata |= {"deletionTimestamp": "2023-11-14T22:14:00Z", "deletionGracePeriodSeconds": 30}
    body: dict[str, Any] = {
        "restartPolicy": policy,
        "containers": [{"name": one, "image": "img:1"} for one in apps],
        "initContainers": [_init(one) for one in inits],
        "ephemeralContainers": [{"name": one, "image": "img:2"} for one in ephemeral],
        **(spec or {}),
    }
    shown = {**(status or {}), **({"conditions": list(conditions)} if conditions else {})}
    return Pod.from_dict({"metadata": metadata, "spec": body, "status": shown})  # type: ignore[return-value]


def _init(name: str) -> dict[str, str]:
    sidecar = {"restartPolicy": "Always"} if name.startswith("sc") else {}
    return {"name": name, "image": "img:1", **sidecar}


def a_record(
    name: str = "c1",
    state: str = "RUNNING",
    *,
    code: int = 0,
    reason: str = "",
    attempt: int = 0,
    restart_count: int | None = None,
    changed: bool = False,
    message: str = "",
) -> ContainerRecord:
    """The record of one instance, `<name>-<attempt>`; `changed` says that it is of another definition."""
    begun = START_NS + attempt * 60_000_000_000
    exited = state == "EXITED"
    return ContainerRecord(
        id=f"{name}-{attempt}",
        name=name,
        state=ContainerState(state.lower()),
        attempt=attempt,
        restart_count=attempt if restart_count is None else restart_count,
        hash="0" if changed else container_hash(Container(name=name, image="img:1"), BEHAVIOUR),
        created_at=begun,
        started_at=0 if state == "CREATED" else begun + 1_500_000_000,
        finished_at=begun + 9_700_000_000 if exited else 0,
        exit_code=code,
        reason=reason or ({0: "Completed"}.get(code, "Error") if exited else ""),
        message=message,
        image="sha256:img",
        image_ref="sha256:ref",
        image_id="",
        actuated=None,
        stop_signal="",
    )


def a_sandbox(
    attempt: int = 0,
    *,
    ready: bool = True,
    host_network: bool = False,
    ips: tuple[str, ...] | None = ("10.88.0.2",),
) -> SandboxRecord:
    """The record of a sandbox, `s<attempt>`."""
    created = START_NS + attempt * 60_000_000_000
    return SandboxRecord(f"s{attempt}", attempt, created, ready, host_network=host_network, ips=ips)


def records(
    *containers: ContainerRecord,
    sandboxes: Sequence[SandboxRecord] = (a_sandbox(),),
    ips: tuple[str, ...] = ("10.88.0.2",),
) -> PodRecords:
    """What the runtime knows of the pod, newest first."""
    newest = sorted(containers, key=lambda one: -one.created_at)
    return PodRecords("u1", "web", "default", ips, tuple(sandboxes), tuple(newest))


def actions(
    pod: Pod,
    known: PodRecords,
    *,
    failed: str = "",
    behaviour: Behaviour = BEHAVIOUR,
    compute: Callable[[SyncInput], PodActions] = compute_actions,
) -> PodActions:
    """What is done for the pod; `failed` names a probe (liveness, startup) that the instance c1-0 failed."""

    def outcomes(probe: str) -> Callable[[str], ProbeOutcome | None]:
        return lambda one: ProbeOutcome.FAILURE if (probe, one) == (failed, "c1-0") else None

    sandbox = sandbox_changed(pod, known)
    return compute(SyncInput(pod, known, outcomes("liveness"), outcomes("startup"), behaviour, sandbox))


def names(found: PodActions) -> dict[str, Any]:
    """The actions that are to be taken, containers by their names; what is not to be done is left out."""
    every: dict[str, Any] = {
        "kill_pod": found.kill_pod,
        "create": found.create_sandbox,
        "init": " ".join(one.name for one in found.inits),
        "ephemeral": [one.name for one in found.ephemeral],
        "start": [one.name for one in found.to_start],
        "kill": [kill.record.id for kill in found.to_kill],
    }
    return {what: value for what, value in every.items() if value}
