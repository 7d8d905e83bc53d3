"""EPH contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects


def add(s: TraceBuilder, web: PodHandle, name: str = "dbg", **more: Any) -> None:
    """An ephemeral container is added to the pod."""
    every = web.manifest["spec"].setdefault("ephemeralContainers", [])
    every.append({"name": name, "image": "img:1", **more})
    s.set(web)


def debugged(
    s: TraceBuilder, policy: str = "Always", **more: Any
) -> tuple[PodHandle, SandboxHandle, ContainerHandle, ContainerHandle]:
    """A running pod with a running ephemeral container dbg: the pod, its sandbox, c1 and dbg."""
    web = s.pod(restartPolicy=policy)
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(2)
    add(s, web, **more)
    return web, sandbox, c1, s.run_container(web, sandbox, "dbg")


@detects("EPH-06")
def test_ephemeral_container_does_not_keep_the_pod(s: TraceBuilder, *, right: bool) -> None:
    """EPH-06 breaks when a pod that is through waits for its ephemeral container."""
    _, sandbox, c1, dbg = debugged(s, "Never")
    s.exited(c1, 0)
    s.wait(1 if right else 60).stop(dbg)
    s.stop_sandbox(sandbox)


@pytest.mark.parametrize("wrong", [{"pid": "CONTAINER"}, {"pid": "TARGET", "target_id": "another"}])
@detects("EPH-07")
def test_ephemeral_container_joins_its_target(s: TraceBuilder, wrong: dict[str, str], *, right: bool) -> None:
    """EPH-07 breaks when the target is ignored or another one."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    add(s, web, targetContainerName="c1")
    options = {"pid": "TARGET", "target_id": c1.id} if right else wrong
    linux = {"security_context": {"namespace_options": options}}
    s.create(web, sandbox, "dbg", config=s.container_config(web, "dbg", linux=linux))


@pytest.mark.parametrize("wrong", [{"ready": True}, {"started": False}])
@detects("EPH-12")
def test_ephemeral_container_is_never_ready(s: TraceBuilder, wrong: dict[str, bool], *, right: bool) -> None:
    """EPH-12 breaks when an ephemeral container is ready or has a started field."""
    web, *_ = debugged(s)
    reported: dict[str, Any] = {"name": "dbg", "state": {"running": {}}, "ready": False, "restartCount": 0}
    s.status(web, ephemeralContainerStatuses=[reported if right else reported | wrong])


@pytest.mark.parametrize("app", [False, True])
@detects("EPH-04")
def test_failed_ephemeral_container_harms_no_other(s: TraceBuilder, *, right: bool, app: bool) -> None:
    """EPH-04 breaks when another ephemeral container, or an ended app container, waits for one that fails."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(2)
    if app:
        s.exited(c1, 1)
    add(s, web, "dbg")
    if not app:
        add(s, web, "other")
    s.create(web, sandbox, "dbg", error="INTERNAL")
    if right and app:
        s.run_container(web, sandbox, "c1", attempt=1)
    elif right:
        s.run_container(web, sandbox, "other")
