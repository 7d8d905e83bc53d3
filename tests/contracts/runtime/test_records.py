"""CRI contracts on records and lists: each is kept by a right runtime and broken by a wrong one."""

from typing import Any

import pytest
from running import running
from runtime_reads import ALL, container_record, list_containers, list_sandboxes, refuse, sandbox_record
from trace_builder import ContainerHandle, SandboxHandle, TraceBuilder
from twice import assert_detects, detects

from kubelet_conformance.contract.verdicts import Verdict


def assert_reading(contract_id: str, right: dict[str, Any], wrong: dict[str, Any]) -> None:
    """A status of a running container: the right fields keep the contract, the wrong ones break it."""
    for fields, words in ((right, "kept"), (wrong, "broken")):
        s, _, _, c1 = running()
        s.call("ContainerStatus", {"container_id": c1.id}, {"status": container_record(c1, **fields)})

        assert s.judge(contract_id).verdict.words == words


def assert_sandbox(contract_id: str, right: dict[str, Any], wrong: dict[str, Any], **config: Any) -> None:
    """A status of a new sandbox: the right fields keep the contract, the wrong ones break it."""

    def tell(s: TraceBuilder, *, is_right: bool) -> None:
        pod = s.pod()
        sandbox = s.run_sandbox(pod, config=s.sandbox_config(pod, **config), read=False)
        record = sandbox_record(sandbox, **(right if is_right else wrong))
        s.call("PodSandboxStatus", {"pod_sandbox_id": sandbox.id}, {"status": record})

    assert_detects(contract_id, lambda s, right: tell(s, is_right=right))


def uid_filter(sandbox: SandboxHandle) -> dict[str, Any]:
    """The filter of a reading of one pod."""
    return {"label_selector": {"io.kubernetes.pod.uid": sandbox.config["metadata"]["uid"]}}


@pytest.mark.parametrize(
    ("asked", "right", "wrong"),
    [
        ({"state": {"state": "CONTAINER_RUNNING"}}, "CONTAINER_RUNNING", "CONTAINER_EXITED"),
        ({"state": {}}, "CONTAINER_CREATED", "CONTAINER_RUNNING"),
    ],
)
def test_state_filter_is_obeyed(asked: dict[str, Any], right: str, wrong: str) -> None:
    """CRI-09: only records in the state asked for, where an empty state is the one with value 0."""
    for state, words in ((right, "kept"), (wrong, "broken")):
        s, _, _, c1 = running()
        list_containers(s, container_record(c1, state), asked=asked)

        assert s.judge("CRI-09").verdict.words == words


@pytest.mark.parametrize(
    "asked", [{"id": "other"}, {"pod_sandbox_id": "other"}, {"label_selector": {"a": "b"}}]
)
@detects("CRI-09", begin=running)
def test_other_filters_are_obeyed(
    s: TraceBuilder, c1: ContainerHandle, asked: dict[str, Any], *, right: bool
) -> None:
    """CRI-09: nothing is listed that does not meet the filter."""
    list_containers(s, container_record(c1))
    list_containers(s, *([] if right else [container_record(c1)]), asked=asked)


@pytest.mark.parametrize("wrong", ["twice", "missing", "stranger"])
@detects("CRI-09", begin=running)
def test_list_is_exact(
    s: TraceBuilder, sandbox: SandboxHandle, c1: ContainerHandle, wrong: str, *, right: bool
) -> None:
    """CRI-09: all that meets the filter, each once, and nothing that nobody made."""
    record, other = container_record(c1), container_record(c1) | {"id": "stranger"}
    records = {"twice": [record, record], "missing": [], "stranger": [record, other]}[wrong]
    list_containers(s, record, asked=uid_filter(sandbox))
    list_containers(s, *([record] if right else records), asked=uid_filter(sandbox) | ALL)


@pytest.mark.parametrize("wrong", ["0", "1750000000", "1750000000000000001"])
def test_created_at_is_nanoseconds_and_stays(wrong: str) -> None:
    """CRI-10: neither absent, nor seconds, nor another one than before."""
    assert_reading("CRI-10", {}, {"created_at": wrong})


