"""EPH contracts: each is kept by a right story and broken by a wrong one."""

from __future__ import annotations

from typing import Any

import pytest
from story import ContainerHandle, PodHandle, SandboxHandle, Story
from twice import assert_bites


def add(s: Story, web: PodHandle, name: str = "dbg", **more: Any) -> None:
    """An ephemeral container is added to the pod."""
    every = web.manifest["spec"].setdefault("ephemeralContainers", [])
    every.append({"name": name, "image": "img:1", **more})
    s.set(web)


def debugged(
    s: Story, policy: str = "Always", **more: Any
) -> tuple[PodHandle, SandboxHandle, ContainerHandle, ContainerHandle]:
    """A running pod with a running ephemeral container dbg: the pod, its sandbox, c1 and dbg."""
    web = s.pod(restartPolicy=policy)
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(2)
    add(s, web, **more)
    return web, sandbox, c1, s.run_container(web, sandbox, "dbg")


def test_ephemeral_container_is_started_once() -> None:
    """EPH-01 breaks when an ephemeral container is made again after its end."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, _, dbg = debugged(s)
        s.exited(dbg, 3)
        if not right:
            s.run_container(web, sandbox, "dbg", attempt=1)

    assert_bites("EPH-01", tell)


@pytest.mark.parametrize("wrong", ["made again", "stopped", "unknown"])
def test_ended_ephemeral_container_is_left_alone(wrong: str) -> None:
    """EPH-02 breaks when an ended or unknown ephemeral container is made again or stopped."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, _, dbg = debugged(s)
        if not right and wrong == "unknown":
            s.container_status(dbg, state="CONTAINER_UNKNOWN")
        else:
            s.exited(dbg, 3)
        if not right and wrong == "made again":
            s.run_container(web, sandbox, "dbg", attempt=1)
        elif not right:
            s.call("StopContainer", {"container_id": dbg.id, "timeout": "30"})
        s.delete(web)

    assert_bites("EPH-02", tell)


def test_ephemeral_container_does_not_wait_for_init() -> None:
    """EPH-03 breaks when an ephemeral container waits for the end of an init container."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
        sandbox = s.run_sandbox(web)
        s.run_container(web, sandbox, "i1")
        s.wait(2)
        add(s, web)
        s.wait(1 if right else 30).run_container(web, sandbox, "dbg")

    assert_bites("EPH-03", tell)


def test_ephemeral_container_is_not_carried_over() -> None:
    """EPH-05 breaks when an ephemeral container is made again in a new sandbox."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1, dbg = debugged(s)
        s.sandbox_died(sandbox)
        s.stop(c1)
        s.stop(dbg)
        s.stop_sandbox(sandbox)
        again = s.run_sandbox(web, attempt=1)
        s.run_container(web, again, "c1" if right else "dbg", attempt=1)

    assert_bites("EPH-05", tell)


def test_ephemeral_container_does_not_keep_the_pod() -> None:
    """EPH-06 breaks when a pod that is through waits for its ephemeral container."""

    def tell(s: Story, *, right: bool) -> None:
        _, sandbox, c1, dbg = debugged(s, "Never")
        s.exited(c1, 0)
        s.wait(1 if right else 60).stop(dbg)
        s.stop_sandbox(sandbox)

    assert_bites("EPH-06", tell)


def test_ephemeral_container_does_not_count_for_readiness() -> None:
    """EPH-06 breaks when ContainersReady waits for an ephemeral container."""

    def tell(s: Story, *, right: bool) -> None:
        web, *_ = debugged(s)
        s.status(
            web,
            containerStatuses=[{"name": "c1", "state": {"running": {}}, "ready": True, "restartCount": 0}],
            ephemeralContainerStatuses=[{"name": "dbg", "state": {"running": {}}, "restartCount": 0}],
            conditions=[{"type": "ContainersReady", "status": str(right)}],
        )

    assert_bites("EPH-06", tell)


@pytest.mark.parametrize("wrong", [{"pid": "CONTAINER"}, {"pid": "TARGET", "target_id": "another"}])
def test_ephemeral_container_joins_its_target(wrong: dict[str, str]) -> None:
    """EPH-07 breaks when the target is ignored or another one."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        sandbox = s.run_sandbox(web)
        c1 = s.run_container(web, sandbox)
        add(s, web, targetContainerName="c1")
        options = {"pid": "TARGET", "target_id": c1.id} if right else wrong
        linux = {"security_context": {"namespace_options": options}}
        s.create(web, sandbox, "dbg", config=s.container_config(web, "dbg", linux=linux))

    assert_bites("EPH-07", tell)


def test_added_ephemeral_container_is_started() -> None:
    """EPH-08 breaks when an ephemeral container waits for the next resync."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        sandbox = s.run_sandbox(web)
        s.run_container(web, sandbox)
        s.wait(5)
        add(s, web)
        s.wait(1 if right else 60).run_container(web, sandbox, "dbg")

    assert_bites("EPH-08", tell)


def test_ephemeral_container_is_stopped_with_its_pod() -> None:
    """EPH-09 breaks when an ephemeral container is left to the end of the sandbox."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1, dbg = debugged(s)
        s.delete(web)
        s.stop(c1)
        if right:
            s.stop(dbg)
        s.stop_sandbox(sandbox)

    assert_bites("EPH-09", tell)


@pytest.mark.parametrize("stops", [False, True])
def test_changed_ephemeral_container_runs_on(*, stops: bool) -> None:
    """EPH-10 breaks when a new image replaces a running ephemeral container."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, _, dbg = debugged(s)
        web.manifest["spec"]["ephemeralContainers"][0]["image"] = "img:2"
        s.set(web)
        if not right and stops:
            s.stop(dbg)
        elif not right:
            s.run_container(web, sandbox, "dbg", attempt=1)
        s.delete(web)

    assert_bites("EPH-10", tell)


@pytest.mark.parametrize("wrong", ["order", "count"])
def test_ephemeral_statuses_are_sorted(wrong: str) -> None:
    """EPH-11 breaks when the statuses are not sorted by name, or count restarts."""

    def tell(s: Story, *, right: bool) -> None:
        web, *_ = debugged(s)
        names = ["b", "a"] if wrong == "order" and not right else ["a", "b"]
        count = 1 if wrong == "count" and not right else 0
        told: list[dict[str, Any]] = [
            {"name": name, "state": {"running": {}}, "restartCount": count} for name in names
        ]
        s.status(web, ephemeralContainerStatuses=told)

    assert_bites("EPH-11", tell)


@pytest.mark.parametrize("wrong", [{"ready": True}, {"started": False}])
def test_ephemeral_container_is_never_ready(wrong: dict[str, bool]) -> None:
    """EPH-12 breaks when an ephemeral container is ready or has a started field."""

    def tell(s: Story, *, right: bool) -> None:
        web, *_ = debugged(s)
        told: dict[str, Any] = {"name": "dbg", "state": {"running": {}}, "ready": False, "restartCount": 0}
        s.status(web, ephemeralContainerStatuses=[told if right else told | wrong])

    assert_bites("EPH-12", tell)


@pytest.mark.parametrize("app", [False, True])
def test_failed_ephemeral_container_harms_no_other(*, app: bool) -> None:
    """EPH-04 breaks when another ephemeral container, or an ended app container, waits for one that fails."""

    def tell(s: Story, *, right: bool) -> None:
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

    assert_bites("EPH-04", tell)
