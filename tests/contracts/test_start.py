"""START contracts: each is kept by a right story and broken by a wrong one."""

from __future__ import annotations

from typing import Any

import pytest
from story import NOON, PodHandle, SandboxHandle, Story
from twice import assert_bites

HASH = "io.kubernetes.container.hash"
COUNT = "io.kubernetes.container.restartCount"
PRE_STOP = "io.kubernetes.container.preStopHandler"
GRACE = "io.kubernetes.pod.terminationGracePeriod"
LOG = "/dev/termination-log"


def begun(s: Story, **container: Any) -> tuple[PodHandle, SandboxHandle]:
    """A pod with a sandbox; `container` adds to the spec of c1."""
    web = s.pod(containers=[{"name": "c1", "image": "img:1", **container}])
    return web, s.run_sandbox(web)


def mounted(s: Story, web: PodHandle, attempt: int, file: str, **more: Any) -> dict[str, Any]:
    """The config of an instance of c1 with this termination message file."""
    mounts = [{"container_path": LOG, "host_path": file}]
    return s.container_config(web, "c1", attempt, mounts=mounts, **more)


def test_unknown_container_is_not_started() -> None:
    """START-01 breaks when an id is started that no CreateContainer gave."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox = begun(s)
        c1 = s.create(web, sandbox)
        s.call("StartContainer", {"container_id": c1.id if right else "nobody"}, {})

    assert_bites("START-01", tell)


@pytest.mark.parametrize("wrong", ["never", "late", "after another creation", "after the kill", "not asked"])
def test_created_container_is_started_at_once(wrong: str) -> None:
    """START-01 breaks when something else comes between the creation and the start, or nothing does."""

    def tell(s: Story, *, right: bool) -> None:
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

    assert_bites("START-01", tell)


@pytest.mark.parametrize(
    ("reason", "spec"),
    [
        ("CreateContainerError", {}),
        ("RunContainerError", {}),
        ("PostStartHookError", {"lifecycle": {"postStart": {"exec": {"command": ["x"]}}}}),
    ],
)
def test_waiting_reason_names_the_failed_step(reason: str, spec: dict[str, Any]) -> None:
    """START-02 breaks when a container waits for the failure of a step that did not fail."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox = begun(s, **(spec if right else {}))
        if right and reason == "CreateContainerError":
            s.create(web, sandbox, error="INTERNAL")
        elif right and reason == "RunContainerError":
            s.start(s.create(web, sandbox), error="INTERNAL")
        else:
            s.start(s.create(web, sandbox))
        s.status(web, containerStatuses=[{"name": "c1", "state": {"waiting": {"reason": reason}}}])

    assert_bites("START-02", tell)


@pytest.mark.parametrize("error", [None, "INTERNAL"])
def test_container_is_started_once(error: str | None) -> None:
    """START-04 breaks when a container is started twice, whether the first start failed or not."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox = begun(s)
        c1 = s.create(web, sandbox)
        s.start(c1, error=error)
        s.start(s.create(web, sandbox, attempt=1) if right else c1)

    assert_bites("START-04", tell)


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
def test_container_is_labelled_and_annotated(part: str, key: str, wrong: str | None) -> None:
    """START-05 breaks when a label or annotation is missing, another one or too much."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox = begun(s, lifecycle={"preStop": {"exec": {"command": ["x"]}}})
        config = s.container_config(web, "c1")
        config["annotations"] |= {HASH: "94cae208", PRE_STOP: '{"exec":{"command":["x"]}}'}
        if not right and wrong is None:
            del config[part][key]
        elif not right:
            config[part][key] = wrong
        s.create(web, sandbox, config=config)

    assert_bites("START-05", tell)


@pytest.mark.parametrize("wrong", ["c1/0.log", "c1.log", "c2/1.log"])
def test_log_path(wrong: str) -> None:
    """START-07 breaks when a log is not called by container and restart count."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox = begun(s)
        config = s.container_config(web, "c1", 1, log_path="c1/1.log" if right else wrong)
        s.create(web, sandbox, attempt=1, config=config)

    assert_bites("START-07", tell)


@pytest.mark.parametrize("wrong", ["old file", "none"])
def test_termination_message_file_is_fresh(wrong: str) -> None:
    """START-08 breaks when an instance has the file of an earlier one, or none."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox = begun(s)
        s.exited(s.create(web, sandbox, config=mounted(s, web, 0, "/f1")))
        second = mounted(s, web, 1, "/f2" if right else "/f1")
        if not right and wrong == "none":
            second["mounts"] = []
        s.create(web, sandbox, config=second)

    assert_bites("START-08", tell)


@pytest.mark.parametrize("state", ["running", "terminated", "finished", "last"])
def test_times_are_the_runtimes(state: str) -> None:
    """START-12 breaks when a status shows another time than the runtime's, cut to seconds."""

    def tell(s: Story, *, right: bool) -> None:
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

    assert_bites("START-12", tell)


@pytest.mark.parametrize("wrong", ["attempt", "count", "log"])
def test_attempt_count_and_log_are_one_number(wrong: str) -> None:
    """START-14 breaks when one of the three numbers is another one."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox = begun(s)
        config = s.container_config(web, "c1", 1)
        if not right and wrong == "attempt":
            config["metadata"]["attempt"] = 2
        elif not right and wrong == "count":
            config["annotations"][COUNT] = "0"
        elif not right:
            config["log_path"] = "c1/0.log"
        s.create(web, sandbox, config=config)

    assert_bites("START-14", tell)
