"""Starting a container: the reason of each failing step, hooks, instance numbers, and its config."""

from typing import Any

import pytest
from on_loop import run_by
from runtime_world import RuntimeWorld, a_container, a_pod, in_runtime_world

from kubelet_reference.api import names
from kubelet_reference.api.sync_result import Failure


def _hook(*command: str) -> dict[str, Any]:
    return {"exec": {"command": list(command)}}


@pytest.mark.parametrize(
    ("rpc", "reason"),
    [("CreateContainer", Failure.CREATE_CONTAINER), ("StartContainer", Failure.RUN_CONTAINER)],
)
@run_by(in_runtime_world)
async def test_failed_step(w: RuntimeWorld, rpc: str, reason: Failure) -> None:
    """Each step has its reason, and the runtime's own words (START-02, START-03)."""
    w.runtime.faults.add(rpc, times=1)

    result = await w.sync(a_pod())

    assert [(one.reason, one.message) for one in result.failures] == [(reason, "injected")]
    assert w.events("Failed") == ["Error: injected"]


@run_by(in_runtime_world)
async def test_failed_post_start(w: RuntimeWorld) -> None:
    """The container is stopped gracefully, its preStop hook first; the message tells why (HOOK-03)."""
    hooks = {"postStart": _hook("x", "1", "0.5"), "preStop": _hook("x", "0", "0.5")}
    pod = a_pod(a_container("c1", lifecycle=hooks), terminationGracePeriodSeconds=5)

    result = await w.sync(pod)

    assert w.done[3:] == ["ExecSync c1#0 x 1 0.5", "ExecSync c1#0 x 0 0.5", "StopContainer c1#0 5"]
    assert w.events("FailedPostStartHook", "Killing") == ["PostStartHook failed", "FailedPostStartHook"]
    (failure,) = result.failures
    assert failure.reason is Failure.POST_START_HOOK
    assert failure.message.startswith(
        'Exec lifecycle hook ([x 1 0.5]) for Container "c1" in Pod "web_default(u1)" failed - error: '
        "command 'x 1 0.5' exited with 1: , message: "
    )


@run_by(in_runtime_world)
async def test_number_from_the_logs(w: RuntimeWorld) -> None:
    """Without any record the highest log tells the number (RESTART-14)."""
    folder = "/var/log/pods/default_web_u1/c1"
    w.disk.make_folder(folder)
    for name in ("0.log", "6.log", "6.log.20260101", "old-9.log", "x"):
        w.disk.write(f"{folder}/{name}", b"")

    await w.sync(a_pod())

    config = w.calls("CreateContainer")[0].request.config
    assert config.metadata.attempt == 7
    assert config.annotations[names.CONTAINER_RESTART_COUNT] == "7"
    assert config.log_path == "c1/7.log"


@run_by(in_runtime_world, version="1.26")
async def test_old_kubelets_misread_logs(w: RuntimeWorld) -> None:
    """Up to 1.26 a foreign file counted too (RESTART-15)."""
    w.disk.make_folder("/var/log/pods/default_web_u1/c1")
    w.disk.write("/var/log/pods/default_web_u1/c1/old-9.log", b"")

    await w.sync(a_pod())

    assert w.done[1] == "CreateContainer c1#10"


@run_by(in_runtime_world)
async def test_config(w: RuntimeWorld) -> None:
    """The request has what a real kubelet's has (START-05, START-07, START-14, IMAGE-16, SANDBOX-17)."""
    hook = {"preStop": _hook("x", "0", "0")}
    ports = [{"containerPort": 80, "name": "http", "protocol": "TCP"}]
    pod = a_pod(a_container("c1", lifecycle=hook, ports=ports), metadata={"labels": {"app": "web"}})

    await w.sync(pod)

    request = w.calls("CreateContainer")[0].request
    config = request.config
    assert config.image.image.startswith("sha256:")
    assert config.image.user_specified_image == "img:1"
    assert dict(config.labels) == {
        names.POD_NAME: "web",
        names.POD_NAMESPACE: "default",
        names.POD_UID: "u1",
        names.CONTAINER_NAME: "c1",
    }
    assert dict(config.annotations) == {
        names.CONTAINER_HASH: config.annotations[names.CONTAINER_HASH],
        names.CONTAINER_RESTART_COUNT: "0",
        names.TERMINATION_MESSAGE_PATH: "/dev/termination-log",
        names.TERMINATION_MESSAGE_POLICY: "File",
        names.POD_GRACE: "30",
        names.CONTAINER_PRE_STOP: '{"exec":{"command":["x","0","0"]}}',
        names.CONTAINER_PORTS: '[{"containerPort":80,"name":"http","protocol":"TCP"}]',
    }
    assert request.sandbox_config == w.calls("RunPodSandbox")[0].request.config
    assert config.linux.resources.oom_score_adj == 1000
    assert config.linux.security_context.HasField("run_as_user")


