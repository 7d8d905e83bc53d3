"""CRI contracts that direct calls put to the test: a right runtime keeps and a wrong one breaks each."""

from typing import Any

import pytest
from runtime_reads import container_record, sandbox_record
from trace_builder import NOON, ContainerHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

KEPT, BROKEN, IDLE = Verdict.KEPT, Verdict.BROKEN, Verdict.NOT_EXERCISED
GATE = {"EventedPLEG": True}
LINE = "2026-01-01T00:00:00.123456789Z stdout F hello\n"


def direct() -> TraceBuilder:
    """A record of calls made straight at a runtime: nobody wants pods."""
    return TraceBuilder(channels={"cri": "full"}, featureGates=GATE)


def with_container() -> tuple[TraceBuilder, SandboxHandle, ContainerHandle]:
    """A sandbox and a container c1 that runs in it."""
    s = direct()
    pod = s.pod()
    sandbox = s.run_sandbox(pod)
    return s, sandbox, s.run_container(pod, sandbox)


def refuse(s: TraceBuilder, rpc: str, request: dict[str, Any], code: str, message: str = "no") -> None:
    """A call that the runtime itself answers by an error."""
    call_id = s.begin(rpc, request)
    s.wait(0.001)
    s.record("reply", rpc=rpc, id=call_id, error={"code": code, "message": message})


@pytest.mark.parametrize(
    "contract",
    [f"CRI-{number:02}" for number in (3, 9, 13, 16, 26, 28, 29, 30, 32, 33, 36)],
)
def test_what_was_expected_of_a_runtime_decides(contract: str) -> None:
    """CRI-32, CRI-33 and more: an expectation that was met keeps the contract, another breaks it."""
    for met, verdict in ((True, KEPT), (False, BROKEN)):
        s = direct()
        s.record("expect", contract=contract, awaited="it is so", met=met)

        assert s.judge(contract).verdict is verdict


def test_an_expectation_beside_a_kubelet_is_not_of_the_runtime() -> None:
    """CRI-32: where pods are wanted, an `expect` is a scenario's wait for the kubelet."""
    s = TraceBuilder()
    s.record("expect", contract="CRI-32", awaited="the pod runs", met=False)

    assert s.judge("CRI-32").verdict is IDLE


@detects("CRI-33", begin=direct, answered=(1, 9))
def test_calls_for_other_pods_do_not_wait(s: TraceBuilder, answered: float) -> None:
    """CRI-33: beside a stop of 9 s another pod's sandbox is run at once, and not when the stop has ended."""
    slow, other = s.pod("slow"), s.pod("other")
    c1 = s.run_container(slow, s.run_sandbox(slow))
    stop = s.begin("StopContainer", {"container_id": c1.id, "timeout": "30"})
    config = s.wait(0.1).sandbox_config(other)
    run = s.begin("RunPodSandbox", {"config": config})
    if answered < 9:
        s.wait(answered).end("RunPodSandbox", run, {"pod_sandbox_id": "new"})
    s.wait(9 - answered).exited(c1, 137, seen=False)
    s.wait(answered if answered == 9 else 0).end("StopContainer", stop, {})
    if answered == 9:
        s.wait(0.01).end("RunPodSandbox", run, {"pod_sandbox_id": "new"})


@pytest.mark.parametrize(("contract", "rpc"), [("CRI-01", "Version"), ("CRI-02", "Status")])
def test_what_every_runtime_answers(contract: str, rpc: str) -> None:
    """CRI-01, CRI-02: an error of the runtime's own is no answer; one that was injected excuses it."""
    own, injected = direct(), direct()
    refuse(own, rpc, {}, "INTERNAL")
    injected.call(rpc, {}, error="INTERNAL")

    assert [s.judge(contract).verdict for s in (own, injected)] == [BROKEN, IDLE]


