"""What a sandbox is asked to be, and how users and resources reach the runtime."""

from typing import Any

import pytest
from cri_api.v1 import api_pb2 as cri
from runtime_world import a_container, a_pod

from kubelet_reference.api import names, pods
from kubelet_reference.api.records import SandboxRecord, ips_of, ips_of_newest
from kubelet_reference.api.resources import container_resources
from kubelet_reference.kuberuntime.container.security import root_problem
from kubelet_reference.kuberuntime.sandbox_config import dotted, sandbox_config
from kubelet_reference.util.settings import Settings

SETTINGS = Settings()
GIB = 1 << 30


def test_identity() -> None:
    """Metadata, labels, annotations and log folder are the pod's (SANDBOX-01, SANDBOX-11, SANDBOX-12)."""
    about = {"labels": {"app": "web"}, "annotations": {"note": "x"}}

    config = sandbox_config(a_pod(metadata=about), 3, SETTINGS)

    identity = {names.POD_NAME: "web", names.POD_NAMESPACE: "default", names.POD_UID: "u1"}
    assert config.metadata == cri.PodSandboxMetadata(name="web", uid="u1", namespace="default", attempt=3)
    assert dict(config.labels) == {"app": "web", **identity}
    assert dict(config.annotations) == {"note": "x"}
    assert config.log_directory == "/var/log/pods/default_web_u1"


# fmt: off
NAMESPACES: list[tuple[dict[str, Any], tuple[int, int, int]]] = [
    ({},                              (cri.POD,  cri.CONTAINER, cri.POD)),
    ({"hostNetwork": True},           (cri.NODE, cri.CONTAINER, cri.POD)),
    ({"shareProcessNamespace": True}, (cri.POD,  cri.POD,       cri.POD)),
    ({"hostPID": True},               (cri.POD,  cri.NODE,      cri.POD)),
    ({"hostIPC": True},               (cri.POD,  cri.CONTAINER, cri.NODE)),
]
HOSTNAMES: list[tuple[dict[str, Any], str, str]] = [
    ({},                                    "web", "web"),
    ({"hostname": "own"},                   "web", "own"),
    ({"hostNetwork": True},                 "web", ""),
    ({},                                    f"{62 * 'a'}.b", 62 * "a"),
]
SYSCTLS = [
    ("kernel.shm_rmid_forced",              "kernel.shm_rmid_forced"),
    ("net/ipv4/ip_local_port_range",        "net.ipv4.ip_local_port_range"),
    ("net/ipv4/conf/eno2.100/rp_filter",    "net.ipv4.conf.eno2/100.rp_filter"),
    ("net.ipv4.conf.eno2/100.rp_filter",    "net.ipv4.conf.eno2/100.rp_filter"),
    ("plain",                               "plain"),
]
USERS = [
    # runAsUser, image's uid, image's user, problem
    (None,       0,           "",           "container has runAsNonRoot and image will run as root"),
    (None,       None,        "",           "container has runAsNonRoot and image will run as root"),
    (None,       7,           "",           ""),
    (None,       None,        "app",        "non-numeric user (app)"),
    (7,          None,        "app",        ""),
    (0,          7,           "",           "container's runAsUser breaks non-root policy"),
]
SHARES: list[tuple[dict[str, str], dict[str, str], int, int, int, int]] = [
    # requests, limits,                      shares, quota,  memory,  OOM score
    ({},        {},                          2,      0,      0,       1000),
    ({"cpu": "500m", "memory": "8Gi"}, {},   512,    0,      0,       750),
    ({},        {"cpu": "2", "memory": "1Gi"}, 2048, 200000, GIB,     -997),
    ({"memory": "1"}, {},                    2,      0,      0,       999),
]
# fmt: on


@pytest.mark.parametrize(("spec", "modes"), NAMESPACES)
def test_namespaces(spec: dict[str, Any], modes: tuple[int, int, int]) -> None:
    """Network, PID and IPC follow the spec (SANDBOX-15)."""
    options = sandbox_config(a_pod(**spec), 0, SETTINGS).linux.security_context.namespace_options

    assert (options.network, options.pid, options.ipc) == modes


@pytest.mark.parametrize(("spec", "name", "hostname"), HOSTNAMES)
def test_hostname(spec: dict[str, Any], name: str, hostname: str) -> None:
    """The pod's name or its own choice, cut to 63; none on the host's network (SANDBOX-13)."""
    assert sandbox_config(a_pod(metadata={"name": name}, **spec), 0, SETTINGS).hostname == hostname


def test_ports() -> None:
    """Ports of app containers are mapped, those of init containers are not (SANDBOX-14)."""
    app = a_container(ports=[{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}])
    init = a_container("i1", ports=[{"containerPort": 81, "hostPort": 8081}])

    config = sandbox_config(a_pod(app, initContainers=[init]), 0, SETTINGS)

    assert list(config.port_mappings) == [
        cri.PortMapping(protocol=cri.UDP, container_port=80, host_port=8080)
    ]


@pytest.mark.parametrize(("written", "reported"), SYSCTLS)
def test_sysctls(written: str, reported: str) -> None:
    """Slashes become dots, and a dot in a part's name a slash (SANDBOX-24)."""
    context = {"sysctls": [{"name": written, "value": "1"}]}

    assert dotted(written) == reported
    assert dict(sandbox_config(a_pod(securityContext=context), 0, SETTINGS).linux.sysctls) == {reported: "1"}


@pytest.mark.parametrize(("user", "uid", "username", "problem"), USERS)
def test_root(user: int | None, uid: int | None, username: str, problem: str) -> None:
    """With runAsNonRoot the user must be known, and not root (IMAGE-22)."""
    fields: dict[str, Any] = {} if user is None else {"runAsUser": user}
    pod = a_pod(a_container(securityContext=fields), securityContext={"runAsNonRoot": True})
    image = cri.Image(username=username, uid=None if uid is None else cri.Int64Value(value=uid))

    found = root_problem(pod, pods.containers(pod)[0], image)

    assert found.endswith(problem) or problem in found
    assert bool(found) == bool(problem)


@pytest.mark.parametrize(("requests", "limits", "shares", "quota", "memory", "score"), SHARES)
def test_resources(
    requests: dict[str, str], limits: dict[str, str], *, shares: int, quota: int, memory: int, score: int
) -> None:
    """Cores and bytes become the kernel's units; who asks for more memory is killed later."""
    pod = a_pod(a_container(resources={"requests": requests, "limits": limits}))

    found = container_resources(pod, pods.containers(pod)[0], 32 * GIB)

    assert (found.cpu_shares, found.cpu_quota) == (shares, quota)
    assert (found.memory_limit_in_bytes, found.oom_score_adj) == (memory, score)


def test_ips() -> None:
    """Text that is no address gives no IPs at all, and only a ready newest sandbox gives any (SANDBOX-21)."""
    good = SandboxRecord("s1", 0, 1, ready=True, host_network=False, ips=("10.0.0.1", "fd00::1"))
    bad = SandboxRecord("s2", 0, 1, ready=True, host_network=False, ips=("10.0.0.1", "foo"))
    dead = SandboxRecord("s3", 0, 1, ready=False, host_network=False, ips=("10.0.0.1",))

    assert ips_of(good) == ("10.0.0.1", "fd00::1")
    assert ips_of(bad) == ()
    assert ips_of_newest((dead, good)) == ips_of_newest(()) == ()
    assert ips_of_newest((good, dead)) == ("10.0.0.1", "fd00::1")
