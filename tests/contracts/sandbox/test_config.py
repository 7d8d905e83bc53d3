"""SANDBOX contracts on what a sandbox is asked to be: kept by a right trace, broken by a wrong one."""

from typing import Any

import pytest
from trace_builder import TraceBuilder
from twice import assert_detects, detects

from kubelet_conformance.contract.verdicts import Verdict

UID_LABEL = "io.kubernetes.pod.uid"


def assert_asked(
    contract_id: str, wrong: dict[str, Any], *, right: dict[str, Any] | None = None, **spec: Any
) -> None:
    """The sandbox of a pod with this spec is asked for as it should be, and with some fields wrong."""

    def tell(s: TraceBuilder, *, right: bool) -> None:
        web = s.pod(**spec)
        s.run_sandbox(web, config=s.sandbox_config(web, **(fitting if right else fitting | wrong)))

    fitting = right or {}
    assert_detects(contract_id, tell)


@pytest.mark.parametrize("wrong", ["uid", "missing", "foreign", "annotation"])
@detects("SANDBOX-11")
def test_sandbox_is_labelled_as_its_pod(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SANDBOX-11 breaks when a label or annotation is another one, missing, or too much."""
    web = s.pod()
    web.manifest["metadata"] |= {
        "uid": "u2",
        "name": "other",
        "labels": {"app": "a"},
        "annotations": {"k": "v"},
    }
    s.set(web)
    config = s.sandbox_config(web, annotations={"k": "v", "kubernetes.io/config.source": "api"})
    if not right and wrong == "uid":
        config["labels"][UID_LABEL] = "u3"
    elif not right and wrong == "missing":
        del config["labels"]["app"]
    elif not right and wrong == "foreign":
        config["labels"]["more"] = "x"
    elif not right:
        config["annotations"]["k"] = "w"
    s.run_sandbox(web, config=config)


@pytest.mark.parametrize(("version", "parent"), [("1.26", "/var/log/pods"), ("1.32", "/elsewhere")])
def test_log_directory_names_the_pod(version: str, parent: str) -> None:
    """SANDBOX-12 breaks when logs go elsewhere; their parent is a setting from 1.32 on."""

    def tell(s: TraceBuilder, *, right: bool) -> None:
        web = s.pod()
        name = f"default_web_{web.uid}" if right else f"web_{web.uid}"
        s.run_sandbox(web, config=s.sandbox_config(web, log_directory=f"{parent}/{name}"))

    assert_detects("SANDBOX-12", tell, kubernetes=version)


@pytest.mark.parametrize(
    ("right", "wrong", "spec"),
    [
        ("web", "other", {}),
        ("own", "web", {"hostname": "own"}),
        ("", "web", {"hostNetwork": True}),
        ("web.sub.default.svc", "web2.sub", {"subdomain": "sub"}),
        ("h" * 63, "h" * 64, {"hostname": "h" * 64}),
    ],
)
def test_hostname(right: str, wrong: str, spec: dict[str, Any]) -> None:
    """SANDBOX-13 breaks when the hostname is not the pod's, too long, or set on the host's network."""
    assert_asked("SANDBOX-13", {"hostname": wrong}, right={"hostname": right}, **spec)


PORT = {"container_port": 80, "host_port": 8080}


@pytest.mark.parametrize("wrong", [[], [PORT, {"container_port": 90, "host_port": 9090}]])
def test_ports_of_app_containers_are_mapped(wrong: list[dict[str, int]]) -> None:
    """SANDBOX-14 breaks when a host port is not mapped, or one of an init container is."""
    spec: dict[str, Any] = {
        "containers": [{"name": "c1", "image": "img:1", "ports": [{"containerPort": 80, "hostPort": 8080}]}],
        "initContainers": [
            {"name": "i1", "image": "img:1", "ports": [{"containerPort": 90, "hostPort": 9090}]}
        ],
    }
    assert_asked("SANDBOX-14", {"port_mappings": wrong}, right={"port_mappings": [PORT]}, **spec)


def options(**modes: str) -> dict[str, Any]:
    """The namespace options of a sandbox."""
    return {"linux": {"security_context": {"namespace_options": modes}}}


@pytest.mark.parametrize(
    ("spec", "right", "wrong"),
    [
        ({}, {"pid": "CONTAINER"}, {}),
        ({"shareProcessNamespace": True}, {}, {"pid": "CONTAINER"}),
        ({"hostPID": True}, {"pid": "NODE"}, {"pid": "CONTAINER"}),
        ({"hostNetwork": True}, {"network": "NODE", "pid": "CONTAINER"}, {"pid": "CONTAINER"}),
        ({"hostIPC": True}, {"ipc": "NODE", "pid": "CONTAINER"}, {"pid": "CONTAINER"}),
    ],
)
def test_namespaces(spec: dict[str, Any], right: dict[str, str], wrong: dict[str, str]) -> None:
    """SANDBOX-15 breaks when a namespace is not the one that the spec asks for."""
    assert_asked("SANDBOX-15", options(**wrong), right=options(**right), **spec)


@detects("SANDBOX-16")
def test_default_handler(s: TraceBuilder, *, right: bool) -> None:
    """SANDBOX-16 breaks when a pod without a runtimeClassName gets a handler."""
    config = s.sandbox_config(s.pod())
    s.call("RunPodSandbox", {"config": config, "runtime_handler": "" if right else "other"}, {})


@pytest.mark.parametrize("wrong", ["old sandbox", "unknown sandbox", "stopped", "attempt", "label"])
@detects("SANDBOX-17")
def test_container_is_made_in_the_newest_sandbox(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SANDBOX-17 breaks when a container is made elsewhere, or given another config than its sandbox."""
    web = s.pod()
    old = s.run_sandbox(web)
    s.sandbox_died(old)
    s.stop_sandbox(old)
    new = s.run_sandbox(web, attempt=1)
    if not right and wrong == "old sandbox":
        new = old
    elif not right and wrong == "unknown sandbox":
        new.id = "nobody"
    elif not right and wrong == "stopped":
        s.stop_sandbox(new)
    elif not right and wrong == "attempt":
        new.config = s.sandbox_config(web)
    elif not right:
        new.config = {**new.config, "labels": {}}
    s.run_container(web, new)


@detects("SANDBOX-17")
def test_sysctls_may_be_written_in_either_form(s: TraceBuilder, *, right: bool) -> None:
    """SANDBOX-17 lets the names of sysctls have dots at the sandbox and slashes at its container."""
    web = s.pod()
    forms = {"net.ipv4.conf.eth0/1.rp_filter": "1"}, {"net/ipv4/conf/eth0.1/rp_filter": "1" if right else "2"}
    made, given = ({**s.sandbox_config(web), "linux": {"sysctls": each}} for each in forms)
    sandbox = s.run_sandbox(web, config=made)
    sandbox.config = given
    s.run_container(web, sandbox)


def test_updated_labels_may_differ() -> None:
    """SANDBOX-17 lets the labels of a pod that was updated differ from those its sandbox was run with."""
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    web.manifest["metadata"]["labels"] = {"app": "b"}
    s.set(web)
    sandbox.config = s.sandbox_config(web)
    s.run_container(web, sandbox)

    assert s.judge("SANDBOX-17").verdict is Verdict.KEPT
