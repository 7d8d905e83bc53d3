"""Contracts of the evented PLEG: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from pod_status import runs, tell_status, waits
from running import BROKEN, KEPT
from trace_builder import NOON, ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

STREAM: dict[str, Any] = {"rpc": "GetContainerEvents", "id": "stream"}


def hearing() -> tuple[TraceBuilder, PodHandle, SandboxHandle, ContainerHandle]:
    """A pod that runs, and a kubelet that hears of it."""
    s = TraceBuilder(featureGates={"EventedPLEG": True})
    s.record("call", request={}, **STREAM)
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(10)
    return s, web, sandbox, c1


def tell(
    s: TraceBuilder,
    web: PodHandle,
    sandbox: SandboxHandle,
    c1: ContainerHandle,
    *,
    late: float = 0,
    **event: str,
) -> None:
    """An event of the container, which happened `late` seconds ago."""
    state = {"STOPPED": "CONTAINER_EXITED", "STARTED": "CONTAINER_RUNNING"}
    metadata = {"name": web.name, "namespace": web.namespace, "uid": web.uid}
    status = {
        "id": c1.id,
        "metadata": c1.config["metadata"],
        "labels": c1.config["labels"],
        "state": state.get(event["kind"], "CONTAINER_CREATED"),
    }
    message = {
        "container_id": c1.id,
        "container_event_type": f"CONTAINER_{event['kind']}_EVENT",
        "created_at": str(int((NOON + s.now - late) * 1e9)),
        "pod_sandbox_status": {"id": sandbox.id, "metadata": metadata},
        "containers_statuses": [status],
    }
    s.record("message", message=message, **STREAM)


@detects("RESTART-14", begin=hearing, received=(True, False))
def test_container_is_known_by_its_event(s: TraceBuilder, *, received: bool) -> None:
    """RESTART-14: a container that was made, though its making failed for the caller, is an instance."""
    web = s.pod("other")
    sandbox = s.run_sandbox(web)
    c1 = ContainerHandle("c-9", "c1", sandbox, s.container_config(web, "c1"), 0)
    request = {"pod_sandbox_id": sandbox.id, "config": c1.config, "sandbox_config": sandbox.config}
    call = s.begin("CreateContainer", request)
    if received:
        tell(s, web, sandbox, c1, kind="CREATED")
    s.end("CreateContainer", call, error="UNAVAILABLE")
    s.wait(5).create(web, sandbox, "c1", 1)


@detects("PLEG-14", begin=hearing, waits=(1, 60))
def test_what_is_reported_is_handled(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, waits: float
) -> None:
    """PLEG-14: the end of a container that the stream tells wakes its pod's worker."""
    tell(s, web, sandbox, c1, kind="STOPPED")
    s.wait(waits).create(web, sandbox, "c1", 1)


def test_late_event_makes_no_second_container() -> None:
    """PLEG-16: no container is made beside one that runs and is reported late as created."""
    s, web, sandbox, c1 = hearing()
    tell(s, web, sandbox, c1, kind="STARTED")
    tell(s, web, sandbox, c1, kind="CREATED", late=1)
    s.create(web, sandbox, "c1", 1)

    assert s.judge("PLEG-16").verdict is BROKEN


@detects("PLEG-16", if_right=Verdict.NOT_EXERCISED, begin=hearing, waits=(True, False))
def test_sync_that_waits_hears_of_nothing(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, waits: bool
) -> None:
    """PLEG-16: a sync that began before goes on with what was known then."""
    stop = s.begin("StopContainer", {"container_id": c1.id, "timeout": "30"}) if waits else ""
    tell(s.wait(3), web, sandbox, c1, kind="STARTED")
    tell(s, web, sandbox, c1, kind="CREATED", late=1)
    if waits:
        s.end("StopContainer", stop, error="UNAVAILABLE")
    s.create(web, sandbox, "c1", 1)


@pytest.mark.parametrize("contract", ["SYNC-07", "SYNC-20"])
@pytest.mark.parametrize("right", [True, False])
def test_sandbox_that_an_event_tells_of_need_not_be_read(contract: str, *, right: bool) -> None:
    """SYNC-07, SYNC-20: its status is known from the event, though PodSandboxStatus has failed."""
    s, *_ = hearing()
    other = s.pod("other")
    sandbox = s.run_sandbox(other, read=False)
    s.call("PodSandboxStatus", {"pod_sandbox_id": sandbox.id}, error="INTERNAL")
    metadata = {"name": other.name, "namespace": other.namespace, "uid": other.uid}
    event = {"container_id": sandbox.id, "created_at": str(int((NOON + s.now) * 1e9))}
    if right:
        reported = {"id": sandbox.id, "metadata": metadata}
        s.record("message", message=event | {"pod_sandbox_status": reported}, **STREAM)
    s.wait(10).create(other, sandbox)

    is_kept = {"SYNC-07": KEPT, "SYNC-20": Verdict.NOT_EXERCISED}
    assert s.judge(contract).verdict is (is_kept[contract] if right else BROKEN)


@detects("SYNC-04", if_right=Verdict.NOT_EXERCISED, begin=hearing, received=(True, False))
def test_next_sync_goes_by_an_event(s: TraceBuilder, *, received: bool) -> None:
    """SYNC-04: what could not be made follows a later one in the next sync, which reads nothing."""
    other = s.pod("other", containers=[{"name": name, "image": "img:1"} for name in ("c1", "c2")])
    sandbox = s.run_sandbox(other)
    s.run_container(other, sandbox, "c2")
    metadata = {"name": other.name, "namespace": other.namespace, "uid": other.uid}
    event = {"container_id": sandbox.id, "created_at": str(int((NOON + s.now) * 1e9))}
    if received:
        reported = {"id": sandbox.id, "metadata": metadata}
        s.record("message", message=event | {"pod_sandbox_status": reported}, **STREAM)
    s.wait(4).create(other, sandbox, "c1")


