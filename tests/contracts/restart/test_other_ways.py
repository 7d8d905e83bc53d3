"""What a kubelet that is not written as upstream's is accused of: what it does, not how it comes to know."""

import pytest
from runtime_reads import container_record, list_containers
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def running(policy: str) -> tuple[TraceBuilder, PodHandle, SandboxHandle, ContainerHandle]:
    """A pod whose only container runs."""
    s = TraceBuilder()
    web = s.pod(restartPolicy=policy)
    sandbox = s.run_sandbox(web)
    return s, web, sandbox, s.run_container(web, sandbox)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("contract", ["RESTART-02", "WORK-17", "TERM-01"])
def test_list_tells_of_an_end(contract: str, *, listed: bool) -> None:
    """RESTART-02, WORK-17, TERM-01: a list tells that a container ended, as ContainerStatus does."""
    s, web, sandbox, c1 = running("Always")
    s.exited(c1, seen=False)
    if listed:
        list_containers(s, container_record(c1, "CONTAINER_EXITED"))
    if contract == "TERM-01":
        s.delete(web)
        s.wait(1).stop_sandbox(sandbox)
    else:
        s.run_container(web, sandbox, attempt=1)

    assert (s.judge(contract).verdict is Verdict.BROKEN) is not listed


@detects("INIT-02", listed=(True, False))
def test_list_tells_of_the_end_of_an_init_container(s: TraceBuilder, *, listed: bool) -> None:
    """INIT-02: a list tells that an init container has exited, as ContainerStatus does."""
    web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    i1 = s.run_container(web, sandbox, "i1")
    s.exited(i1, seen=False)
    if listed:
        list_containers(s, container_record(i1, "CONTAINER_EXITED"))
    s.create(web, sandbox)


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_restart_that_is_none_of_the_back_off(policy: str) -> None:
    """BACKOFF-04: what no policy restarts has no back-off; that it is made again breaks RESTART-05."""
    s, web, sandbox, c1 = running(policy)
    s.exited(c1)
    s.exited(s.run_container(web, sandbox, attempt=1))
    s.run_container(web, sandbox, attempt=2)

    assert s.judge("RESTART-05" if policy == "Never" else "BACKOFF-04").verdict is Verdict.BROKEN
    assert (s.judge("BACKOFF-04").verdict is Verdict.BROKEN) is (policy == "Always")


@pytest.mark.parametrize("contract", ["START-07", "START-14", "RESTART-13"])
def test_log_of_a_container_without_a_restart_count(contract: str) -> None:
    """START-07, START-14, RESTART-13: the log has the attempt's number; START-05 asks for the annotation."""
    s, web, sandbox, _ = running("Always")
    config = s.container_config(web, "c1", 1)
    config["annotations"] = {}
    s.create(web, sandbox, config=config)

    assert s.judge(contract).verdict is Verdict.KEPT