@pytest.mark.parametrize("wrong", [{"state": "CONTAINER_RUNNING"}, {"finished_at": "0"}])
@detects("CRI-14", begin=running)
def test_stopped_container_has_exited(
    s: TraceBuilder, c1: ContainerHandle, wrong: dict[str, Any], *, right: bool
) -> None:
    """CRI-14: once the stop was answered it is EXITED and has finished_at."""
    s.stop(c1)
    fields = {"state": "CONTAINER_EXITED", "finished_at": str(c1.created_at + 10**10)}
    s.container_status(c1, **(fields | ({} if right else wrong)))


def test_removed_container_is_gone() -> None:
    """CRI-15: it is in no list and has no status."""
    for listed, has_status, words in (
        (False, False, "kept"),
        (True, False, "broken"),
        (False, True, "broken"),
    ):
        s, _, _, c1 = running()
        s.exited(c1)
        s.remove(c1)
        list_containers(s, *([container_record(c1, "CONTAINER_EXITED")] if listed else []))
        if has_status:
            s.container_status(c1, state="CONTAINER_EXITED")
        else:
            refuse(s, "ContainerStatus", {"container_id": c1.id}, "NOT_FOUND")

        assert s.judge("CRI-15").verdict.words == words


@pytest.mark.parametrize(
    "wrong",
    [{"exit_code": 0}, {"finished_at": "0"}, {"reason": "Completed"}, {"exit_code": 0, "reason": "Error"}],
)
@detects("CRI-16", begin=running)
def test_exit_data_is_whole_and_true(
    s: TraceBuilder, c1: ContainerHandle, wrong: dict[str, Any], *, right: bool
) -> None:
    """CRI-16: the code is the one the process ended with, and the reason goes with it."""
    s.exited(c1, 3, seen=False)
    fields = {"exit_code": 3, "reason": "Error", "finished_at": str(c1.created_at + 10**10)}
    s.container_status(c1, state="CONTAINER_EXITED", **(fields | ({} if right else wrong)))


@detects("CRI-16", begin=running, code=(3, 4))
def test_exit_reported_late_agrees(s: TraceBuilder, c1: ContainerHandle, *, code: Any) -> None:
    """CRI-16: an exit recorded after the status has the same code."""
    at = str(c1.created_at + 10**10)
    s.container_status(c1, state="CONTAINER_EXITED", exit_code=3, finished_at=at)
    s.exited(c1, code, seen=False)


@pytest.mark.parametrize("what", ["started_at", "finished_at"])
@detects("CRI-16", begin=running)
def test_times_are_the_same_at_each_reading(
    s: TraceBuilder, c1: ContainerHandle, what: str, *, right: bool
) -> None:
    """CRI-16: a start or an end is no later at the second reading."""
    s.exited(c1, 0, seen=False)
    times = {"started_at": c1.created_at + 10**6, "finished_at": c1.created_at + 10**9}
    for later in (0, 0 if right else 10**9):
        fields = {key: str(at + (later if key == what else 0)) for key, at in times.items()}
        s.wait(1).container_status(c1, state="CONTAINER_EXITED", reason="Completed", **fields)


def test_dead_records_stay() -> None:
    """CRI-17: an exited container is listed until it is removed, but for a fault."""
    for fault, listed, words in (
        (False, True, "kept"),
        (False, False, "broken"),
        (True, False, "not exercised"),
    ):
        s, _, sandbox, c1 = running()
        s.exited(c1)
        if fault:
            s.record("fault", what="all records vanish")
        list_sandboxes(s, *([] if fault else [sandbox_record(sandbox)]))
        list_containers(s, *([container_record(c1, "CONTAINER_EXITED")] if listed else []))

        assert s.judge("CRI-17").verdict.words == words


