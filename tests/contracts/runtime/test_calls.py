"""CRI contracts on calls: each is kept by a right runtime and broken by a wrong one."""

from typing import Any

import pytest
from running import running
from runtime_reads import container_record, list_containers, list_sandboxes, refuse, sandbox_record
from trace_builder import ContainerHandle, SandboxHandle, TraceBuilder
from twice import assert_detects, detects

from kubelet_conformance.contract.verdicts import Verdict

VERSION = {
    "version": "0.1.0",
    "runtime_name": "fake",
    "runtime_version": "1.0.0",
    "runtime_api_version": "v1",
}
IMAGE = {"id": "sha256:img", "repo_tags": ["img:1"], "repo_digests": ["img@sha256:d"], "size": "1"}


def assert_answer(
    contract_id: str, rpc: str, request: dict[str, Any], right: dict[str, Any], wrong: dict[str, Any]
) -> None:
    """One call: the right answer keeps the contract, the wrong one breaks it."""

    def tell(s: TraceBuilder, *, is_right: bool) -> None:
        s.call(rpc, request, right if is_right else wrong)

    assert_detects(contract_id, lambda s, right: tell(s, is_right=right))


@pytest.mark.parametrize("wrong", [{"version": "0.2.0"}, {"runtime_name": ""}])
def test_version_is_answered_in_full(wrong: dict[str, Any]) -> None:
    """CRI-01: version 0.1.0, with names and versions."""
    assert_answer("CRI-01", "Version", {}, VERSION, VERSION | wrong)


