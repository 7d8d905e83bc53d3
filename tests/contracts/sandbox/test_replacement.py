"""SANDBOX contracts on what runs again in a replacement: kept by a right trace, broken by a wrong one."""

from typing import Any

import pytest
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

INIT = [{"name": "i1", "image": "img:1"}]


def initialized(s: TraceBuilder) -> tuple[PodHandle, SandboxHandle, ContainerHandle]:
    """A pod whose init container has completed."""
    web = s.pod(initContainers=INIT)
    sandbox = s.run_sandbox(web)
    i1 = s.run_container(web, sandbox, "i1")
    s.exited(i1)
    return web, sandbox, i1


@pytest.mark.parametrize("failing", [False, True])
@detects("SANDBOX-05")
def test_init_records_are_removed_before_a_replacement(
    s: TraceBuilder, *, right: bool, failing: bool
) -> None:
    """SANDBOX-05 breaks when a completed init container stands at the replacement, unless removal failed."""
    web, sandbox, i1 = initialized(s)
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    if right:
        s.call("RemoveContainer", {"container_id": i1.id}, {}, error="INTERNAL" if failing else None)
    s.run_sandbox(web, attempt=1)


@detects("SANDBOX-05")
def test_init_records_stay_until_the_kill(s: TraceBuilder, *, right: bool) -> None:
    """SANDBOX-05 breaks when the records are removed before the sandbox was stopped."""
    web, sandbox, i1 = initialized(s)
    s.sandbox_died(sandbox)
    if not right:
        s.remove(i1)
    s.stop_sandbox(sandbox)
    if right:
        s.remove(i1)
    s.run_sandbox(web, attempt=1)


@pytest.mark.parametrize(("name", "attempt"), [("c1", 0), ("i1", 0), ("i1", 2)])
@detects("SANDBOX-05")
def test_replacement_begins_with_the_first_init(
    s: TraceBuilder, name: str, attempt: int, *, right: bool
) -> None:
    """SANDBOX-05 breaks when another container comes first, or with an attempt that is not one more."""
    web, sandbox, i1 = initialized(s)
    s.sandbox_died(sandbox)
    s.stop_sandbox(sandbox)
    s.remove(i1)
    second = s.run_sandbox(web, attempt=1)
    s.run_container(web, second, "i1" if right else name, 1 if right else attempt)


@detects("SANDBOX-08")
def test_failed_initialization_ends_a_run_once_pod(s: TraceBuilder, *, right: bool) -> None:
    """SANDBOX-08 breaks when a Never pod whose init container failed keeps its sandbox."""
    web = s.pod(initContainers=INIT, restartPolicy="Never")
    sandbox = s.run_sandbox(web)
    s.exited(s.run_container(web, sandbox, "i1"), code=1)
    if right:
        s.stop_sandbox(sandbox)


@pytest.mark.parametrize("spec", [{"restartPolicy": "Always"}, {"restartPolicy": "OnFailure"}])
def test_pod_that_goes_on_keeps_its_sandbox(spec: dict[str, Any]) -> None:
    """SANDBOX-08 owes nothing for a pod that is to run again."""
    s = TraceBuilder()
    web = s.pod(**spec)
    s.exited(s.run_container(web, s.run_sandbox(web)), code=1)

    assert s.judge("SANDBOX-08").verdict is Verdict.NOT_EXERCISED


@pytest.mark.parametrize("image", ["img:2", "img:1"])
@pytest.mark.parametrize("contract_id", ["SANDBOX-08", "TERM-21"])
def test_unread_end_of_a_changed_container(contract_id: str, image: str) -> None:
    """SANDBOX-08, TERM-21: what ended unseen is stopped for its new definition and made again, else not."""
    s = TraceBuilder()
    web = s.pod(restartPolicy="OnFailure")
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.exited(c1, seen=False)
    web.manifest["spec"]["containers"][0]["image"] = image
    s.set(web)
    s.call("StopContainer", {"container_id": c1.id, "timeout": "30"}, {})
    s.run_container(web, sandbox, "c1", 1)
    s.wait(60).stop_here()

    assert (s.judge(contract_id).verdict is Verdict.BROKEN) is (image == "img:1")