@pytest.mark.parametrize("rpc", ["PodSandboxStatus", "ContainerStatus"])
def test_an_answer_has_a_status(rpc: str) -> None:
    """CRI-34: a status that is asked for is in the answer."""
    s, sandbox, c1 = with_container()
    kept = s.judge("CRI-34").verdict
    s.call(rpc, {"pod_sandbox_id": sandbox.id} if rpc.startswith("Pod") else {"container_id": c1.id}, {})

    assert (kept, s.judge("CRI-34").verdict) == (KEPT, BROKEN)


# Images.


def image(*tags: str) -> dict[str, Any]:
    """An image as the runtime reports it."""
    return {"id": "sha256:two", "repo_tags": list(tags), "size": "1"}


def image_status(s: TraceBuilder, name: str, reported: dict[str, Any] | None) -> None:
    """ImageStatus."""
    s.call("ImageStatus", {"image": {"image": name}}, {"image": reported} if reported else {})


def removed_image() -> TraceBuilder:
    """An image with two tags, a and b, and a removal of a."""
    s = direct()
    image_status(s, "two:a", image("two:a", "two:b"))
    s.call("RemoveImage", {"image": {"image": "two:a"}}, {})
    return s


@pytest.mark.parametrize("name", ["two:a", "two:b", "sha256:two"])
def test_removed_image_is_gone_by_every_name(name: str) -> None:
    """CRI-25: after the removal by one tag no tag and no id finds it."""
    for still, verdict in ((None, KEPT), (image(name), BROKEN)):
        s = removed_image()
        image_status(s, name, still)

        assert s.judge("CRI-25").verdict is verdict


def test_removed_image_is_not_listed() -> None:
    """CRI-25: no list has it, and one that is pulled again may be listed."""
    right, wrong, again = removed_image(), removed_image(), removed_image()
    right.call("ListImages", {}, {"images": []})
    wrong.call("ListImages", {}, {"images": [image("two:b")]})
    again.call("PullImage", {"image": {"image": "two:a"}}, {"image_ref": "sha256:two"})
    again.call("ListImages", {}, {"images": [image("two:a")]})

    assert [s.judge("CRI-25").verdict for s in (right, wrong, again)] == [KEPT, BROKEN, IDLE]


def test_image_is_removed_twice() -> None:
    """CRI-25: the second removal is no error, by whichever tag."""
    s = removed_image()
    refuse(s, "RemoveImage", {"image": {"image": "two:b"}}, "NOT_FOUND")

    assert s.judge("CRI-25").verdict is BROKEN


def test_other_pull_errors_need_no_prefix() -> None:
    """CRI-40: while the registry is there, an error may say anything."""
    s = direct()
    s.record("fault", what="the registry is away")
    s.record("fault", what="healed: the registry is back")
    refuse(s, "PullImage", {"image": {"image": "two:a"}}, "NOT_FOUND")

    assert s.judge("CRI-40").verdict is IDLE


# Resources.


def status_with(s: TraceBuilder, c1: ContainerHandle, **linux: int) -> None:
    """A status that tells resources."""
    reported = {name: str(value) for name, value in linux.items()}
    s.container_status(c1, state="CONTAINER_RUNNING", resources={"linux": reported})


def test_status_under_an_update_says_nothing() -> None:
    """CRI-28: while an update is under way, either value is right."""
    s, _, c1 = with_container()
    call_id = s.begin("UpdateContainerResources", {"container_id": c1.id, "linux": {"cpu_shares": "512"}})
    status_with(s, c1, cpu_shares=2)
    s.end("UpdateContainerResources", call_id, {})

    assert s.judge("CRI-28").verdict is IDLE


# Logs.


def log_path(sandbox: SandboxHandle, c1: ContainerHandle) -> str:
    """Where the log belongs."""
    return f"{sandbox.config['log_directory']}/{c1.config['log_path']}"


