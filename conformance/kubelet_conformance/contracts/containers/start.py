"""START: how one container is created and started: labels, annotations, log path, message file and times."""

from collections.abc import Iterator

import msgspec

from kubelet_conformance.contract import Container, ContainerStatus, Finding, Moment, Note, Pod, PodStatus
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, failed, status
from kubelet_conformance.contracts.facts.container import asked
from kubelet_conformance.contracts.facts.status import REFUSED, waiting_reasons
from kubelet_conformance.contracts.facts.timing import REACTION
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.errors import BodyError
from kubelet_conformance.trace.format.header import epoch_seconds
from kubelet_conformance.trace.format.labels import Annotation, Label, shown
from kubelet_conformance.trace.format.manifests import ContainerSpec, Handler, PodSpec

NANOSECONDS = 1_000_000_000
_START = call("StartContainer")
_HOOK_FAILED = event("FailedPreStartHook").either(
    status().where(lambda m: "PreStartHookError" in waiting_reasons(m))
)
_OTHER_STEPS = call("CreateContainer", "RunPodSandbox", "StopContainer", "StopPodSandbox")


@contract("START-01", on=call("StartContainer"))
def created_container_is_started(m: Moment) -> Findings:
    """A container is created, then started before anything else is done for its pod.

    Only a container that CreateContainer returned is started.
    """
    container = m.container
    if container is not None and container.born:
        return KEPT
    if not m.node.born:
        return None
    started = m.request(bodies.ContainerRequest).container_id
    return broken(f"no CreateContainer returned {started[:12]}, which is started")


@created_container_is_started.clause("at once", on=done("CreateContainer"))
def start_follows_creation(m: Moment) -> Findings:
    """StartContainer follows CreateContainer at once."""
    if m.pod is None:
        return None
    made, made_t = m.response(bodies.CreateContainerReply).container_id, m.t
    # The call may not have reached the runtime, which leaves no trace.
    unseen = _OTHER_STEPS.where(lambda n: n.node.away_t >= made_t)
    return answered(
        by=_START.where(lambda n: n.request(bodies.ContainerRequest).container_id == made),
        not_before=_OTHER_STEPS,
        within=REACTION,
        unless=_HOOK_FAILED.either(unseen),
        text=f"{asked(m).metadata.name} is started",
    )


@created_container_is_started.clause("runs", on=done("ContainerStatus"))
def running_container_was_started(m: Moment, container: Container) -> Findings:
    """No container runs without a StartContainer."""
    record = m.response(bodies.ContainerStatusReply).status
    if record is None or not container.born or not record.started_at:
        return None
    if container.start is None:
        return broken(
            f"{container.name} has run, and StartContainer was never asked for it", container.create
        )
    return None if container.seen_running else KEPT


class _StartsFailed(Note):
    """The containers of a pod with a failed StartContainer; their records may be gone."""

    names: dict[str, None] = {}


def _without_cause(pod: Pod, name: str, reason: str) -> str | None:
    """What must have come before this waiting reason, and has not."""
    spec = pod.container_spec(name)
    if reason == "CreateContainerError" and name not in pod.create_failed:
        return "no CreateContainer of it failed"
    if reason == "RunContainerError" and name not in pod.note(_StartsFailed).names:
        return "no StartContainer of it failed"
    if reason == "PostStartHookError" and spec is not None and spec.lifecycle.post_start is None:
        return "it has no postStart hook"
    return None


STEP_REASONS = frozenset({"CreateContainerError", "RunContainerError", "PostStartHookError"})