@pytest.mark.parametrize("contract", ["SANDBOX-20", "STATUS-16"])
@pytest.mark.parametrize("right", [True, False])
def test_address_may_come_from_an_event(contract: str, *, right: bool) -> None:
    """SANDBOX-20, STATUS-16: an address that only an event has reported may be shown, and no other one."""
    s, *_ = hearing()
    other = s.pod("other")
    sandbox = s.run_sandbox(other, read=False)
    metadata = {"name": other.name, "namespace": other.namespace, "uid": other.uid}
    event = {"container_id": sandbox.id, "created_at": str(int((NOON + s.now) * 1e9))}
    reported = {"id": sandbox.id, "metadata": metadata, "network": {"ip": "10.88.0.7"}}
    s.record("message", message=event | {"pod_sandbox_status": reported}, **STREAM)
    ip = "10.88.0.7" if right else "10.88.0.8"
    tell_status(s, other, "Pending", [], podIP=ip, podIPs=[{"ip": ip}], hostIPs=[{"ip": "192.0.2.2"}])

    assert s.judge(contract).verdict is (KEPT if right else BROKEN)


@pytest.mark.parametrize("contract", ["SYNC-23", "SYNC-15", "RESTART-03"])
@pytest.mark.parametrize("right", [True, False])
def test_start_that_an_event_tells_of_needs_no_other(contract: str, *, right: bool) -> None:
    """SYNC-23, SYNC-15, RESTART-03: it took place, though its call has failed after that."""
    s, *_ = hearing()
    other = s.pod("other")
    sandbox = s.run_sandbox(other)
    c1 = s.create(other, sandbox)
    call = s.begin("StartContainer", {"container_id": c1.id})
    if right:
        tell(s, other, sandbox, c1, kind="STARTED")
    fails = {"code": "UNAVAILABLE", "message": "injected"}
    s.record("reply", rpc="StartContainer", id=call, error=fails)
    s.wait(200).call("Version", {}, {})

    assert bool(s.judge(contract).breaks) is not right


def of_sandbox(s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, kind: str) -> None:
    """An event of a sandbox in which no container is any more."""
    metadata = {"name": web.name, "namespace": web.namespace, "uid": web.uid}
    message = {
        "container_id": "c-9",
        "container_event_type": f"CONTAINER_{kind}_EVENT",
        "created_at": str(int((NOON + s.now) * 1e9)),
        "pod_sandbox_status": {"id": sandbox.id, "metadata": metadata},
    }
    s.record("message", message=message, **STREAM)


CASES = {"STARTED": False, "DELETED": True, "no event": True, "inspected": True, "at once": True}
"""What comes before a container is created in a new sandbox, and whether the kubelet knows of the old one."""


@pytest.mark.parametrize(("case", "knows"), CASES.items())
@pytest.mark.parametrize("contract", ["RESTART-16", "RESTART-24", "SANDBOX-07", "BACKOFF-01"])
def test_event_of_a_new_sandbox_hides_the_one_before(contract: str, case: str, *, knows: bool) -> None:
    """A later sync begins anew where the last event lists the containers of the new sandbox alone."""
    s = TraceBuilder(featureGates={"EventedPLEG": True})
    both = [{"name": name, "image": "img:1"} for name in ("c1", "c2")]
    web = s.pod(restartPolicy="OnFailure" if contract == "SANDBOX-07" else "Always", containers=both)
    sandbox = s.run_sandbox(web)
    if contract == "RESTART-24":
        c1 = s.create(web, sandbox)
        s.start(c1, error="INTERNAL")
        s.exited(c1, 128)
    else:
        c1 = s.run_container(web, sandbox)
        s.exited(c1, int(contract != "SANDBOX-07"))
    if contract == "BACKOFF-01":
        c1 = s.run_container(web, sandbox, attempt=1)
        s.exited(c1, 1)
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    second = s.run_sandbox(web, attempt=1)
    if case != "no event":
        of_sandbox(s, web, second, case if case == "DELETED" else "STARTED")
    if case == "inspected":
        s.wait(1).container_status(c1, state="CONTAINER_EXITED", exit_code=1)
    s.wait(0 if case == "at once" else 1).create(web, second)

    assert (s.judge(contract).verdict is BROKEN) is knows


@detects("STATUS-02", begin=hearing, kind=("STARTED", "DELETED"))
def test_event_of_a_new_sandbox_hides_an_id(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, kind: str
) -> None:
    """STATUS-02: a container of the old sandbox has no id any more."""
    tell_status(s, web, "Running", [runs(c1)])
    s.sandbox_died(sandbox)
    of_sandbox(s, web, s.run_sandbox(web, attempt=1), kind)
    tell_status(s.wait(2), web, "Running", [waits()])


@pytest.mark.parametrize("wrong", [4, 6])
def test_stream_is_opened_five_times(wrong: int) -> None:
    """PLEG-15: the stream is opened again till it has broken five times, and no more."""
    for times, verdict in ((5, KEPT), (wrong, BROKEN)):
        s, *_ = hearing()
        stream = STREAM["id"]
        for number in range(min(times, 5)):
            s.end("GetContainerEvents", stream, error="UNAVAILABLE")
            listed(s)
            if number + 1 < times:
                stream = s.begin("GetContainerEvents", {})
        for _ in range(30):
            s.wait(1)
            listed(s)
        s.stop_here()

        assert s.judge("PLEG-15").verdict is verdict


def listed(s: TraceBuilder) -> None:
    """The runtime is listed."""
    s.call("ListPodSandbox", {}, {})
    s.call("ListContainers", {}, {})
