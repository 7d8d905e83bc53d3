"""Any kubelet in a process as a target: its process led, its pods watched, nothing left behind."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kubelet_bench import bench_in
from on_loop import on_loop

from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.containerd.host import mounts_below
from kubelet_conformance.targets.controls import MANIFEST_URL, Fault, KubeletEndedError, NotPossibleError
from kubelet_conformance.targets.in_process.manifests import RootedDisk
from kubelet_conformance.targets.kubelet_target.target import KubeletTarget
from kubelet_conformance.targets.kubelet_target.target_file import reference_process
from kubelet_conformance.targets.process.child import Child
from kubelet_conformance.targets.process.cleanup import clear
from kubelet_conformance.targets.process.machine.priority import NICENESS, coming_first
from kubelet_conformance.targets.process.mount_namespace import can_isolate, slow_look_ups
from kubelet_conformance.targets.process.node import ProcessNode
from kubelet_conformance.targets.process.pod_watch import event_fields
from kubelet_fakes.clock import LoopClock
from kubelet_reference.server.host.disk import OsDisk

Json = dict[str, Any]
SPEC: Json = {"containers": [{"name": "app", "image": "img:1", "command": ["run"]}]}
#: A kubelet that answers /healthz, and ends when it is asked to unless it is stubborn. A file may make it
#: sick when it is started again.
STUB = """
import http.server, os, signal, subprocess, sys, threading
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if sick else 200); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *_): pass
marks = [each for each in sys.argv if each.endswith("started-before")]
sick = any(map(os.path.exists, marks))
for each in marks: open(each, "w").close()
if "stubborn" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "parent" in sys.argv:
    child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
    print("child", child.pid, flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""


def python(script: str, *arguments: str, **more: Any) -> KubeletTarget:
    """A target whose kubelet is this script."""
    command = ("{python}", "-S", "-c", script, "{healthz_port}", *arguments)
    more.setdefault("capabilities", frozenset({"restart"}))
    return KubeletTarget(command=command, name="odd", **more)


AT_URL = 'staticPodURL: "{url}"\nhttpCheckFrequency: 100ms\n'


@pytest.mark.slow
@pytest.mark.parametrize(("pods", "config"), [("folder", ""), ("url", AT_URL)])
@on_loop
async def test_reference_process_lives_and_leaves_nothing(tmp_path: Path, pods: Any, config: str) -> None:
    """Pods come and go in a folder or at a URL, all is seen; it is killed and started; all is cleared."""
    async with bench_in(tmp_path) as bench:
        target = reference_process()
        async with bench.node(replace(target, pods=pods, config=target.config + config)) as node:
            await node.kubelet.start()
            stored = node.api.create({"metadata": {"name": "web", "labels": {"a": "b"}}, "spec": SPEC})
            await bench.until(lambda: "Running" in bench.phases())
            shown = node.api.get("default", "web-node-1") or {}
            metrics, healthy = await node.kubelet.metrics(), await node.kubelet.healthy()
            await node.kubelet.kill()
            await node.kubelet.start()
            node.api.update("default", "web-node-1", {"metadata": {"labels": {"a": None, "c": "d"}}})
            node.api.delete("default", "web-node-1")
            await bench.until(lambda: any(each["reason"] == "Killing" for each in bench.items("event")))
            await node.kubelet.stop()

        updated = [each["pod"] for each in bench.items("pod") if each["op"] == "set"][-1]
        assert stored["metadata"]["name"] == "web-node-1"
        assert shown["metadata"]["uid"] == stored["metadata"]["uid"] == bench.items("status")[0]["uid"]
        assert ("kubelet_running_pods 1.0" in metrics, healthy) == (True, True)
        assert updated["metadata"]["labels"] == {"c": "d"}
        assert [each["op"] for each in bench.items("pod")] == ["set", "set", "remove"]
        assert [each["op"] for each in bench.items("kubelet")] == ["started", "killed", "started", "stopped"]
        assert {"Pulled", "Created", "Started"} <= {each["reason"] for each in bench.items("event")}
        assert bench.machine.runtime.count("RunPodSandbox") == 1
        assert list(bench.folder.iterdir()) == []


@pytest.mark.slow
@on_loop
async def test_settings_and_the_manifest_url(tmp_path: Path) -> None:
    """What a scenario sets goes into the configuration; the manifest URL is served, and can break off."""
    async with bench_in(tmp_path) as bench:
        target = replace(reference_process(), feature_gates={"Flagged": True})
        gates = {"SidecarContainers": True}
        node = bench.node(target, static_pod_url=MANIFEST_URL, http_check_frequency=0.1, feature_gates=gates)
        async with node:
            node.manifests.serve(0, "")
            await node.kubelet.start()
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "far"}, "spec": SPEC}
            node.manifests.serve(200, json.dumps(pod))
            await bench.until(lambda: "Running" in bench.phases())

        assert bench.items("pod")[0]["source"] == "http"
        assert (node.configuration or {})["httpCheckFrequency"] == "0.1s"
        assert node.feature_gates == {"Flagged": True, **gates}
        assert not node.kubelet.running


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            python("import sys; print('no luck'); sys.exit(3)"),
            "odd ended with code 3 before it was ready; it wrote:\n  no luck",
        ),
        (python("import os; os.kill(os.getpid(), 9)"), "odd ended with signal SIGKILL before it was ready"),
        (
            python("import threading; threading.Event().wait()", start_seconds=0.2),
            "odd was not ready in 0.2 s: http://127.0.0.1:",
        ),
        (KubeletTarget(command=("/no/such",)), "kubelet: /no/such: there is no such program"),
    ],
    ids=["ends", "dies", "hangs", "absent"],
)
@on_loop
async def test_kubelet_that_does_not_start(tmp_path: Path, target: KubeletTarget, said: str) -> None:
    """The error says what became of it and what it wrote; nothing runs on, nothing is left."""
    async with bench_in(tmp_path) as bench:
        async with bench.node(target) as node:
            with pytest.raises(TargetError) as caught:
                await node.kubelet.start()
            running = node.kubelet.running

        assert said in str(caught.value)
        assert not running
        assert list(bench.folder.iterdir()) == []


