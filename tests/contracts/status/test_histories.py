"""What generated histories showed of judges: two things at once, lost answers, busy workers, and faults."""

import pytest
from pod_status import end_of, runs, tell_status, waits
from running import BROKEN, KEPT, running
from runtime_reads import container_record, list_containers
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize("dies", ["before", "just after", "never"])
def test_dead_sandbox_may_be_replaced_when_its_pod_is_to_go(dies: str, *, stops: bool) -> None:
    """WORK-04: the sync that the death has begun may come before the news that the pod is to go."""
    s, web, sandbox, c1 = running()
    if dies == "before":
        s.sandbox_died(sandbox)
    s.delete(web)
    if dies == "just after":
        s.sandbox_died(sandbox)
    if stops:
        s.stop(c1)
    s.stop_sandbox(sandbox)
    again = s.run_sandbox(web, 1)
    s.stop_sandbox(again)
    s.wait(1).deleted(web)

    assert s.judge("WORK-04").verdict is (BROKEN if dies == "never" else KEPT)


@pytest.mark.parametrize(("lasts", "hears", "breaks"), [(20, 40, False), (20, 60, True), (1, 20, True)])
@pytest.mark.parametrize("contract", ["RESTART-06", "WORK-04"])
def test_api_server_is_asked_again_after_a_while(
    contract: str, lasts: int, hears: int, *, breaks: bool
) -> None:
    """RESTART-06, WORK-04: the longer an API server was away the later its kubelet may ask it again."""
    s, web, sandbox, c1 = running()
    s.wait(5).record("fault", what="the API server is away")
    s.unset(web)
    s.wait(lasts).record("fault", what="healed: the API server is back")
    s.wait(hears).exited(c1, 1)
    s.run_container(web, sandbox, attempt=1)
    s.stop_sandbox(sandbox)

    assert bool(s.judge(contract).breaks) is breaks


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_collection_lists_the_other_way_round(*, collects: bool) -> None:
    """PLEG-01: who lists containers first, and sandboxes then, does not relist."""
    s, *_ = running()
    s.wait(1)
    for rpc in ("ListContainers", "ListPodSandbox") if collects else ("ListPodSandbox",):
        s.record("call", rpc=rpc, id=f"gc-{rpc}", request={})
        s.record("reply", rpc=rpc, id=f"gc-{rpc}", response={})
    s.wait(30).call("ListPodSandbox", {}, {})
    s.call("ListContainers", {}, {})

    assert s.judge("PLEG-01").verdict is (KEPT if collects else BROKEN)


@detects("CSTAT-08", begin=running, listed=(True, False))
def test_lost_answer_is_found_in_a_list(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, listed: bool
) -> None:
    """CSTAT-08: a container that was created though no reply named it has an id all the same."""
    s.exited(c1, 1)
    lost = s.create(web, sandbox, "c1", 1, error="DEADLINE_EXCEEDED")
    if listed:
        list_containers(s, container_record(lost, "CONTAINER_CREATED"))
    tell_status(s, web, "Running", [waits("CreateContainerError", lost)])


@pytest.mark.parametrize("only_ready", [True, False])
def test_a_probes_result_is_written_into_the_old_status(*, only_ready: bool) -> None:
    """CSTAT-14: what is written for a probe is not built from records: it may tell of a gone one."""
    s, web, sandbox, first = running()
    s.exited(first, 1)
    second = s.run_container(web, sandbox, "c1", 1)
    old = runs(second, lastState=end_of(first, 1), ready=False)
    tell_status(s, web, "Running", [old])
    s.remove(first)
    s.wait(10)
    tell_status(s, web, "Running", [old | {"ready": only_ready}])

    assert bool(s.judge("CSTAT-14").breaks) is not only_ready


@pytest.mark.parametrize(("updated", "breaks"), [(True, False), (False, True)])
@pytest.mark.parametrize(
    ("contract", "reason"), [("IMAGE-06", "ImageInspectError"), ("IMAGE-07", "ErrImagePull")]
)
def test_the_reason_may_be_that_of_the_image_before(
    contract: str, reason: str, *, updated: bool, breaks: bool
) -> None:
    """IMAGE-06, IMAGE-07: a status that follows an update at once may tell of the image it had before."""
    s = TraceBuilder()
    web = s.pod()
    s.run_sandbox(web)
    if updated:
        web.manifest["spec"]["containers"] = [{"name": "c1", "image": "img:2"}]
        s.set(web)
    tell_status(s, web, "Pending", [waits(reason)])

    assert bool(s.judge(contract).breaks) is breaks