@pytest.mark.parametrize("wrong", [{"labels": {}}, {"annotations": {}}])
def test_labels_and_annotations_come_back(wrong: dict[str, Any]) -> None:
    """CRI-18: exactly as they were given, of containers and of sandboxes."""
    assert_reading("CRI-18", {}, wrong)
    assert_sandbox("CRI-18", {}, wrong, annotations={"a": ""})


@pytest.mark.parametrize(
    ("before", "after"), [("exited", "RUNNING"), ("exited", "CREATED"), ("started", "CREATED")]
)
@detects("CRI-19", begin=running)
def test_container_states_never_go_back(
    s: TraceBuilder, c1: ContainerHandle, before: str, after: str, *, right: bool
) -> None:
    """CRI-19: neither from EXITED nor from RUNNING."""
    if before == "exited":
        s.exited(c1)
    if not right:
        s.container_status(c1, state=f"CONTAINER_{after}")


def test_address_that_is_wrong_on_purpose() -> None:
    """CRI-21: sandboxes that were run while addresses were wrong on purpose are not the runtime's fault."""
    s = TraceBuilder()
    s.record("fault", what="addresses: ''")
    odd = s.run_sandbox(s.pod(), read=False)
    s.record("fault", what="healed: addresses")
    s.wait(1).sandbox_status(odd, network={})

    assert s.judge("CRI-21").verdict is Verdict.NOT_EXERCISED
    later = s.run_sandbox(s.pod("later"), read=False)
    s.sandbox_status(later, network={})
    assert s.judge("CRI-21").verdict is Verdict.BROKEN


@detects("CRI-21")
def test_address_of_a_sandbox_stays(s: TraceBuilder, *, right: bool) -> None:
    """CRI-21: the IP of a sandbox does not change."""
    sandbox = s.run_sandbox(s.pod())
    s.sandbox_status(sandbox, network={"ip": "10.88.0.2" if right else "10.88.0.3"})


WRONG_RECORDS: list[dict[str, Any]] = [
    {"id": "other"},
    {"image_ref": ""},
    {"image_ref": "sha256:other"},
    {"image": {}},
    {"metadata": {}},
    {"metadata": {"name": "c1", "attempt": 1}},
]


@pytest.mark.parametrize("wrong", WRONG_RECORDS)
def test_container_records_are_whole(wrong: dict[str, Any]) -> None:
    """CRI-34: with all fields, and those of the container asked for."""
    assert_reading("CRI-34", {}, wrong)


@pytest.mark.parametrize("wrong", [{"id": "other"}, {"metadata": {}}, {"created_at": "0"}])
def test_sandbox_records_are_whole(wrong: dict[str, Any]) -> None:
    """CRI-34: with all fields, and those of the sandbox asked for."""
    assert_sandbox("CRI-34", {}, wrong)


def test_sandbox_keeps_its_attempt() -> None:
    """CRI-34: the metadata is what the sandbox was run with."""
    assert_sandbox(
        "CRI-34", {}, {"metadata": {"name": "web", "namespace": "default", "uid": "u", "attempt": 1}}
    )


@pytest.mark.parametrize(
    ("listed", "is_refused", "words"),
    [
        (["", "runc"], True, "kept"),
        (["", "runc"], False, "broken"),
        (["", "kata"], False, "not exercised"),
        ([], False, "not exercised"),
    ],
)
def test_unknown_handler(listed: list[str], is_refused: bool, words: str) -> None:  # noqa: FBT001
    """CRI-35: a handler that Status does not list is refused; where it lists none nobody can tell."""
    s = TraceBuilder()
    s.call("Status", {}, {"status": {}, "runtime_handlers": [{"name": name} for name in listed]})
    request = {"config": s.sandbox_config(s.pod()), "runtime_handler": "kata"}
    if is_refused:
        refuse(s, "RunPodSandbox", request, "INVALID_ARGUMENT")
    else:
        s.call("RunPodSandbox", request, {"pod_sandbox_id": "s1"})

    assert s.judge("CRI-35").verdict.words == words
