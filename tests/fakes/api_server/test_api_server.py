"""The fake API server over HTTP: every answer that kubelets go by, and every way to be refused."""

import asyncio
import contextlib
from typing import Any

import aiohttp
import pytest
import yaml
from api_world import pod
from on_loop import on_loop
from served_api import PODS, Json, event, served_api

from kubelet_fakes.api import ApiStatusError
from kubelet_fakes.api_server import ApiServer, CannotListenError, watch_stream

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODE = {"metadata": {"name": "node-1"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}


@on_loop
async def test_only_with_the_token() -> None:
    """The token is shown as a bearer token or in the path, which is what clients without TLS do; else 401."""
    async with served_api() as api, aiohttp.ClientSession() as stranger:
        config = yaml.safe_load(api.server.kubeconfig())
        url = config["clusters"][0]["cluster"]["server"]
        codes: list[tuple[int, str]] = []
        for each in (api.server.url, f"{api.server.url}/wrong", url):
            async with stranger.get(f"{each}/api/v1/pods") as answer:
                codes.append((answer.status, (await answer.json())["kind"]))
        async with stranger.get(f"{api.server.url}/healthz") as answer:
            health = await answer.text()

        assert codes == [(401, "Status"), (401, "Status"), (200, "PodList")]
        assert config["users"][0]["user"] == {"token": "secret"}
        assert health == "ok"
        assert (await api.ask("GET", "/api/v1/pods"))[0] == 200


@on_loop
async def test_what_a_kubelet_asks_to_register() -> None:
    """Node, CSINode and lease are created once, and changed with their own rules."""
    async with served_api() as api:
        assert (await api.ask("GET", "/api/v1/nodes/node-1"))[0] == 404
        assert (await api.ask("POST", "/api/v1/nodes", NODE))[0] == 201
        code, again = await api.ask("POST", "/api/v1/nodes", NODE)
        assert (code, again["reason"]) == (409, "AlreadyExists")
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        code, node = await api.patch("/api/v1/nodes/node-1/status", ready)
        assert (code, node["status"]["conditions"]) == (200, ready["status"]["conditions"])
        code, csi = await api.ask(
            "POST",
            "/apis/storage.k8s.io/v1/csinodes",
            {"metadata": {"name": "node-1"}, "spec": {"drivers": []}},
        )
        assert (code, csi["kind"], csi["apiVersion"]) == (201, "CSINode", "storage.k8s.io/v1")
        lease = {"metadata": {"name": "node-1"}, "spec": {"renewTime": "2026-01-01T00:00:00.123456Z"}}
        _, made = await api.ask("POST", LEASES, lease)
        assert (await api.ask("PUT", f"{LEASES}/node-1", made))[0] == 200
        made["spec"]["renewTime"] = "2026-01-01T00:00:10.123456Z"
        assert (await api.ask("PUT", f"{LEASES}/node-1", made))[0] == 200
        made["spec"]["renewTime"] = "2026-01-01T00:00:20.123456Z"
        assert (await api.ask("PUT", f"{LEASES}/node-1", made))[1]["reason"] == "Conflict"


@on_loop
async def test_life_of_a_pod() -> None:
    """Created, bound, reported on under its own UID only, deleted with grace, and gone with the last word."""
    async with served_api() as api:
        code, made = await api.ask("POST", PODS, pod(node=""))
        assert (code, made["status"]["phase"]) == (201, "Pending")
        target = {"target": {"kind": "Node", "name": "node-1"}}
        assert (await api.ask("POST", f"{PODS}/web/binding", target))[1]["status"] == "Success"
        uid = made["metadata"]["uid"]
        running = {"metadata": {"uid": uid}, "status": {"phase": "Running"}}
        assert (await api.patch(f"{PODS}/web/status", running))[1]["status"]["phase"] == "Running"
        wrong = {"metadata": {"uid": "xx"}, "status": {}}
        assert (await api.patch(f"{PODS}/web/status", wrong))[0] == 422
        _, dying = await api.ask("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 7})
        assert dying["metadata"]["deletionGracePeriodSeconds"] == 7
        other = {"gracePeriodSeconds": 0, "preconditions": {"uid": "xx"}}
        assert (await api.ask("DELETE", f"{PODS}/web", other))[0] == 409
        own = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        assert (await api.ask("DELETE", f"{PODS}/web", own))[0] == 200
        assert (await api.ask("GET", f"{PODS}/web"))[1]["message"] == 'pods "web" not found'


@on_loop
async def test_subresources_of_a_pod() -> None:
    """Ephemeral containers, sizes, and an eviction, which is a deletion."""
    async with served_api() as api:
        api.core.create("pods", pod())
        debug = {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "img:1"}]}}
        _, debugged = await api.patch(f"{PODS}/web/ephemeralcontainers", debug)
        sizes = {"spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "1"}}}]}}
        _, resized = await api.patch(f"{PODS}/web/resize", sizes)
        evicted = await api.ask(
            "POST", f"{PODS}/web/eviction", {"metadata": {"name": "web"}, "deleteOptions": {}}
        )
        _, last = await api.ask("GET", f"{PODS}/web")

    assert debugged["spec"]["ephemeralContainers"][0]["name"] == "dbg"
    assert resized["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    assert (evicted[0], evicted[1]["status"]) == (201, "Success")
    assert last["metadata"]["deletionGracePeriodSeconds"] == 30


@on_loop
async def test_token_of_a_service_account() -> None:
    """A token comes with the time at which it expires, as long after now as was asked for."""
    body = {
        "spec": {
            "expirationSeconds": 600,
            "audiences": ["a"],
            "boundObjectRef": {"kind": "Pod", "name": "web", "uid": "u"},
        }
    }
    async with served_api() as api:
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        code, made = await api.ask("POST", path, body)
        refused, _ = await api.ask("POST", f"{PODS}/web/token", body)

    assert (code, made["status"]["expirationTimestamp"]) == (201, "2026-01-01T12:10:00Z")
    assert made["status"]["token"].count(".") == 2
    assert refused == 404


@on_loop
async def test_events_of_both_groups_are_one_store() -> None:
    """What is created as an event of one group is seen as one of the other, and repeats are patches."""
    about = {"kind": "Pod", "namespace": "default", "name": "web", "uid": "u"}
    old = {"metadata": {"name": "web.1"}, "involvedObject": about, "reason": "Started", "message": "m"}
    new = {"metadata": {"name": "web.2"}, "regarding": about, "reason": "Pulled", "note": "n"}
    core, group = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
    async with served_api() as api:
        await api.ask("POST", core, old)
        await api.ask("POST", group, new)
        await api.patch(f"{core}/web.1", {"count": 2})
        _, as_core = await api.ask("GET", f"{core}?fieldSelector=involvedObject.name=web,reason!=Started")
        _, as_group = await api.ask("GET", f"{group}/web.1")

    assert [each["message"] for each in as_core["items"]] == ["n"]
    assert (as_group["note"], as_group["regarding"], as_group["deprecatedCount"]) == ("m", about, 2)
    assert as_group["apiVersion"] == "events.k8s.io/v1"


@pytest.mark.slow
@on_loop
async def test_watch_goes_on_from_a_list() -> None:
    """A watch reports what comes after its version, for its node only, and ends after its timeout."""
    async with served_api() as api:
        _, found = await api.ask("GET", "/api/v1/pods?fieldSelector=spec.nodeName=node-1")
        version = found["metadata"]["resourceVersion"]
        begin = {"fieldSelector": "spec.nodeName=node-1", "resourceVersion": version, "timeoutSeconds": "1"}
        async with api.watch("/api/v1/pods", **begin) as watch:
            api.core.create("pods", pod("far", node="node-2"))
            api.core.create("pods", pod())
            added = await event(watch)
            ended = await event(watch)

    assert (added[0], added[1]["metadata"]["name"]) == ("ADDED", "web")
    assert ended == ("", {})


@on_loop
async def test_list_by_watch() -> None:
    """A watch with `sendInitialEvents` reports what is there, and then a bookmark that says it was all."""
    async with served_api() as api:
        api.core.create("pods", pod())
        query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersion": "0"}
        async with api.watch("/api/v1/pods", **query) as watch:
            seen = [await event(watch), await event(watch)]

    assert [what for what, _ in seen] == ["ADDED", "BOOKMARK"]
    assert seen[1][1]["metadata"] == {
        "resourceVersion": "1",
        "creationTimestamp": None,
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


@on_loop
async def test_watch_from_a_forgotten_version_is_410() -> None:
    """After a compaction a watch begins with 410, and one that is open breaks with an ERROR of that code."""
    async with served_api() as api:
        api.core.create("pods", pod())
        async with api.watch("/api/v1/pods", resourceVersion="1") as watch:
            api.core.create("pods", pod("b"))
            first = await event(watch)
            api.core.forget_history()
            api.connection.break_watches(ApiStatusError(410, "Expired", "too old"))
            last = await event(watch)
        code, refused = await api.ask("GET", "/api/v1/pods?watch=1&resourceVersion=1")

    assert (first[0], last[0], last[1]["code"]) == ("ADDED", "ERROR", 410)
    assert (code, refused["reason"]) == (410, "Expired")


@on_loop
async def test_outages_and_faults_of_the_connection() -> None:
    """A refused connection is no answer, 503 and 429 are answers, and watches break off."""
    async with served_api() as api:
        async with api.watch("/api/v1/pods") as watch:
            with api.connection.outage():
                with pytest.raises(aiohttp.ClientError):
                    await api.ask("GET", "/api/v1/pods")
                with pytest.raises(aiohttp.ClientError):
                    await event(watch)
        with api.connection.outage(503):
            assert (await api.ask("GET", "/api/v1/pods"))[0] == 503
        with api.connection.faults.add("*#1 before 429: wait"):
            async with api.session.get("/api/v1/pods") as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert (await api.ask("GET", "/api/v1/pods"))[0] == 200


@on_loop
async def test_watch_of_a_client_that_went_is_closed() -> None:
    """Nobody reads on: the core has no watch any more once the connection is gone."""
    async with served_api() as api:
        heard: list[Any] = []
        api.core.on_change.append(heard.append)
        async with api.watch("/api/v1/pods"):
            pass
        async with asyncio.timeout(5):
            while api.server.open_watches:
                await api.ask("GET", "/api/v1/pods")

        assert api.server.open_watches == 0


#: How a request is wrong, and with which code and words it is refused.
REFUSED: dict[str, tuple[str, str, Any, dict[str, str], int, str]] = {
    "no such kind": ("GET", "/apis/apps/v1/deployments", None, {}, 404, "could not find"),
    "no such path": ("GET", "/metrics", None, {}, 404, "could not find"),
    "no such verb": ("HEAD", "/api/v1/pods", None, {}, 405, ""),
    "no JSON": ("POST", PODS, "[", {}, 400, "no object"),
    "protobuf": (
        "POST",
        PODS,
        "k8s",
        {"kind": "application/vnd.kubernetes.protobuf"},
        415,
        "contentType: application/json",
    ),
    "other patch": ("PATCH", f"{PODS}/web", {}, {"kind": "application/apply-patch+cbor"}, 415, "supported"),
    "only protobuf": (
        "GET",
        "/api/v1/pods",
        None,
        {"Accept": "application/vnd.kubernetes.protobuf"},
        406,
        "application/json",
    ),
    "bad selector": ("GET", "/api/v1/pods?fieldSelector=a", None, {}, 400, "no field selector"),
    "bad labels": ("GET", "/api/v1/pods?labelSelector=a+(b", None, {}, 400, "no label selector"),
    "bad grace": ("DELETE", f"{PODS}/web?gracePeriodSeconds=soon", None, {}, 400, "a number is expected"),
    "dry run": ("POST", f"{PODS}?dryRun=All", {}, {}, 400, "leave it out"),
}


@pytest.mark.parametrize("case", REFUSED)
@on_loop
async def test_refuses(case: str) -> None:
    """What the server cannot do is a Status that says what was expected."""
    method, path, body, options, code, words = REFUSED[case]
    async with served_api() as api:
        if method == "HEAD":
            async with api.session.head(path) as answer:
                assert answer.status == code
            return
        got, status = await api.ask(method, path, body, **options)

    assert (got, status["kind"], status["code"]) == (code, "Status", code)
    assert words in status["message"]


@on_loop
async def test_deletes_what_a_selector_names() -> None:
    """A deletion of a collection deletes what fits, and no more."""
    async with served_api() as api:
        for name in ("a", "b"):
            api.core.create("configmaps", {"metadata": {"name": name}})
        await api.ask("DELETE", "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name=a")

        assert [each["metadata"]["name"] for each in api.core.list_objects("configmaps")[0]] == ["b"]


@on_loop
async def test_port_in_use() -> None:
    """A port that somebody listens at is named, with what to do."""
    async with served_api() as api:
        port = int(api.server.url.rpartition(":")[2])
        with pytest.raises(CannotListenError, match=f"127.0.0.1:{port}: .* name another port"):
            async with ApiServer(api.core, port=port):
                raise AssertionError("it listens")


@on_loop
async def test_bookmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that asks for bookmarks is told how far it has got, also by changes that are not for it."""
    monkeypatch.setattr(watch_stream, "_BOOKMARK_SECONDS", 0.05)
    async with served_api() as api, api.watch("/api/v1/pods", allowWatchBookmarks="true") as watch:
        api.core.create("configmaps", {"metadata": {"name": "c"}})
        what, marked = await event(watch)

    assert (what, marked["kind"], marked["metadata"]["resourceVersion"]) == ("BOOKMARK", "Pod", "1")


@on_loop
async def test_devices_in_every_version() -> None:
    """Claims, slices and classes are one store, whichever version asks; so are drivers and services."""
    claim: Json = {"metadata": {"name": "gpu"}, "spec": {"devices": {}}}
    path = "namespaces/default/resourceclaims"
    async with served_api() as api:
        await api.ask("POST", f"/apis/resource.k8s.io/v1beta1/{path}", claim)
        status = {"status": {"reservedFor": [{"resource": "pods", "name": "web", "uid": "u"}]}}
        _, reserved = await api.patch(f"/apis/resource.k8s.io/v1/{path}/gpu/status", status)
        _, old = await api.ask("GET", f"/apis/resource.k8s.io/v1beta1/{path}")
        ports = {"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}}
        _, service = await api.ask(
            "POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, **ports}
        )
        _, driver = await api.ask(
            "POST", "/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": "d"}, "spec": {}}
        )

    assert (reserved["apiVersion"], old["apiVersion"]) == ("resource.k8s.io/v1", "resource.k8s.io/v1beta1")
    assert old["items"][0]["apiVersion"] == "resource.k8s.io/v1beta1"
    assert old["items"][0]["status"] == status["status"]
    assert service["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert driver["kind"] == "CSIDriver"


@on_loop
async def test_server_ends_with_open_watches() -> None:
    """Closing the server ends watches cleanly, at once."""
    async with contextlib.AsyncExitStack() as client:
        async with served_api() as api:
            session = await client.enter_async_context(
                aiohttp.ClientSession(api.server.url, headers=api.session.headers)
            )
            watch = await session.get("/api/v1/pods?watch=true")
        async with asyncio.timeout(5):
            assert await watch.content.readline() == b""
