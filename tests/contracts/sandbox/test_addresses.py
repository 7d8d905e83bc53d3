"""Contracts on a pod's addresses: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from trace_builder import PodHandle, SandboxHandle, TraceBuilder
from twice import detects

HOSTS = "/var/lib/kubelet/pods/uid/etc-hosts"
MOUNT = {"container_path": "/etc/hosts", "host_path": HOSTS}
IP = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
ONE = [{"name": "c1", "image": "img:1", "env": [IP]}]
OLD, NEW = "10.88.0.2", "10.88.0.3"


def sandbox_with(s: TraceBuilder, web: PodHandle, ip: str, attempt: int = 0) -> SandboxHandle:
    """A sandbox with this address."""
    sandbox = s.run_sandbox(web, attempt, read=False)
    s.sandbox_status(sandbox, network={"ip": ip})
    return sandbox


def make(s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, ip: str, **more: Any) -> None:
    """The next instance of c1, given this address."""
    config = s.container_config(web, "c1", envs=[{"key": "IP", "value": ip}], **more)
    s.create(web, sandbox, config=config)


@pytest.mark.parametrize("where", ["environment", "hosts"])
@detects("SYNC-22")
def test_replacement_brings_its_address(s: TraceBuilder, where: str, *, right: bool) -> None:
    """SYNC-22 breaks when a container of the new sandbox finds the address of the old one."""
    web = s.pod(containers=ONE)
    first = sandbox_with(s, web, OLD)
    make(s, web, first, OLD)
    s.wait(5).sandbox_died(first)
    s.stop_sandbox(first)
    second = sandbox_with(s, web, NEW, 1)
    environment = NEW if right or where == "hosts" else OLD
    hosts = NEW if right or where == "environment" else OLD
    s.record("disk", op="written", path=HOSTS, text=f"{hosts}\tweb\n")
    make(s, web, second, environment, mounts=[MOUNT])


@pytest.mark.parametrize("host", ["10.0.0.1", "fd00::1"])
@detects("SANDBOX-22")
def test_addresses_are_in_order(s: TraceBuilder, host: str, *, right: bool) -> None:
    """SANDBOX-22 breaks when addresses are shown in the runtime's order, or more than one of a family."""
    web = s.pod()
    sandbox = s.run_sandbox(web, read=False)
    others = [{"ip": "10.88.0.7"}, {"ip": "10.88.0.8"}]
    s.sandbox_status(sandbox, network={"ip": "fd00::7", "additional_ips": others})
    wanted = ["fd00::7", "10.88.0.7"] if ":" in host else ["10.88.0.7", "fd00::7"]
    shown = wanted if right else wanted[::-1]
    s.status(web, hostIP=host, podIP=shown[0], podIPs=[{"ip": ip} for ip in shown])