@contract("START-02", on=REFUSED, needs=(CRI, PODS, STATUS))
def waiting_reason_names_the_step_that_failed(m: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """A container's waiting reason names the step that failed, and that step has failed.

    CreateContainerError needs a failed CreateContainer of it, RunContainerError a failed StartContainer, and
    PostStartHookError a postStart hook.
    """
    if not pod.born:
        return
    for one in status.every_container:
        waiting = one.state.waiting
        if waiting is not None and waiting.reason in STEP_REASONS:
            wrong = _without_cause(pod, one.name, waiting.reason)
            if wrong and m.t <= m.node.cut_off_until:
                continue  # The call may not have reached the runtime, which leaves no trace.
            yield broken(f"{one.name} waits for {waiting.reason}, and {wrong}") if wrong else KEPT


judges_waits(waiting_reason_names_the_step_that_failed)


@observer(on=failed("StartContainer"))
def _start_has_failed(_: Moment, pod: Pod, container: Container) -> None:
    """Take in whose start has failed."""
    pod.note(_StartsFailed).names[container.name] = None


@contract("START-04", on=call("StartContainer"))
def container_is_started_once(_: Moment, container: Container) -> Findings:
    """A container is started once: one that was created but could not be started is never used again."""
    if not container.born:
        return None
    if container.start is None:
        return KEPT
    outcome = "failed" if container.start_failed else "was asked for"
    return broken(f"{container.name} is started again, its start {outcome} before", container.start.seq)


def _identity(m: Moment) -> dict[str, str]:
    request, pod = m.request(bodies.CreateContainerRequest), m.pod
    meta = request.sandbox_config.metadata
    whose: bodies.PodSandboxMetadata | Pod = meta if pod is None else pod
    return {
        Label.POD_NAME: whose.name,
        Label.POD_NAMESPACE: whose.namespace,
        Label.POD_UID: whose.uid or meta.uid,
        Label.CONTAINER_NAME: request.config.metadata.name,
    }


def _wrong_label(labels: dict[str, str], expected: dict[str, str]) -> str:
    """The first label that differs from the expected ones, as text."""
    for key, value in expected.items():
        if labels.get(key) != value:
            return f"label {key} is {shown(labels, key)}, expected {value!r}"
    return f"label {min(labels.keys() - expected.keys())} is none of a container's"


def _is_hex(text: str) -> bool:
    return bool(text) and not text.strip("0123456789abcdef")


def _wrong_annotation(
    annotations: dict[str, str], spec: ContainerSpec, graces: tuple[str, ...]
) -> str | None:
    if not _is_hex(annotations.get(Annotation.HASH, "")):
        return f"the hash is {shown(annotations, Annotation.HASH)}, no hexadecimal number"
    if not annotations.get(Annotation.RESTART_COUNT, "").isdigit():
        return f"the restart count is {shown(annotations, Annotation.RESTART_COUNT)}"
    expected = {
        Annotation.TERMINATION_MESSAGE_PATH: spec.termination_message_path,
        Annotation.TERMINATION_MESSAGE_POLICY: spec.termination_message_policy,
    }
    if graces and annotations.get(Annotation.POD_GRACE) not in graces:
        expected[Annotation.POD_GRACE] = graces[0]
    if not expected.items() <= annotations.items():
        key = next(key for key, value in expected.items() if annotations.get(key) != value)
        return f"{key} is {shown(annotations, key)}, expected {expected[key]!r}"
    if bool(spec.ports) != (Annotation.PORTS in annotations):
        return f"{Annotation.PORTS} is {shown(annotations, Annotation.PORTS)}"
    return _wrong_hook(annotations.get(Annotation.PRE_STOP_HANDLER), spec.lifecycle.pre_stop)


def _wrong_hook(reported: str | None, hook: Handler | None) -> str | None:
    if reported is None or hook is None:
        return None if reported is None and hook is None else f"the preStop handler is {reported or 'absent'}"
    try:
        handler = msgspec.json.decode(reported, type=Handler)
    except msgspec.MsgspecError:
        return f"the preStop handler is {reported!r}, no JSON"
    return None if handler.exec == hook.exec else f"the preStop handler is {reported}"


_NEGATIVE_GRACE_IS_ONE_SINCE = (1, 27)


def noted_graces(m: Moment, spec: PodSpec) -> tuple[str, ...]:
    """How the pod's grace may be noted: a negative one as 1, and up to 1.26 as it is (conversion.go)."""
    is_early = m.kubernetes is not None and m.kubernetes < _NEGATIVE_GRACE_IS_ONE_SINCE
    as_it_is = (str(spec.termination_grace_period_seconds),) if is_early else ()
    return str(spec.grace_seconds), *as_it_is


@contract("START-05", on=call("CreateContainer"), needs=(CRI, PODS))
def container_is_labelled_and_annotated(m: Moment) -> Findings:
    """A container has the labels of its pod's name, namespace and UID and of its own name.

    Its annotations hold its hash, restart count, termination message settings, the pod's grace, and its
    preStop hook and ports if it has any.
    """
    config, pod, expected = asked(m), m.pod, _identity(m)
    if config.labels != expected:
        return broken(_wrong_label(config.labels, expected))
    spec = pod.container_spec(config.metadata.name) if pod is not None else None
    if pod is None or spec is None:
        return None
    graces = noted_graces(m, pod.spec) if pod.spec is not None else ()
    wrong = _wrong_annotation(config.annotations, spec, graces)
    return broken(f"{spec.name}: {wrong}", pod.set_seq) if wrong else KEPT


@contract("START-07", on=call("CreateContainer"))
def log_path_names_container_and_attempt(m: Moment) -> Findings:
    """The log of a container is <name>/<restart count>.log below the sandbox's log directory."""
    config = asked(m)
    count = config.annotations.get(Annotation.RESTART_COUNT, config.metadata.attempt)  # START-05 asks for it.
    expected = f"{config.metadata.name}/{count}.log"
    if config.log_path != expected:
        return broken(f"log_path is {config.log_path!r}, expected {expected}")
    return KEPT


def _message_files(config: bodies.ContainerConfig) -> set[str]:
    """The host files that the termination message path is mounted from."""
    path = config.annotations.get(Annotation.TERMINATION_MESSAGE_PATH)
    return {mount.host_path for mount in config.mounts if mount.container_path == path}


@contract("START-08", on=call("CreateContainer"))
def termination_message_has_a_fresh_file(m: Moment) -> Findings:
    """Each instance of a container has a file of its own mounted at its termination message path."""
    config, pod = asked(m), m.pod
    if not config.annotations.get(Annotation.TERMINATION_MESSAGE_PATH):
        return None
    name, files = config.metadata.name, _message_files(config)
    if len(files) != 1:
        return broken(f"{name} has {len(files)} files mounted at its termination message path, expected one")
    for old in pod.containers.get(name, []) if pod is not None else []:
        if old.config is not None and files & _message_files(old.config):
            return broken(f"{name} has the termination message file of an earlier instance", old.create)
    return KEPT


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    found = epoch_seconds(text)
    if found is None:
        raise BodyError(f"{text[:40]!r} is no time")
    return int(found)


def _reported_times(one: ContainerStatus) -> list[tuple[str, str, str | None, str | None]]:
    """Container id, kind of state, startedAt and finishedAt of each state that the status shows."""
    running, ended, last = one.state.running, one.state.terminated, one.last_state.terminated
    reported: list[tuple[str, str, str | None, str | None]] = []
    if running is not None:
        reported.append((one.runtime_id, "running", running.started_at, None))
    if ended is not None:
        reported.append((ended.runtime_id, "terminated", ended.started_at, ended.finished_at))
    if last is not None:
        reported.append((last.runtime_id, "last terminated", last.started_at, last.finished_at))
    return reported


def _wrong_time(record: bodies.ContainerRecord, started: str | None, finished: str | None) -> str | None:
    if record.started_at and started is not None and _seconds(started) != record.started_at // NANOSECONDS:
        return f"startedAt is {started}, the runtime says {record.started_at} ns"
    if (
        record.finished_at
        and finished is not None
        and _seconds(finished) != record.finished_at // NANOSECONDS
    ):
        return f"finishedAt is {finished}, the runtime says {record.finished_at} ns"
    return None


@contract("START-12", on=status(), needs=(CRI, STATUS))
def container_times_are_the_runtimes(m: Moment, status: PodStatus) -> Iterator[Finding]:
    """A status shows when a container started and finished as the runtime reports it in nanoseconds.

    The API cuts it to seconds.
    """
    for one in status.every_container:
        for container_id, word, started, finished in _reported_times(one):
            container = m.world.containers.get(container_id)
            record = container.record if container is not None else None
            if record is None or not record.started_at:
                continue
            wrong = _wrong_time(record, started, finished)
            yield broken(f"{one.name}, {word}: {wrong}") if wrong else KEPT


@contract("START-14", on=call("CreateContainer"))
def attempt_restart_count_and_log_are_one_number(m: Moment) -> Findings:
    """The attempt of a container, its restart count annotation and the number of its log are the same."""
    config = asked(m)
    count = config.annotations.get(Annotation.RESTART_COUNT, str(config.metadata.attempt))
    log = config.log_path.rpartition("/")[2].removesuffix(".log")
    if not str(config.metadata.attempt) == count == log:
        return broken(
            f"{config.metadata.name}: attempt {config.metadata.attempt}, restart count {count}, log {log}"
        )
    return KEPT
