"""Traces that begin with a pod that runs."""

from typing import Any

from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

KEPT, BROKEN = Verdict.KEPT, Verdict.BROKEN
PRE_STOP = {"preStop": {"exec": {"command": ["drain"]}}}
POST_START = {"postStart": {"exec": {"command": ["warm"]}}}


def running(
    kubernetes: str = "1.32",
    *,
    grace: int = 30,
    source: str = "api",
    policy: str = "Always",
    **container: Any,
) -> tuple[TraceBuilder, PodHandle, SandboxHandle, ContainerHandle]:
    """A pod `web` with one container c1, which has run for 10 s; `container` adds to the container's spec."""
    s = TraceBuilder(kubernetes)
    containers = [{"name": "c1", "image": "img:1", **container}]
    rest: dict[str, Any] = {"terminationGracePeriodSeconds": grace, "restartPolicy": policy}
    web = s.pod("web", source=source, containers=containers, **rest)
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(10)
    return s, web, sandbox, c1


def two_running(
    kubernetes: str = "1.32", **container: Any
) -> tuple[TraceBuilder, PodHandle, SandboxHandle, ContainerHandle, ContainerHandle]:
    """A pod `web` with two containers c1 and c2, which have run for 10 s."""
    s = TraceBuilder(kubernetes)
    web = s.pod(containers=[{"name": name, "image": "img:1", **container} for name in ("c1", "c2")])
    sandbox = s.run_sandbox(web)
    c1, c2 = (s.run_container(web, sandbox, name) for name in ("c1", "c2"))
    s.wait(10)
    return s, web, sandbox, c1, c2


def with_sidecar(
    s: TraceBuilder, *, sidecar: dict[str, Any] | None = None, app: dict[str, Any] | None = None, **spec: Any
) -> tuple[PodHandle, SandboxHandle, ContainerHandle, ContainerHandle]:
    """A pod with a sidecar sc and an app container c1, which run; each may have more fields, as the spec."""
    inits = [{"name": "sc", "image": "img:1", "restartPolicy": "Always", **(sidecar or {})}]
    spec = {"containers": [{"name": "c1", "image": "img:1", **(app or {})}], **spec}
    web = s.pod(initContainers=inits, **spec)
    sandbox = s.run_sandbox(web)
    sc, c1 = (s.run_container(web, sandbox, name) for name in ("sc", "c1"))
    return web, sandbox, sc, c1


def hook(s: TraceBuilder, c1: ContainerHandle, command: str, *, takes: float = 0.5, code: int = 0) -> None:
    """An exec hook that runs to its end."""
    s.call("ExecSync", {"container_id": c1.id, "cmd": [command]}, {"exit_code": code}, takes=takes)


def probe(s: TraceBuilder, c1: ContainerHandle, code: int) -> None:
    """An exec probe."""
    s.call("ExecSync", {"container_id": c1.id, "cmd": ["alive"], "timeout": "1"}, {"exit_code": code})
