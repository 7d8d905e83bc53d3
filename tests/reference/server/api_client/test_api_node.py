"""A kubelet that knows its API server by a kubeconfig: what it does there over HTTP, from pods to leases."""

from pathlib import Path

from api_node import ApiNode, api_node
from kubelet_world import MANIFESTS, NODE, manifest
from loopback_time import on_loopback

from kubelet_fakes.api.errors import gone

ENV = [
    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "a"}}},
    {"name": "S", "valueFrom": {"secretKeyRef": {"name": "se", "key": "s"}}},
]


@on_loopback
async def test_pod_runs_and_ends(tmp_path: Path) -> None:
    """A pod that is bound to the node runs, its status comes by patch after a read, and deletion ends it."""
    async with api_node(tmp_path) as node:
        node.create()
        await node.until_phase("Running")
        (read, patch) = [one for one in node.requests if " pods" in one][-2:]
        status = node.found("pods", "web")["status"]
        node.core.delete("pods", "web")
        await node.until_phase("gone")

        assert (read, patch) == ("get pods web", "patch pods/status web")
        assert (status["hostIP"], status["containerStatuses"][0]["ready"]) == ("10.0.0.1", True)
        assert node.calls.count("StartContainer") == node.calls.count("StopContainer") == 1
        assert [one for one in node.requests if one.startswith("delete")] == ["delete pods web"]


@on_loopback
async def test_node_is_registered_and_kept(tmp_path: Path) -> None:
    """The node is created and ready at once, and renews its lease; nothing else is written for nothing."""
    async with api_node(tmp_path) as node:
        await node.until(lambda: node.requests.count(f"update leases {NODE}") == 3)
        ready = node.found("nodes", NODE)["status"]["conditions"][-1]

        assert (ready["type"], ready["status"]) == ("Ready", "True")
        assert node.requests.count(f"patch nodes/status {NODE}") == 1
        assert node.found("csinodes", NODE)["metadata"]["ownerReferences"][0]["kind"] == "Node"
        assert node.found("leases", NODE)["spec"]["holderIdentity"] == NODE


@on_loopback
async def test_next_life_takes_over(tmp_path: Path) -> None:
    """A kubelet that starts again finds its node, its lease and its pods, and makes nothing twice."""
    node = ApiNode(tmp_path)
    async with node.server:
        async with node.kubelet():
            node.create()
            await node.until_phase("Running")
        node.connection.break_watches()
        async with node.kubelet():
            await node.until(lambda: "create nodes 409" in node.requests)
            await node.until(lambda: node.requests.count(f"update leases {NODE}") == 1)
            node.core.delete("pods", "web")
            await node.until_phase("gone")

    assert node.calls.count("StartContainer") == node.calls.count("StopContainer") == 1
    assert node.requests.count("list pods") == 2


@on_loopback
async def test_static_pod_has_a_mirror(tmp_path: Path) -> None:
    """A mirror that somebody deletes comes back and stops nothing; with its manifest it goes for good."""
    async with api_node(tmp_path) as node:
        node.write("st")
        await node.until_phase("Running", f"st-{NODE}")
        first = node.found("pods", f"st-{NODE}")["metadata"]
        node.core.delete("pods", f"st-{NODE}")
        await node.until(lambda: node.uid(f"st-{NODE}") not in {"", first["uid"]})
        await node.until_phase("Running", f"st-{NODE}")
        stopped = "StopContainer" in node.calls
        node.disk.remove(f"{MANIFESTS}/st.yaml")
        await node.until_phase("gone", f"st-{NODE}")

        assert first["ownerReferences"][0]["uid"] == node.found("nodes", NODE)["metadata"]["uid"]
        assert not stopped