@pytest.mark.parametrize("text", ["hello\n", f"{LINE}2026-01-01 stdout F x\n", LINE.replace(" F ", " X ")])
def test_log_is_in_the_right_form(text: str) -> None:
    """CRI-36: every line has time, stream and tag."""
    for held, verdict in ((LINE, KEPT), (text, BROKEN)):
        s, sandbox, c1 = with_container()
        s.record("disk", op="log", path=log_path(sandbox, c1), text=held)

        assert s.judge("CRI-36").verdict is verdict


def test_log_is_in_its_place() -> None:
    """CRI-36: the file of a started container is there; other files are no logs of it."""
    s, sandbox, c1 = with_container()
    s.record("disk", op="log", path="/elsewhere", text="x")
    other = s.judge("CRI-36").verdict
    s.record("disk", op="no log", path=log_path(sandbox, c1))

    assert (other, s.judge("CRI-36").verdict) == (IDLE, BROKEN)


@pytest.mark.parametrize("reopened", [True, False])
@pytest.mark.parametrize("found", [True, False])
def test_log_is_reopened(*, reopened: bool, found: bool) -> None:
    """CRI-29: there is a new file after a success, and none after a failure."""
    s, sandbox, c1 = with_container()
    path = log_path(sandbox, c1)
    s.record("disk", op="moved", path=path)
    if reopened:
        s.call("ReopenContainerLog", {"container_id": c1.id}, {})
    else:
        refuse(s, "ReopenContainerLog", {"container_id": c1.id}, "INTERNAL")
    s.record("disk", op="log" if found else "no log", path=path)

    assert s.judge("CRI-29").verdict is (KEPT if reopened is found else BROKEN)
    assert s.judge("CRI-36").verdict is IDLE


# Events.


def tell(
    s: TraceBuilder, step: str, c1: ContainerHandle, sandbox: SandboxHandle, state: str, **more: Any
) -> None:
    """An event of the container on the stream call-stream."""
    event = {
        "container_id": c1.id,
        "container_event_type": f"CONTAINER_{step}_EVENT",
        "created_at": str(int((NOON + s.now) * 1e9)),
        "pod_sandbox_status": sandbox_record(sandbox),
        "containers_statuses": [container_record(c1, state)],
    }
    s.record("message", rpc="GetContainerEvents", id="call-stream", message=event | more)


def streamed() -> tuple[TraceBuilder, SandboxHandle, ContainerHandle]:
    """A container that was created while a stream is open."""
    s = direct()
    pod = s.pod()
    sandbox = s.run_sandbox(pod)
    s.record("call", rpc="GetContainerEvents", id="call-stream", request={})
    return s, sandbox, s.create(pod, sandbox)


@pytest.mark.parametrize(
    "wrong",
    [
        {"container_id": ""},
        {"created_at": "5"},
        {"container_event_type": "SOMETHING"},
        {"pod_sandbox_status": None},
        {"containers_statuses": []},
    ],
)
def test_event_is_whole(wrong: dict[str, Any]) -> None:
    """CRI-30: id, time, type, the sandbox and the container's own status."""
    for more, verdict in (({}, KEPT), (wrong, BROKEN)):
        s, sandbox, c1 = streamed()
        tell(s, "CREATED", c1, sandbox, "CONTAINER_CREATED", **more)

        assert s.judge("CRI-30").verdict is verdict


def test_event_agrees_with_its_own_status() -> None:
    """CRI-30: what has started is not reported as created; it may have ended since."""
    for state, verdict in (("CONTAINER_EXITED", KEPT), ("CONTAINER_CREATED", BROKEN)):
        s, sandbox, c1 = streamed()
        tell(s, "CREATED", c1, sandbox, "CONTAINER_CREATED")
        s.start(c1)
        tell(s, "STARTED", c1, sandbox, state)

        assert s.judge("CRI-30").verdict is verdict