@run_by(in_runtime_world)
async def test_fresh_message_file(w: RuntimeWorld) -> None:
    """Each instance has an empty file of its own for its last words, and a hosts file (START-08, 10)."""
    pod = a_pod(hostAliases=[{"ip": "10.1.2.3", "hostnames": ["a", "b"]}])
    await w.sync(pod)
    await w.exits(pod, "c1", 1)
    await w.manager.sync_pod(pod, await w.records(pod))

    mounts = [
        {m.container_path: m.host_path for m in call.request.config.mounts}
        for call in w.calls("CreateContainer")
    ]
    assert mounts[0]["/dev/termination-log"] != mounts[1]["/dev/termination-log"]
    assert w.disk.read(mounts[1]["/dev/termination-log"]) == b""
    hosts = w.disk.read(mounts[0]["/etc/hosts"]).decode().splitlines()
    assert hosts[-2:] == ["10.88.0.2\tweb", "10.1.2.3\ta\tb"]


@pytest.mark.parametrize(
    "fields",
    [
        {"envFrom": [{"configMapRef": {"name": "missing"}}]},
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "missing", "key": "k"}}}]},
        {"volumeMounts": [{"name": "missing", "mountPath": "/data"}]},
        {"securityContext": {"runAsNonRoot": True}},
    ],
    ids=["config map", "secret", "volume", "root"],
)
@run_by(in_runtime_world)
async def test_impossible_config(w: RuntimeWorld, fields: dict[str, Any]) -> None:
    """What the spec refers to and is not there fails the config, not the kubelet (START-09, IMAGE-22)."""
    result = await w.sync(a_pod(a_container("c1", **fields)))

    assert [one.reason for one in result.failures] == [Failure.CONTAINER_CONFIG]
    assert w.done == ["RunPodSandbox #0"]


@run_by(in_runtime_world)
async def test_unreadable_image_fails_the_config(w: RuntimeWorld) -> None:
    """The second look at the image must find it (IMAGE-24)."""
    w.runtime.faults.add("ImageStatus#2")

    result = await w.sync(a_pod())

    assert [one.reason for one in result.failures] == [Failure.CONTAINER_CONFIG]


@run_by(in_runtime_world)
async def test_missing_target(w: RuntimeWorld) -> None:
    """An ephemeral container whose target has never run has no config (EPH-07)."""
    await w.sync(a_pod())
    pod = a_pod(ephemeralContainers=[a_container("dbg", targetContainerName="nobody")])

    result = await w.sync(pod)

    assert [one.message for one in result.failures] == ["unable to find target container nobody"]


@run_by(in_runtime_world, version="1.26")
async def test_old_kubelets_name_the_image_once(w: RuntimeWorld) -> None:
    """Up to 1.27 the user's name of the image was not sent (IMAGE-16)."""
    await w.sync(a_pod())

    assert w.calls("CreateContainer")[0].request.config.image.user_specified_image == ""


@run_by(in_runtime_world)
async def test_last_words(w: RuntimeWorld) -> None:
    """The termination message file tells in the record why the container ended (START-11)."""
    pod = a_pod()
    await w.sync(pod)
    (path,) = [
        mount.host_path
        for mount in w.calls("CreateContainer")[0].request.config.mounts
        if mount.container_path == "/dev/termination-log"
    ]
    w.disk.write(path, b"out of coffee")
    await w.exits(pod, "c1", 3)

    assert (await w.newest(pod, "c1")).message.endswith("out of coffee")
