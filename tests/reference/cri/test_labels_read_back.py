"""What the kubelet writes on containers and sandboxes, and reads back from the runtime."""

from cri_api.v1 import api_pb2 as cri
from runtime_world import a_container, a_pod

from kubelet_reference.api import names, pods
from kubelet_reference.api.records import ContainerState
from kubelet_reference.cri.labels import (
    container_annotations,
    container_labels,
    container_record,
    restored_pod,
    sandbox_record,
)
from kubelet_reference.cri.termination_message import log_tail

HOOK = {"preStop": {"exec": {"command": ["x", "0", "1"]}}}


def _status() -> cri.ContainerStatus:
    pod = a_pod(
        a_container("c1", lifecycle=HOOK, ports=[{"containerPort": 80, "name": "http"}]),
        metadata={"deletionGracePeriodSeconds": 7},
    )
    container = pods.containers(pod)[0]
    return cri.ContainerStatus(
        id="id1",
        metadata=cri.ContainerMetadata(name="c1", attempt=3),
        state=cri.CONTAINER_RUNNING,
        created_at=10,
        started_at=11,
        labels=container_labels(pod, container),
        annotations=container_annotations(pod, container, 3, "abc"),
    )


def test_container_is_read_back() -> None:
    """Restart count and hash come from the annotations (START-06, RESTARTKUBELET-03)."""
    record = container_record(_status(), "")

    assert (record.name, record.restart_count, record.hash) == ("c1", 3, "abc")
    assert (record.state, record.started_at) == (ContainerState.RUNNING, 11)


def test_foreign_container() -> None:
    """A container without annotations counts from 0, and has no hash."""
    record = container_record(cri.ContainerStatus(id="x", metadata=cri.ContainerMetadata(name="x")), "")

    assert (record.restart_count, record.hash) == (0, "")


def test_pod_is_restored() -> None:
    """Grace, preStop hook and ports are there again for a container of no known pod (TERM-12)."""
    pod = restored_pod(_status())
    (container,) = pods.containers(pod)

    assert (pods.uid(pod), pods.key(pod)) == ("u1", "default/web")
    assert pods.grace_seconds(pod) == 30
    hook = container.lifecycle and container.lifecycle.preStop
    assert hook
    assert hook.exec
    assert hook.exec.command == ["x", "0", "1"]
    assert [port.containerPort for port in container.ports or ()] == [80]


def test_broken_annotations() -> None:
    """What cannot be read is left out."""
    status = cri.ContainerStatus(annotations={names.CONTAINER_PRE_STOP: "{", names.POD_GRACE: "long"})

    assert pods.containers(restored_pod(status))[0].lifecycle is None


def test_sandbox_is_read() -> None:
    """No network at all is distinguished from a network without an IP."""
    nothing = cri.PodSandboxStatus(id="s1", state=cri.SANDBOX_NOTREADY)
    empty = cri.PodSandboxStatus(id="s1", network=cri.PodSandboxNetworkStatus())
    both = cri.PodSandboxNetworkStatus(ip="10.0.0.1", additional_ips=[cri.PodIP(ip="fd00::1")])

    assert (sandbox_record(nothing).ips, sandbox_record(nothing).ready) == (None, False)
    assert (sandbox_record(empty).ips, sandbox_record(empty).ready) == ((), True)
    assert sandbox_record(cri.PodSandboxStatus(network=both)).ips == ("10.0.0.1", "fd00::1")


def test_log_tail() -> None:
    """Of a CRI log the texts of the last lines stay (START-11)."""
    log = b"".join(b"2026-01-01T00:00:00Z stderr F line %d\n" % number for number in range(100))

    tail = log_tail(log)

    assert tail.splitlines()[0] == "line 20"
    assert tail.endswith("line 99\n")