@on_loop
async def test_kubelet_that_is_started_again_may_be_kept_from_being_ready(tmp_path: Path) -> None:
    """A fault may hold it up, so that the scenario goes on, with what it expects."""
    async with bench_in(tmp_path) as bench:
        mark = str(tmp_path / "started-before")
        async with bench.node(python(STUB, mark, start_seconds=2)) as node:
            await node.kubelet.start()
            await node.kubelet.stop()
            await node.kubelet.start()
            state = node.kubelet.running, await node.kubelet.healthy()

        assert state == (True, False)
        assert [each["op"] for each in bench.items("kubelet")] == ["started", "stopped", "started", "killed"]


@on_loop
async def test_kubelet_that_does_not_end_is_killed(tmp_path: Path) -> None:
    """One that ignores SIGTERM is killed after its time, and that is an error."""
    async with bench_in(tmp_path) as bench:
        async with bench.node(python(STUB, "stubborn", stop_seconds=0.1)) as node:
            await node.kubelet.start()
            with pytest.raises(TargetError, match=r"odd did not end in 0\.1 s after SIGTERM"):
                await node.kubelet.stop()

        assert [each["op"] for each in bench.items("kubelet")] == ["started", "killed"]


@on_loop
async def test_kubelet_that_ends_by_itself_is_noticed(tmp_path: Path) -> None:
    """Its end ends the wait for it, and is reported with how it came."""
    async with bench_in(tmp_path) as bench, bench.node(python(STUB)) as node:
        await node.kubelet.start()
        node.kubelet.raise_if_failed()
        os.kill(node.kubelet.pid, signal.SIGTERM)
        await node.kubelet.died.wait()
        with pytest.raises(KubeletEndedError, match="odd ended by itself with signal SIGTERM"):
            node.kubelet.raise_if_failed()
        await node.kubelet.kill()

        assert node.kubelet.died.is_set()
        assert [each["op"] for each in bench.items("kubelet")] == ["started", "ended"]
        assert bench.items("kubelet")[1]["signal"] == "SIGTERM"


