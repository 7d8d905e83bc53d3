"""A kubelet in a process with an API server of its own: what it writes is recorded, what it lacks is told."""

from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from kubelet_bench import Bench, bench_in
from on_loop import on_loop

from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.kubelet_target.target import KubeletTarget
from kubelet_conformance.targets.process.served_api import ServedApi
from kubelet_conformance.trace.format.recorder import Recorder

#: A kubelet that is healthy, and says what its arguments are for.
KUBELET = """
import http.server, json, sys, threading, urllib.request, yaml
port, kubeconfig, node, does = sys.argv[1:]
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *_): pass
server = yaml.safe_load(open(kubeconfig))["clusters"][0]["cluster"]["server"]
if does == "without-token": server = server.rpartition("/")[0]
def ask(method, path, body, kind="application/json"):
    data, headers = json.dumps(body).encode(), {"Content-Type": kind}
    request = urllib.request.Request(server + path, data, headers, method=method)
    return json.load(urllib.request.urlopen(request))
def live():
    if does == "protobuf": ask("POST", "/api/v1/nodes", {}, "application/vnd.kubernetes.protobuf")
    ready = [{"type": "Ready", "status": "True"}]
    ask("POST", "/api/v1/nodes", {"metadata": {"name": node}, "status": {"conditions": ready}})
    ask("PATCH", "/api/v1/nodes/" + node + "/status", {"status": {"conditions": ready}}, MERGE)
    watch = urllib.request.urlopen(server + "/api/v1/pods?watch=true&fieldSelector=spec.nodeName=" + node)
    pod = json.loads(watch.readline())["object"]["metadata"]
    path = "/api/v1/namespaces/" + pod["namespace"]
    status = {"metadata": {"uid": pod["uid"]}, "status": {"phase": "Running"}}
    ask("PATCH", path + "/pods/" + pod["name"] + "/status", status, MERGE)
    about = {"kind": "Pod", **{name: pod[name] for name in ("namespace", "name", "uid")}}
    event = {"metadata": {"name": "e1"}, "involvedObject": about, "reason": "Pulled", "count": 1}
    ask("POST", path + "/events", event)
    ask("PATCH", path + "/events/e1", {"count": 3}, MERGE)
MERGE = "application/strategic-merge-patch+json"
if does != "nothing": threading.Thread(target=live, daemon=True).start()
http.server.HTTPServer(("127.0.0.1", int(port)), Answers).serve_forever()
"""


def kubelet(does: str, **more: Any) -> KubeletTarget:
    """A target whose kubelet does this."""
    command = ("{python}", "-c", KUBELET, "{healthz_port}", "{kubeconfig}", "{node}", does)
    return KubeletTarget(command=command, name="odd", pods="api", **more)


@pytest.mark.slow
@on_loop
async def test_what_a_kubelet_writes_is_recorded(tmp_path: Path) -> None:
    """Pods come over the API; statuses and events are as it wrote them; nothing is left."""
    async with bench_in(tmp_path) as bench:
        async with bench.node(kubelet("all")) as node:
            await node.kubelet.start()
            spec = {"containers": [{"name": "app", "image": "img:1"}]}
            node.api.create({"metadata": {"name": "web"}, "spec": spec})
            await bench.until(lambda: len(bench.items("event")) > 1)
            stored = node.api.get("default", "web") or {}
            channels, is_alone = node.channels, node.standalone

        assert stored["status"]["phase"] == "Running"
        assert bench.phases() == ["Running"]
        assert [each["count"] for each in bench.items("event")] == [1, 2]
        assert {each["uid"] for each in bench.items("event")} == {stored["metadata"]["uid"]}
        assert [each["verb"] for each in bench.items("api")] == ["patch"]
        assert (channels.api, channels.events, is_alone) == ("full", "full", False)
        assert list(bench.folder.iterdir()) == []


async def refused(bench: Bench, does: str) -> str:
    """Why that kubelet is not ready."""
    async with bench.node(kubelet(does, start_seconds=4)) as node:
        with pytest.raises(TargetError) as caught:
            await node.kubelet.start()
    return str(caught.value).partition("; it wrote")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("nothing", "it asks nothing of it; start it with --kubeconfig={kubeconfig}"),
        ("without-token", "its requests show no token; start it with --kubeconfig={kubeconfig}"),
        ("protobuf", "`contentType: application/json` in its KubeletConfiguration"),
    ],
)
@on_loop
async def test_a_kubelet_that_does_not_register(tmp_path: Path, does: str, why: str) -> None:
    """The error says what it lacks and what to do; nothing is left."""
    async with bench_in(tmp_path) as bench:
        said = await refused(bench, does)

        assert said.startswith("odd was not ready in 4 s: it does not register node node-1 at its API server")
        assert why in said
        assert list(bench.folder.iterdir()) == []


@pytest.mark.slow
@on_loop
async def test_a_scenario_may_do_without(tmp_path: Path) -> None:
    """Where a scenario wants no API server the kubelet is not told of one, and pods are files."""
    script = "import sys; print('told', sys.argv[1:]); sys.exit(3)"
    target = KubeletTarget(("{python}", "-c", script, "--kubeconfig={kubeconfig}", "--v=2"), pods="api")
    async with bench_in(tmp_path) as bench, bench.node(target, with_api_server=False) as node:
        with pytest.raises(TargetError) as caught:
            await node.kubelet.start()

        assert "told ['--v=2']" in str(caught.value)
        assert node.standalone
        assert node.api.create({"metadata": {"name": "web"}, "spec": {}})["metadata"]["name"] == "web-node-1"


@on_loop
async def test_a_node_has_to_be_ready_once() -> None:
    """A kubelet that is started again is not waited for until its node is ready: a fault may forbid that."""
    async with ServedApi(Recorder(lambda: 0.0), "node-1", (1, 32)) as served:
        config = msgspec.yaml.decode(served.kubeconfig)
        server = config["clusters"][0]["cluster"]["server"]
        token = config["users"][0]["user"]["token"]
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as kubelet:

            async def says(method: str, path: str, **ready: str) -> str:
                status = {"conditions": [{"type": "Ready", **ready}]}
                node = {"metadata": {"name": "node-1"}, "status": status}
                async with kubelet.request(method, f"{server}/api/v1/nodes{path}", json=node) as answer:
                    answer.raise_for_status()
                return served.missing()

            before = await says("POST", "", status="False", message="no runtime")
            once = await says("PUT", "/node-1/status", status="True")
            again = await says("PUT", "/node-1/status", status="False", message="no runtime")

    assert before == "report node node-1 as ready: no runtime"
    assert once == again == "watch its pods at its API server"