def test_every_transition_is_reported() -> None:
    """CRI-30: what a call did comes on the open stream within a few seconds."""
    reported, lost, closed = streamed(), streamed(), streamed()
    for s, sandbox, c1 in (reported, lost, closed):
        if s is reported[0]:
            tell(s.wait(1), "CREATED", c1, sandbox, "CONTAINER_CREATED")
        if s is closed[0]:
            s.record("reply", rpc="GetContainerEvents", id="call-stream", error={"code": "CANCELLED"})

    assert [s.judge("CRI-30").verdict for s, _, _ in (reported, lost, closed)] == [KEPT, BROKEN, IDLE]


def test_every_exit_is_reported() -> None:
    """CRI-30: a process that ends by itself has its event, before its exit is recorded or soon after."""
    before, after, lost = streamed(), streamed(), streamed()
    for s, sandbox, c1 in (before, after, lost):
        tell(s, "CREATED", c1, sandbox, "CONTAINER_CREATED")
        s.start(c1)
        tell(s, "STARTED", c1, sandbox, "CONTAINER_RUNNING")
        if s is before[0]:
            tell(s, "STOPPED", c1, sandbox, "CONTAINER_EXITED")
        s.exited(c1, 1)
        if s is after[0]:
            tell(s.wait(1), "STOPPED", c1, sandbox, "CONTAINER_EXITED")
        s.wait(60).call("Version", {}, {})

    assert [s.judge("CRI-30").verdict for s, _, _ in (before, after, lost)] == [KEPT, KEPT, BROKEN]


def test_event_may_come_before_the_answer() -> None:
    """CRI-30: a stop that is reported before StopContainer is answered is reported."""
    s, sandbox, c1 = streamed()
    tell(s, "CREATED", c1, sandbox, "CONTAINER_CREATED")
    s.start(c1)
    tell(s, "STARTED", c1, sandbox, "CONTAINER_RUNNING")
    call_id = s.begin("StopContainer", {"container_id": c1.id})
    tell(s, "STOPPED", c1, sandbox, "CONTAINER_EXITED")
    s.end("StopContainer", call_id, {})

    assert s.judge("CRI-30").verdict is KEPT


def stamped(s: TraceBuilder, sandbox: SandboxHandle, *records: Any, timestamp: int = NOON * 10**9) -> None:
    """PodSandboxStatus of a runtime with the evented PLEG."""
    reply = {"status": sandbox_record(sandbox), "containers_statuses": list(records)}
    s.call("PodSandboxStatus", {"pod_sandbox_id": sandbox.id}, reply | {"timestamp": str(timestamp)})


@pytest.mark.parametrize("state", ["CONTAINER_CREATED", "CONTAINER_UNKNOWN"])
def test_stamped_status_is_consistent(state: str) -> None:
    """CRI-31: the states are those of the moment; a running container may have ended."""
    for reported, verdict in (("CONTAINER_EXITED", KEPT), (state, BROKEN)):
        s, sandbox, c1 = with_container()
        stamped(s.wait(1), sandbox, container_record(c1, reported))

        assert s.judge("CRI-31").verdict is verdict


def test_timestamp_is_nanoseconds_and_never_falls() -> None:
    """CRI-31: seconds are wrong, and so is a later status with an earlier timestamp."""
    for stamps, verdict in (((NOON * 10**9,), KEPT), ((NOON,), BROKEN), ((NOON * 10**9, 10**18), BROKEN)):
        s, sandbox, c1 = with_container()
        for stamp in stamps:
            stamped(s.wait(1), sandbox, container_record(c1), timestamp=stamp)

        assert s.judge("CRI-31").verdict is verdict


def test_no_timestamp_is_no_evented_pleg() -> None:
    """CRI-31: a runtime that gives no timestamp gives no statuses either."""
    s, sandbox, c1 = with_container()
    stamped(s.wait(1), sandbox, timestamp=0)
    without = s.judge("CRI-31").verdict
    stamped(s, sandbox, container_record(c1), timestamp=0)

    assert (without, s.judge("CRI-31").verdict) == (IDLE, BROKEN)
