"""kubectl on the fake API server: it finds all it asks for."""

import json
from pathlib import Path
from typing import Any

import pytest
from api_world import pod
from kubectl_command import Kubectl
from on_loop import on_loop
from served_api import ServedApi, served_api

Json = dict[str, Any]
MANIFEST = """
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
 "spec": {"containers": [{"name": "app", "image": "img:IMAGE", "command": ["run"]}]}}
---
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
"""


def created(api: ServedApi, **given: Any) -> str:
    """A pod on a node, and an event of it; the pod's UID comes back."""
    uid: str = api.core.create("pods", pod(**given))["metadata"]["uid"]
    about = {"kind": "Pod", "namespace": "default", "name": "web", "uid": uid}
    event = {"metadata": {"name": "web.1"}, "involvedObject": about, "type": "Normal", "reason": "Started"}
    times = {"firstTimestamp": "2026-01-01T12:00:00Z", "lastTimestamp": "2026-01-01T12:00:00Z", "count": 1}
    api.core.create("events", {**event, **times, "message": "Started container app"})
    return uid


@pytest.mark.slow
@on_loop
async def test_apply_patch_and_delete(tmp_path: Path) -> None:
    """Manifests are created, found as they are, and changed; labels, images and patches of three kinds."""
    async with served_api() as api:
        kubectl = Kubectl(api, tmp_path)
        first = await kubectl("apply", "-f-", stdin=MANIFEST.replace("IMAGE", "1"))
        again = await kubectl("apply", "-f-", stdin=MANIFEST.replace("IMAGE", "1"))
        changed = await kubectl("apply", "-f-", stdin=MANIFEST.replace("IMAGE", "2"))
        labelled = await kubectl("label", "pod", "web", "x=y")
        image = '{"spec": {"containers": [{"name": "app", "image": "img:3"}]}}'
        merge = '{"metadata": {"labels": {"app": null}}}'
        operations = '[{"op": "add", "path": "/metadata/labels/z", "value": "1"}]'
        patched = [
            await kubectl("patch", "pod", "web", "-p", image),
            await kubectl("patch", "pod", "web", "--type=merge", "-p", merge),
            await kubectl("patch", "pod", "web", "--type=json", "-p", operations),
        ]
        stored = api.core.get("pods", "web")
        deleted = await kubectl("delete", "pod/web", "configmap/c")
        gone = await kubectl("get", "pod", "web")

    assert first == "pod/web created\nconfigmap/c created"
    assert again == "pod/web unchanged\nconfigmap/c unchanged"
    assert changed == "pod/web configured\nconfigmap/c unchanged"
    assert [labelled, *patched] == ["pod/web labeled", *["pod/web patched"] * 3]
    assert stored["metadata"]["labels"] == {"x": "y", "z": "1"}
    assert stored["spec"]["containers"][0]["image"] == "img:3"
    assert deleted.count("deleted") == 2
    assert gone == 'Error from server (NotFound): pods "web" not found'


@pytest.mark.slow
@on_loop
async def test_server_side_apply(tmp_path: Path) -> None:
    """Manifests are applied by the server: created, left alone, changed, and refused where another owns."""
    async with served_api() as api:
        kubectl = Kubectl(api, tmp_path)
        apply = ("apply", "--server-side", "-f-")
        said = [await kubectl(*apply, stdin=MANIFEST.replace("IMAGE", image)) for image in "112"]
        other = await kubectl(*apply, "--field-manager=other", stdin=MANIFEST.replace("IMAGE", "3"))
        stored = api.core.get("pods", "web")
        before = await kubectl("apply", "-f-", stdin=MANIFEST.replace("IMAGE", "4"))
        after = await kubectl(*apply, "--force-conflicts", stdin=MANIFEST.replace("IMAGE", "5"))

    assert said == ["pod/web serverside-applied\nconfigmap/c serverside-applied"] * 3
    assert 'conflict with "kubectl": .spec.containers[name="app"].image' in other
    assert stored["spec"]["containers"][0]["image"] == "img:2"
    assert "pod/web configured" in before
    assert after.startswith("pod/web serverside-applied")