@on_loopback
async def test_watch_goes_on_where_it_ended(tmp_path: Path) -> None:
    """After a clean end nothing is listed anew; after 410 it is, and what came in between is seen."""
    async with api_node(tmp_path) as node:
        await node.until(lambda: node.server.open_watches == 2)
        await node.clock.sleep(2)
        node.connection.break_watches()
        node.create()
        await node.until_phase("Running")
        lists = node.requests.count("list pods")
        node.connection.break_watches(gone())
        node.create("late")
        node.core.forget_history()
        await node.until_phase("Running", "late")

        assert (lists, node.requests.count("list pods")) == (1, 2)


@on_loopback
async def test_outage(tmp_path: Path) -> None:
    """While the server is away pods run on and what exits is restarted; their statuses come later."""
    async with api_node(tmp_path) as node:
        node.create()
        node.create("again", command="exit 1 15")
        await node.until_phase("Running")
        await node.until_phase("Running", "again")
        with node.connection.outage():
            await node.clock.sleep(20)
            started = node.calls.count("StartContainer")
        lists = node.requests.count("list pods")
        await node.until(
            lambda: node.found("pods", "again")["status"]["containerStatuses"][0]["restartCount"] == 1
        )
        node.core.delete("pods", "web")
        await node.until_phase("gone")

        assert started == 3
        assert node.requests.count("list pods") == lists
        assert node.requests.count("create nodes") == 1


@on_loopback
async def test_refused_for_a_while(tmp_path: Path) -> None:
    """Requests that fail are sent again: the registration, the list of pods, and the status of a pod."""
    async with api_node(tmp_path) as node:
        with node.connection.faults.add("* before 503", times=12) as fault:
            node.create()
            await node.until_phase("Running")

        assert fault.applied == 12


@on_loopback
async def test_objects_are_watched_while_pods_need_them(tmp_path: Path) -> None:
    """Each config map and secret has one watch for all pods; a change is shown, and the last pod ends it."""
    async with api_node(tmp_path) as node:
        node.core.create("configmaps", {"metadata": {"name": "cm"}, "data": {"a": "1"}})
        node.core.create("secrets", {"metadata": {"name": "se"}, "data": {"s": "eA=="}})
        await node.until(lambda: node.server.open_watches == 2)
        volumes = [{"name": "v", "configMap": {"name": "cm"}}]
        container = {**manifest()["spec"]["containers"][0], "env": ENV}
        container["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
        node.create(containers=[container], volumes=volumes)
        node.create("other", containers=[container], volumes=volumes)
        await node.until_phase("Running")
        await node.until_phase("Running", "other")
        watches = node.server.open_watches
        uid = node.uid("web")
        node.core.patch("configmaps", "cm", {"data": {"a": "2"}})
        await node.clock.sleep(100)
        folder = f"/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~configmap/v"
        shown = node.disk.read(f"{folder}/{node.disk.link_target(f'{folder}/..data')}/a")
        for name in ("web", "other"):
            node.core.delete("pods", name)
            await node.until_phase("gone", name)
        await node.until(lambda: node.server.open_watches == 2)

        assert watches == 4
        assert shown == b"2"
        assert node.requests.count("list configmaps") == node.requests.count("list secrets") == 1
        assert "get configmaps cm" not in node.requests


@on_loopback
async def test_token_of_a_service_account(tmp_path: Path) -> None:
    """A projected token is asked for once, bound to the pod, and renewed before it expires."""
    async with api_node(tmp_path) as node:
        node.core.create("serviceaccounts", {"metadata": {"name": "robot"}})
        source = {"serviceAccountToken": {"path": "t", "expirationSeconds": 600, "audience": "vault"}}
        container = {
            **manifest()["spec"]["containers"][0],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }
        volumes = [{"name": "v", "projected": {"sources": [source]}}]
        node.create(containers=[container], volumes=volumes, serviceAccountName="robot")
        await node.until_phase("Running")
        asked = [one for one in node.requests if "token" in one]
        await node.until(lambda: node.requests.count("create serviceaccounts/token robot") == 2)
        moment = node.clock.monotonic()

        assert asked == ["create serviceaccounts/token robot"]
        assert 400 < moment < 600