@pytest.mark.parametrize("wrong", ["empty", "taken"])
@detects("CRI-03")
def test_sandbox_id_is_new(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """CRI-03: neither empty nor the id of another sandbox."""
    first = s.run_sandbox(s.pod())
    config = s.sandbox_config(s.pod("db"))
    taken = first.id if wrong == "taken" else ""
    s.call("RunPodSandbox", {"config": config}, {"pod_sandbox_id": "new" if right else taken})


def test_sandbox_is_listed_before_its_run_is_answered() -> None:
    """CRI-03, SANDBOX-01: a sandbox that is listed while it is being run is no other one."""
    s = TraceBuilder()
    pod = s.pod()
    config = s.sandbox_config(pod)
    run = s.begin("RunPodSandbox", {"config": config})
    sandbox = SandboxHandle(s.new_id("sandbox"), config, 1)
    list_sandboxes(s.wait(2), sandbox_record(sandbox))
    s.wait(2).end("RunPodSandbox", run, {"pod_sandbox_id": sandbox.id})
    s.sandbox_status(sandbox)

    assert [s.judge(one).verdict for one in ("CRI-03", "SANDBOX-01")] == [Verdict.KEPT, Verdict.KEPT]
    assert s.judge("CRI-04").verdict is Verdict.NOT_EXERCISED


@detects("CRI-03")
def test_new_sandbox_is_ready(s: TraceBuilder, *, right: bool) -> None:
    """CRI-03: read at once it is READY."""
    sandbox = s.run_sandbox(s.pod(), read=False)
    s.sandbox_status(sandbox, state="SANDBOX_READY" if right else "SANDBOX_NOTREADY")


def test_stopped_sandbox_is_notready() -> None:
    """CRI-05: it is NOTREADY and none of its containers runs."""
    for state, container_state, words in (
        ("SANDBOX_NOTREADY", "CONTAINER_EXITED", "kept"),
        ("SANDBOX_READY", "CONTAINER_EXITED", "broken"),
        ("SANDBOX_NOTREADY", "CONTAINER_RUNNING", "broken"),
    ):
        s, _, sandbox, c1 = running()
        s.stop_sandbox(sandbox)
        s.sandbox_status(sandbox, state=state)
        s.container_status(c1, state=container_state)

        assert s.judge("CRI-05").verdict.words == words


@detects("CRI-07")
def test_unknown_id_has_no_status(s: TraceBuilder, *, right: bool) -> None:
    """CRI-07: an id that was never given out has none."""
    refuse(s, "ContainerStatus", {"container_id": "nobody"}, "NOT_FOUND")
    if not right:
        s.call("ContainerStatus", {"container_id": "nobody"}, {"status": {"id": "nobody"}})


@pytest.mark.parametrize("vanishes", [False, True])
@detects("CRI-07", if_right=Verdict.NOT_EXERCISED, before=(False, True))
def test_status_of_what_was_there_when_it_was_asked_for(
    s: TraceBuilder, *, vanishes: bool, before: bool
) -> None:
    """CRI-07: an answer that comes late may be of something that was removed since, or vanished."""
    web = s.pod()
    c1 = s.run_container(web, s.run_sandbox(web))
    s.exited(c1)
    s.call("ListContainers", {}, {"containers": []})

    def go() -> None:
        if vanishes:
            s.record("runtime", op="removed", container_id=c1.id)
        else:
            s.remove(c1)

    if before:
        go()
    asked = s.begin("ContainerStatus", {"container_id": c1.id})
    s.wait(5)
    if not before:
        go()
    s.wait(5).end("ContainerStatus", asked, {"status": {"id": c1.id}})


@pytest.mark.parametrize("wrong", ["stopped", "unknown", "empty id", "running", "exits"])
@detects("CRI-11")
def test_container_is_created_in_a_ready_sandbox(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """CRI-11: only in a READY sandbox, with an id, and it does not run before it is started."""
    pod = s.pod()
    sandbox = s.run_sandbox(pod)
    how = "" if right else wrong
    if how == "stopped":
        s.stop_sandbox(sandbox)
    if how == "unknown":
        sandbox.id = "nobody"
    if how == "empty id":
        s.call("CreateContainer", {"pod_sandbox_id": sandbox.id, "config": {}}, {})
    c1 = s.create(pod, sandbox)
    s.container_status(
        c1, state="CONTAINER_RUNNING" if how == "running" else "CONTAINER_CREATED", started_at="0"
    )
    if how == "exits":
        s.exited(c1, seen=False)


def test_container_is_listed_before_its_creation_is_answered() -> None:
    """CRI-11, START-01: a container that is listed while it is being made is no other one."""
    s = TraceBuilder()
    pod = s.pod()
    sandbox = s.run_sandbox(pod)
    config = s.container_config(pod, "c1")
    making = s.begin(
        "CreateContainer",
        {"pod_sandbox_id": sandbox.id, "config": config, "sandbox_config": sandbox.config},
    )
    c1 = ContainerHandle(s.new_id("container"), "c1", sandbox, config, 1)
    list_containers(s, container_record(c1, "CONTAINER_CREATED"))
    s.wait(20).end("CreateContainer", making, {"container_id": c1.id})
    s.start(c1)

    assert [s.judge(one).verdict for one in ("CRI-11", "START-01")] == [Verdict.KEPT, Verdict.KEPT]


@detects("CRI-12")
def test_container_is_started_once(s: TraceBuilder, *, right: bool) -> None:
    """CRI-12: a second StartContainer is an error."""
    pod = s.pod()
    c1 = s.run_container(pod, s.run_sandbox(pod))
    if not right:
        s.start(c1)


@detects("CRI-12", begin=running)
def test_ended_container_is_not_started(s: TraceBuilder, c1: ContainerHandle, *, right: bool) -> None:
    """CRI-12: an exited container is never started again."""
    s.exited(c1)
    s.start(c1, error="FAILED_PRECONDITION" if right else None)


@detects("CRI-12")
def test_unknown_container_is_not_started(s: TraceBuilder, *, right: bool) -> None:
    """CRI-12: an id that nobody was given cannot be started."""
    pod = s.pod()
    c1 = s.create(pod, s.run_sandbox(pod))
    s.call("StartContainer", {"container_id": c1.id if right else "nobody"}, {})


@detects("CRI-12", begin=running)
def test_started_container_has_started_at(s: TraceBuilder, c1: ContainerHandle, *, right: bool) -> None:
    """CRI-12: its status says when it was started."""
    if not right:
        s.container_status(c1, state="CONTAINER_RUNNING", started_at="0")


@detects("CRI-13", begin=running)
def test_stop_returns_within_its_timeout(s: TraceBuilder, c1: ContainerHandle, *, right: bool) -> None:
    """CRI-13: after the timeout the container is killed."""
    s.stop(c1, timeout=5, takes=5.1 if right else 9)


@detects("CRI-13", begin=running)
def test_stop_does_not_return_before_the_exit(s: TraceBuilder, c1: ContainerHandle, *, right: bool) -> None:
    """CRI-13: the container does not end long after the answer."""
    s.call("StopContainer", {"container_id": c1.id, "timeout": "5"}, {})
    s.wait(0 if right else 1)
    s.exited(c1, seen=False)


def test_present_image_has_id_and_size() -> None:
    """CRI-23: an image that is there has both."""
    request = {"image": {"image": "img:1"}}
    assert_answer("CRI-23", "ImageStatus", request, {"image": IMAGE}, {"image": IMAGE | {"size": "0"}})


@pytest.mark.parametrize(
    ("kubernetes", "right", "wrong"),
    [
        ("1.32", "sha256:img", ""),
        ("1.32", "img@sha256:d", "sha256:other"),
        ("1.36", "sha256:img", "img@sha256:d"),
    ],
)
def test_pulled_image_is_known_by_its_ref(kubernetes: str, right: str, wrong: str) -> None:
    """CRI-24: by its id, before 1.36 also by a digest."""

    def tell(s: TraceBuilder, *, is_right: bool) -> None:
        request = {"image": {"image": "img:1"}}
        s.call("PullImage", request, {"image_ref": right if is_right else wrong})
        s.call("ImageStatus", request, {"image": IMAGE})

    assert_detects("CRI-24", lambda s, right: tell(s, is_right=right), kubernetes=kubernetes)


def test_exec_keeps_its_timeout() -> None:
    """CRI-26: it does not run on after its timeout, and is not cut short."""
    for timeout, takes, error, words in (
        (1, 0.5, "", "kept"),
        (1, 1.0, "DEADLINE_EXCEEDED", "kept"),
        (1, 9.0, "", "broken"),
        (10, 1.0, "DEADLINE_EXCEEDED", "broken"),
        (0, 60.0, "DEADLINE_EXCEEDED", "broken"),
    ):
        s, _, _, c1 = running()
        request = {"container_id": c1.id, "cmd": ["alive"], "timeout": str(timeout)}
        if error:
            refuse(s, "ExecSync", request, error, takes=takes)
        else:
            s.call("ExecSync", request, {"exit_code": 1}, takes=takes)

        assert s.judge("CRI-26").verdict.words == words


def test_what_was_injected_is_not_the_runtimes() -> None:
    """CRI-08: an injected error breaks nothing."""
    s = TraceBuilder()
    s.call("StopContainer", {"container_id": "nobody"}, error="INTERNAL")
    list_containers(s)

    assert s.judge("CRI-08").verdict.words == "not exercised"


@pytest.mark.parametrize("ended", ["container", "sandbox"])
def test_what_has_ended_has_a_status(ended: str) -> None:
    """CRI-43: of what was not removed a status is read; that it is not found is broken by CRI-17."""
    for error, words in (("", "kept"), ("UNKNOWN", "broken"), ("NOT_FOUND", "not exercised")):
        s, _, sandbox, c1 = running()
        before = s.judge("CRI-43")
        s.exited(c1, seen=False)
        s.stop_sandbox(sandbox)
        rpc, field = ("ContainerStatus", "container_id"), ("PodSandboxStatus", "pod_sandbox_id")
        read, one = (rpc, c1.id) if ended == "container" else (field, sandbox.id)
        if error:
            refuse(s, read[0], {read[1]: one}, error)
        elif ended == "container":
            s.container_status(c1, state="CONTAINER_EXITED", finished_at=str(c1.created_at + 10**9))
        else:
            s.sandbox_status(sandbox, state="SANDBOX_NOTREADY")

        assert before.verdict is Verdict.NOT_EXERCISED
        assert s.judge("CRI-43").verdict.words == words