@pytest.mark.slow
@on_loop
async def test_services_and_long_lists(tmp_path: Path) -> None:
    """A service is shown with its address, its ports are patched by port; lists are read page by page."""
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    async with served_api() as api:
        kubectl = Kubectl(api, tmp_path)
        for number in range(5):
            api.core.create("pods", pod(f"p{number}"))
        api.core.create("services", {"metadata": {"name": "s"}, "spec": {"ports": ports}})
        patched = await kubectl("patch", "svc", "s", "-p", '{"spec": {"ports": [{"port": 81, "name": "c"}]}}')
        shown = await kubectl("get", "all", "--chunk-size=2", "--no-headers")

    assert patched == "service/s patched"
    assert [line.split()[0] for line in shown.splitlines() if line] == [
        *(f"pod/p{number}" for number in range(5)),
        "service/s",
    ]
    assert "service/s ClusterIP 10.96.0.1" in shown


@pytest.mark.slow
@on_loop
async def test_reads(tmp_path: Path) -> None:
    """Tables, descriptions, events, versions and kinds."""
    async with served_api() as api:
        kubectl = Kubectl(api, tmp_path)
        created(api)
        node: Json = {"metadata": {"name": "node-1"}, "status": {"nodeInfo": None}}
        api.core.create("nodes", node)
        pods = await kubectl("get", "pods", "-o", "wide", "--show-labels")
        as_json = json.loads(await kubectl("get", "pod", "web", "-o", "json"))
        nodes = await kubectl("get", "no")
        described = await kubectl("describe", "pod", "web")
        events = await kubectl("events")
        kinds = await kubectl("api-resources", "-o", "name")
        version = await kubectl("version")

    assert pods.splitlines()[0] == (
        "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES LABELS"
    )
    assert pods.splitlines()[1] == "web 0/1 Pending 0 0s <none> node-1 <none> <none> <none>"
    assert as_json["metadata"]["name"] == "web"
    assert nodes.splitlines()[1].startswith("node-1 Unknown <none> 0s")
    assert "Normal Started" in described
    assert "Started container app" in described
    assert events.splitlines()[1].endswith("Normal Started Pod/web Started container app")
    assert {"pods", "leases.coordination.k8s.io", "csinodes.storage.k8s.io"} <= set(kinds.split())
    assert "Server Version: v1." in version


@pytest.mark.slow
@on_loop
async def test_debug(tmp_path: Path) -> None:
    """`debug` adds an ephemeral container with the target that it names."""
    async with served_api() as api:
        created(api)
        await Kubectl(api, tmp_path)(
            "debug", "web", "--image=img:2", "--target=app", "-c", "dbg", "--", "run"
        )
        added = api.core.get("pods", "web")["spec"]["ephemeralContainers"]

    assert [(each["name"], each["image"], each["targetContainerName"]) for each in added] == [
        ("dbg", "img:2", "app")
    ]


@pytest.mark.slow
@on_loop
async def test_watches_and_waits(tmp_path: Path) -> None:
    """`get -w` prints each change, `wait` ends with its condition, and `delete` when the pod is gone."""
    async with served_api() as api:
        kubectl = Kubectl(api, tmp_path)
        uid = created(api)
        watching = await kubectl.start("get", "pods", "-w", "--no-headers")
        waiting = await kubectl.start("wait", "--for=condition=Ready", "pod/web", "--timeout=20s")
        assert watching.stdout is not None
        lines = [await watching.stdout.readline()]
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        api.core.patch("pods", "web", {"status": ready}, subresource="status")
        said, _ = await waiting.communicate()
        deleting = await kubectl.start("delete", "pod", "web")
        lines += [await watching.stdout.readline(), await watching.stdout.readline()]
        api.core.delete("pods", "web", grace_seconds=0, uid=uid)
        await deleting.communicate()
        watching.kill()
        await watching.wait()

    assert said == b"pod/web condition met\n"
    assert [line.split()[2] for line in lines] == [b"Pending", b"Running", b"Terminating"]
    assert deleting.returncode == 0
