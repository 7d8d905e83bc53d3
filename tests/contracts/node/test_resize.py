"""RESIZE contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from running import BROKEN, KEPT
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

RESTARTS = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
PENDING = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]


def sized(name: str, cpu: str, memory: str = "64Mi", **more: Any) -> dict[str, Any]:
    """A container that is to have so much, and no more."""
    size = {"cpu": cpu, "memory": memory}
    return {"name": name, "image": "img:1", "resources": {"requests": size, "limits": size}, **more}


def linux(cores: float, mebibytes: int = 64) -> dict[str, str]:
    """What that is in the kernel's units."""
    return {
        "cpu_shares": str(int(cores * 1024)),
        "cpu_quota": str(int(cores * 100_000)),
        "cpu_period": "100000",
        "memory_limit_in_bytes": str(mebibytes << 20),
    }


class Sized:
    """A pod whose containers c1 and c2 have one core each, the second half a core, and that runs for 10 s."""

    def __init__(self, kubernetes: str = "1.33", *, source: str = "api", **c1: Any) -> None:
        self.s = TraceBuilder(kubernetes)
        containers = [sized("c1", "1", **c1), sized("c2", "500m")]
        self.web: PodHandle = self.s.pod("web", containers=containers, source=source)
        self.sandbox: SandboxHandle = self.s.run_sandbox(self.web)
        self.c1, self.c2 = self.run("c1", 1), self.run("c2", 0.5)
        self.s.wait(10)

    def run(self, name: str, cores: float, attempt: int = 0) -> ContainerHandle:
        """A container is made with so many cores, and read as running."""
        config = self.s.container_config(self.web, name, attempt, linux={"resources": linux(cores)})
        made = self.s.create(self.web, self.sandbox, name, attempt, config=config)
        self.s.start(made)
        self.read(made, cores)
        return made

    def read(self, container: ContainerHandle, cores: float, **more: Any) -> None:
        """The runtime tells what a container has."""
        reported = {"resources": {"linux": linux(cores)}}
        self.s.container_status(container, state="CONTAINER_RUNNING", **(reported | more))

    def want(self, **cores: str) -> TraceBuilder:
        """Other resources are wanted of containers, by name."""
        for one in self.web.manifest["spec"]["containers"]:
            if one["name"] in cores:
                one |= {"resources": sized("", cores[one["name"]])["resources"]}
        self.s.set(self.web)
        return self.s

    def update(self, container: ContainerHandle, **fields: str) -> TraceBuilder:
        """UpdateContainerResources."""
        self.s.call("UpdateContainerResources", {"container_id": container.id, "linux": fields}, {})
        return self.s

    def give(self, container: ContainerHandle, cores: float) -> TraceBuilder:
        """A container is given so many cores."""
        wanted = linux(cores)
        return self.update(container, cpu_shares=wanted["cpu_shares"], cpu_quota=wanted["cpu_quota"])

    def show(self, cpu: str, **more: Any) -> None:
        """A status that shows c1 with so much."""
        size = {"cpu": cpu, "memory": "64Mi"}
        said: dict[str, Any] = {
            "name": "c1",
            "containerID": f"fake://{self.c1.id}",
            "state": {"running": {}},
            "resources": {"limits": size},
        }
        self.s.status(self.web, containerStatuses=[said], **more)


@pytest.mark.parametrize(("cores", "verdict"), [(2, KEPT), (1, BROKEN)])
def test_new_instance_has_what_is_wanted(cores: float, verdict: Verdict) -> None:
    """RESIZE-03: what comes after the restart has the new resources."""
    one = Sized(resizePolicy=RESTARTS)
    one.want(c1="2").wait(1).stop(one.c1)
    one.run("c1", cores, 1)

    assert one.s.judge("RESIZE-03").verdict is verdict


@pytest.mark.parametrize(
    ("refused", "given", "verdict"), [(True, False, KEPT), (False, True, BROKEN), (True, True, BROKEN)]
)
def test_impossible_resize_is_refused(verdict: Verdict, *, refused: bool, given: bool) -> None:
    """RESIZE-02: what no node has is called infeasible, and not given."""
    one = Sized()
    one.want(c1="100k").wait(1)
    if refused:
        one.show("1", conditions=PENDING)
    if given:
        one.give(one.c1, 100_000)

    assert one.s.judge("RESIZE-02").verdict is verdict


@pytest.mark.parametrize(("waits", "verdict"), [(60, KEPT), (200, BROKEN)])
def test_deferred_resize_is_tried_again(waits: float, verdict: Verdict) -> None:
    """RESIZE-02: when another pod has gone that took as much, there is room."""
    one = Sized()
    other = one.s.pod("other", containers=[sized("c1", "2")])
    one.s.wait(100)
    one.want(c1="2").wait(1)
    one.show("1", conditions=[{"type": "PodResizePending", "status": "True", "reason": "Deferred"}])
    one.s.wait(5).deleted(other)
    one.s.wait(waits)
    one.give(one.c1, 2)

    assert one.s.judge("RESIZE-02").verdict is verdict


@pytest.mark.parametrize(("waits", "verdict"), [(1, KEPT), (60, BROKEN)])
def test_status_follows_the_runtime(waits: float, verdict: Verdict) -> None:
    """RESIZE-06: what the runtime tells of is shown at once, and not with the next resync."""
    one = Sized()
    one.want(c1="2").wait(1)
    one.give(one.c1, 2).wait(1)
    one.read(one.c1, 2)
    one.s.wait(waits)
    one.show("2")

    assert one.s.judge("RESIZE-06").verdict is verdict


@pytest.mark.parametrize(
    ("kubernetes", "reported", "verdict"),
    [
        ("1.32", {"resize": "Infeasible"}, KEPT),
        ("1.32", {"conditions": PENDING}, BROKEN),
        ("1.33", {"conditions": PENDING}, KEPT),
        ("1.33", {"resize": "Infeasible"}, BROKEN),
    ],
)
def test_resize_is_reported_as_its_version_does(
    kubernetes: str, reported: dict[str, Any], verdict: Verdict
) -> None:
    """COND-09: by conditions from 1.33 on, by a field before."""
    one = Sized(kubernetes)
    one.want(c1="100k").wait(1)
    one.show("1", **reported)

    assert one.s.judge("COND-09").verdict is verdict


@pytest.mark.parametrize(("first", "waits", "verdict"), [(1, 1, KEPT), (60, 1, BROKEN), (1, 60, BROKEN)])
def test_resized_container_is_watched(first: float, waits: float, verdict: Verdict) -> None:
    """PLEG-17: after a resize the pod is inspected within a relist, until the change shows."""
    one = Sized()
    one.want(c1="2").wait(1)
    one.give(one.c1, 2).wait(first)
    one.read(one.c1, 1)
    one.s.wait(waits)
    one.read(one.c1, 2)

    assert one.s.judge("PLEG-17").verdict is verdict