@on_loop
async def test_what_it_started_goes_with_it(tmp_path: Path) -> None:
    """A kubelet's own children are killed with it, however it ends."""
    async with bench_in(tmp_path) as bench:
        reported: list[bytes] = []
        async with bench.node(python(STUB, "parent")) as node:
            node.kubelet.on_line.append(reported.append)
            await node.kubelet.start()
            child = os.pidfd_open(int(reported[0].split()[1]))
            assert select.select([child], [], [], 0)[0] == []
            await node.kubelet.stop()
    # The kernel takes a moment to end what was killed.
    assert select.select([child], [], [], 40)[0] == [child]
    os.close(child)


#: Starts a child, and says its number once the child is up.
PARENT = """
import asyncio, sys
from kubelet_conformance.targets.process.child import Child
WAITS = "import threading; print('up', flush=True); threading.Event().wait()"
async def main():
    child = Child([sys.executable, "-c", WAITS], {}, lambda line: print(child.pid, flush=True))
    await child.ended()
asyncio.run(main())
"""


def test_child_dies_with_us() -> None:
    """A kubelet does not outlive the process that started it, even if that is killed."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        handle = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()

    async def ended() -> None:
        gone = asyncio.Event()
        asyncio.get_running_loop().add_reader(handle, gone.set)
        async with asyncio.timeout(40):
            await gone.wait()
        os.close(handle)

    asyncio.run(ended())


@on_loop
async def test_what_a_kubelet_cannot_do_is_declared(tmp_path: Path) -> None:
    """What needs an API server, or a capability it lacks, is refused with what is missing."""
    async with bench_in(tmp_path) as bench:
        node = bench.node(python(STUB, capabilities=frozenset({"statuses"})))
        async with node:
            await node.kubelet.start()
            await node.kubelet.kill()
            api = node.api
            api.create({"metadata": {"name": "web"}, "spec": SPEC})
            for refused, said in (
                (lambda: api.create({"metadata": {"name": "web"}, "spec": SPEC}), "web is there already"),
                (lambda: api.delete("default", "web", 0), "cannot be removed with a grace period"),
                (lambda: api.delete("default", "other"), "was not created here"),
                (lambda: api.update_status("default", "web", {}), "other writers of statuses"),
                (lambda: api.add_ephemeral("default", "web", {}), "ephemeral containers"),
                (lambda: api.put("Secret", {}), "objects of kind Secret"),
                (lambda: api.remove("Secret", "default", "a"), "objects of kind Secret"),
                (lambda: api.inject(Fault("*")), "an outage of it"),
                (api.tolerate, "objects that are not valid"),
                (lambda: api.inject(Fault("patch pods")), "requests to it that fail"),
            ):
                with pytest.raises(NotPossibleError, match=said):
                    refused()
            with pytest.raises(NotPossibleError, match="serves metrics"):
                await node.kubelet.metrics()
            api.delete("default", "web")
            with pytest.raises(NotPossibleError, match="the status of a deleted pod"):
                api.get("default", "web-node-1")
            with pytest.raises(NotPossibleError, match="may be restarted"):
                await node.kubelet.start()

        assert (node.channels.pods, node.channels.api, node.channels.events) == ("sent", "served", "none")


@on_loop
async def test_settings_that_cannot_be_set(tmp_path: Path) -> None:
    """A setting without a field, and a kubelet without a configuration, make a scenario not applicable."""
    async with bench_in(tmp_path) as bench:
        with pytest.raises(NotPossibleError, match="whose node_ip can be set"):
            await bench.node(reference_process(), node_ip="10.0.0.9").__aenter__()
        with pytest.raises(NotPossibleError, match="with a configuration file: max_pods"):
            await bench.node(python(STUB), max_pods=1).__aenter__()
        with pytest.raises(NotPossibleError, match="reads manifests from a URL"):
            await bench.node(python(STUB), static_pod_url=MANIFEST_URL).__aenter__()


def test_events_of_a_log() -> None:
    """A kubelet's line about an event is read with its quotes; other lines are none."""
    line = (
        'I1121 06:00:00.000000      42 event.go:389] "Event occurred" object="default/web-n" fieldPath="" '
        'kind="Pod" apiVersion="v1" type="Warning" reason="Failed" message="Error: \\"x\\" \\n y\\xff"'
    )
    found = event_fields(line)

    assert found is not None
    assert (found["object"], found["reason"], found["type"]) == ("default/web-n", "Failed", "Warning")
    assert found["message"] == 'Error: \\"x\\" \\n y\\xff'
    assert event_fields("I1121 06:00:00.000000 1 a.go:1] Started") is None


