"""START contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from trace_builder import NOON, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

HASH = "io.kubernetes.container.hash"
COUNT = "io.kubernetes.container.restartCount"
PRE_STOP = "io.kubernetes.container.preStopHandler"
GRACE = "io.kubernetes.pod.terminationGracePeriod"
LOG = "/dev/termination-log"


def begun(s: TraceBuilder, **container: Any) -> tuple[PodHandle, SandboxHandle]:
    """A pod with a sandbox; `container` adds to the spec of c1."""
    web = s.pod(containers=[{"name": "c1", "image": "img:1", **container}])
    return web, s.run_sandbox(web)


def mounted(s: TraceBuilder, web: PodHandle, attempt: int, file: str, **more: Any) -> dict[str, Any]:
    """The config of an instance of c1 with this termination message file."""
    mounts = [{"container_path": LOG, "host_path": file}]
    return s.container_config(web, "c1", attempt, mounts=mounts, **more)


@detects("START-01")
def test_unknown_container_is_not_started(s: TraceBuilder, *, right: bool) -> None:
    """START-01 breaks when an id is started that no CreateContainer gave."""
    web, sandbox = begun(s)
    c1 = s.create(web, sandbox)
    s.call("StartContainer", {"container_id": c1.id if right else "nobody"}, {})


@pytest.mark.parametrize("wrong", ["never", "late", "after another creation", "after the kill", "not asked"])
@detects("START-01")
def test_created_container_is_started_at_once(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """START-01 breaks when something else comes between the creation and the start, or nothing does."""
    web, sandbox = begun(s)
    c1 = s.create(web, sandbox)
    if not right and wrong == "late":
        s.wait(9)
    elif not right and wrong == "after another creation":
        s.create(web, sandbox, attempt=1)
    elif not right and wrong == "after the kill":
        s.stop_sandbox(sandbox)
    elif not right and wrong == "not asked":
        s.container_status(c1, state="CONTAINER_RUNNING")
    if right or wrong != "never":
        s.start(c1)


@pytest.mark.parametrize(
    ("reason", "spec"),
    [
        ("CreateContainerError", {}),
        ("RunContainerError", {}),
        ("PostStartHookError", {"lifecycle": {"postStart": {"exec": {"command": ["x"]}}}}),
    ],
)
@detects("START-02")
def test_waiting_reason_names_the_failed_step(
    s: TraceBuilder, reason: str, spec: dict[str, Any], *, right: bool
) -> None:
    """START-02 breaks when a container waits for the failure of a step that did not fail."""
    web, sandbox = begun(s, **(spec if right else {}))
    if right and reason == "CreateContainerError":
        s.create(web, sandbox, error="INTERNAL")
    elif right and reason == "RunContainerError":
        s.start(s.create(web, sandbox), error="INTERNAL")
    else:
        s.start(s.create(web, sandbox))
    s.status(web, containerStatuses=[{"name": "c1", "state": {"waiting": {"reason": reason}}}])


@pytest.mark.parametrize("error", [None, "INTERNAL"])
@detects("START-04")
def test_container_is_started_once(s: TraceBuilder, error: str | None, *, right: bool) -> None:
    """START-04 breaks when a container is started twice, whether the first start failed or not."""
    web, sandbox = begun(s)
    c1 = s.create(web, sandbox)
    s.start(c1, error=error)
    s.start(s.create(web, sandbox, attempt=1) if right else c1)


@pytest.mark.parametrize(
    ("part", "key", "wrong"),
    [
        ("annotations", HASH, None),
        ("annotations", HASH, "no number"),
        ("annotations", COUNT, None),
        ("annotations", GRACE, None),
        ("annotations", GRACE, "31"),
        ("annotations", PRE_STOP, None),
        ("annotations", PRE_STOP, '{"exec":{"command":["y"]}}'),
        ("annotations", PRE_STOP, "no JSON"),
        ("annotations", "io.kubernetes.container.ports", "[]"),
        ("labels", "io.kubernetes.pod.uid", "other"),
        ("labels", "io.kubernetes.container.name", "other"),
        ("labels", "io.kubernetes.pod.name", None),
        ("labels", "more", "x"),
    ],
)
@detects("START-05")
def test_container_is_labelled_and_annotated(
    s: TraceBuilder, part: str, key: str, wrong: str | None, *, right: bool
) -> None:
    """START-05 breaks when a label or annotation is missing, another one or too much."""
    web, sandbox = begun(s, lifecycle={"preStop": {"exec": {"command": ["x"]}}})
    config = s.container_config(web, "c1")
    config["annotations"] |= {HASH: "94cae208", PRE_STOP: '{"exec":{"command":["x"]}}'}
    if not right and wrong is None:
        del config[part][key]
    elif not right:
        config[part][key] = wrong
    s.create(web, sandbox, config=config)


@pytest.mark.parametrize("wrong", ["old file", "none"])
@detects("START-08")
def test_termination_message_file_is_fresh(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """START-08 breaks when an instance has the file of an earlier one, or none."""
    web, sandbox = begun(s)
    s.exited(s.create(web, sandbox, config=mounted(s, web, 0, "/f1")))
    second = mounted(s, web, 1, "/f2" if right else "/f1")
    if not right and wrong == "none":
        second["mounts"] = []
    s.create(web, sandbox, config=second)


@pytest.mark.parametrize("state", ["running", "terminated", "finished", "last"])
@detects("START-12")
def test_times_are_the_runtimes(s: TraceBuilder, state: str, *, right: bool) -> None:
    """START-12 breaks when a status shows another time than the runtime's, cut to seconds."""
    web, sandbox = begun(s)
    c1 = s.run_container(web, sandbox)
    s.container_status(c1, state="CONTAINER_RUNNING", started_at=str(NOON * 10**9 + 999_999_999))
    times = {"startedAt": "2025-06-15T15:06:40Z", "finishedAt": "2025-06-15T15:06:42Z"}
    if not right:
        times["finishedAt" if state == "finished" else "startedAt"] = "1970-01-01T00:00:00Z"
    c1_id = f"fake://{c1.id}"
    ended = {"terminated": {"exitCode": 0, "containerID": c1_id, **times}}
    if state != "running":
        ends = {"started_at": str(NOON * 10**9), "finished_at": str((NOON + 2) * 10**9)}
        s.container_status(c1, state="CONTAINER_EXITED", **ends)
    shown: dict[str, Any] = {"state": ended}
    if state == "running":
        shown = {"state": {"running": {"startedAt": times["startedAt"]}}}
    elif state == "last":
        shown = {"state": {"waiting": {}}, "lastState": ended}
    s.status(web, containerStatuses=[{"name": "c1", "containerID": c1_id, **shown}])