@pytest.mark.parametrize("held_up", [True, False])
def test_probe_kill_may_be_an_end_under_on_failure(*, held_up: bool) -> None:
    """RESTART-09: a sync later the policy decides, and a container that ended with 0 is done."""
    s, web, _, c1 = running(policy="OnFailure", livenessProbe={"tcpSocket": {"port": 80}})
    s.wait(9).stop(c1, code=0)
    if held_up:
        ids = {"uid": web.uid, "container": "spec.containers{c1}"}
        s.record("event", type="Warning", reason="BackOff", message="Back-off", count=1, **ids)

    assert bool(s.judge("RESTART-09").breaks) is not held_up


@pytest.mark.parametrize("stopped", [True, False])
def test_it_may_end_just_before_it_is_stopped(*, stopped: bool) -> None:
    """RESTART-02: an end that nobody has read is none, but where the container was stopped then."""
    s, web, sandbox, c1 = running(livenessProbe={"tcpSocket": {"port": 80}})
    s.exited(c1, 1, seen=False)
    if stopped:
        s.call("StopContainer", {"container_id": c1.id, "timeout": "2"}, {})
    s.create(web, sandbox, "c1", 1)

    assert bool(s.judge("RESTART-02").breaks) is not stopped


@detects("RESTART-14", begin=running, tried=(True, False))
def test_log_goes_before_its_record(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, tried: bool
) -> None:
    """RESTART-14: what the kubelet tried to remove left no log, whatever came of that."""
    s.exited(c1, 1)
    if tried:
        s.call("RemoveContainer", {"container_id": c1.id}, error="DEADLINE_EXCEEDED")
    s.record("runtime", op="removed", container_id=c1.id, sandbox_id=sandbox.id, name="c1")
    s.create(web, sandbox, "c1", 0)


@detects("PLEG-18", if_right=Verdict.NOT_EXERCISED, begin=running, listed=(False, True))
def test_what_is_gone_at_the_start_is_not_inspected(
    s: TraceBuilder, sandbox: SandboxHandle, c1: ContainerHandle, *, listed: bool
) -> None:
    """PLEG-18: what no list of everything has at a kubelet's start was removed while it was down."""
    s.record("kubelet", op="killed")
    s.wait(1).record("kubelet", op="started")
    sandboxes = [{"id": sandbox.id, "state": "SANDBOX_READY"}] if listed else []
    containers = [container_record(c1)] if listed else []
    s.call("ListPodSandbox", {}, {"items": sandboxes})
    s.call("ListContainers", {}, {"containers": containers})
    s.wait(60)


@detects("EVENTS-08", if_right=Verdict.NOT_EXERCISED, begin=running, runs_on=(False, True))
def test_deadline_of_an_ended_pod_is_reported_once(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, *, runs_on: bool
) -> None:
    """EVENTS-08: a pod of which nothing runs may be done with its first computation past the deadline."""
    if not runs_on:
        s.exited(c1, 0)
    message = "Pod was active on the node longer than the specified deadline"
    s.record("event", type="Normal", reason="DeadlineExceeded", message=message, count=1, uid=web.uid)


@pytest.mark.parametrize("hooked", [True, False])
def test_a_hook_keeps_the_worker(*, hooked: bool) -> None:
    """LOOP-09: while a hook runs, the end of another container is reported later."""
    containers = [
        {"name": "c1", "image": "img:1", "lifecycle": {"postStart": {"exec": {"command": ["wait"]}}}},
        {"name": "c2", "image": "img:1"},
    ]
    s = TraceBuilder()
    web = s.pod(containers=containers)
    sandbox = s.run_sandbox(web)
    c1, c2 = s.run_container(web, sandbox), s.run_container(web, sandbox, "c2")
    s.wait(10)
    tell_status(s, web, "Running", [runs(c1), runs(c2, name="c2")])
    if hooked:
        s.begin("ExecSync", {"container_id": c1.id, "cmd": ["wait"]})
    s.exited(c2, 1)
    s.wait(60)

    assert bool(s.judge("LOOP-09").breaks) is not hooked


@detects("RESTART-05", is_second_attempt=(True, False))
def test_garbage_collection_takes_what_was_counted(s: TraceBuilder, *, is_second_attempt: bool) -> None:
    """RESTART-05: past a record that never began the one before may be gone, and yet be counted."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    first = int(is_second_attempt)
    s.create(web, sandbox, attempt=first)
    s.wait(4).exited(s.run_container(web, sandbox, attempt=first + 1), 1)
    s.wait(25).run_container(web, sandbox, attempt=first + 2)