def test_clearing_an_empty_folder(tmp_path: Path) -> None:
    """Where nothing was made nothing is to be cleared; links are removed, not followed."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "kept")

    assert clear(tmp_path, ("link", "absent")) == []
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "file").exists()
    assert mounts_below(tmp_path) == ()


@on_loop
async def test_lines_of_a_child_arrive_whole() -> None:
    """What a child writes is read line by line, the last one too if it lacks its end."""
    lines: list[bytes] = []
    child = Child([sys.executable, "-S", "-c", "print('a'); print('b' * 70000, end='')"], {}, lines.append)
    code = await child.ended()
    child.kill()

    assert (code, [len(line) for line in lines]) == (0, [1, 70000])


@on_loop
async def test_kubelets_come_after_what_serves_them() -> None:
    """While kubelets are served this process goes first, if that is permitted; a child is as nice as ever."""
    with coming_first():
        own = os.nice(0)
        child = Child(["sleep", "60"], {}, lambda _: None)
        of_child = os.getpriority(os.PRIO_PROCESS, child.pid)
        child.kill()

    assert of_child == NICENESS == os.nice(0)
    assert own == NICENESS - 5 or os.geteuid() != 0


def test_single_manifest_is_written_in_place(tmp_path: Path) -> None:
    """A kubelet that watches one file sees it change; any other file is replaced as a whole."""
    disk = RootedDisk(OsDisk(LoopClock(0)), tmp_path, in_place="/only.yaml")
    before: dict[str, int] = {}
    for file in ("only.yaml", "other.yaml"):
        disk.write(f"/{file}", b"old")
        before[file] = (tmp_path / file).stat().st_ino
        disk.write(f"/{file}", b"new")

    assert [(tmp_path / file).read_bytes() for file in before] == [b"new"] * 2
    assert (tmp_path / "only.yaml").stat().st_ino == before["only.yaml"]
    assert (tmp_path / "other.yaml").stat().st_ino != before["other.yaml"]


@pytest.mark.slow
@on_loop
async def test_isolated_node_has_its_own_hosts_and_state(tmp_path: Path) -> None:
    """Its kubelet knows the node's name, and what it writes to folders of all kubelets goes with the node."""
    hosts = "print(open('/etc/hosts').readline(), flush=True)"
    paths = "/var/lib/kubelet", "/var/log/pods", "/usr/libexec/kubernetes/kubelet-plugins"
    folders = list(map(Path, paths))
    writes = [f"open('{each}/trace', 'w').close()" for each in folders]
    script = f"{'; '.join([hosts, *writes])}{STUB}"
    before = [each.exists() for each in folders]
    async with bench_in(tmp_path) as bench:
        written: list[bytes] = []
        node = ProcessNode(python(script), bench.folder, bench.machine.socket, bench.recorder, isolated=True)
        async with node:
            if not node.kubelet.prefix:
                pytest.skip("no mount namespace can be made here")
            node.kubelet.on_line.append(written.append)
            await node.kubelet.start()
            await node.kubelet.stop()
            assert (node.root / "var/log/pods/trace").exists()
        can = await can_isolate("node-1")

        assert written[0] == b"127.0.0.1 node-1"
        assert [each.exists() for each in folders] == before
        assert not any((each / "trace").exists() for each in folders)
        assert list(bench.folder.iterdir()) == []
        assert can
        assert await slow_look_ups("localhost") == ""
        assert "put 127.0.0.1 no-such" in await slow_look_ups("no-such-node.invalid")
