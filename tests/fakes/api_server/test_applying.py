"""Server-side apply over HTTP: who owns which fields, what goes, and what is refused."""

from typing import Any

import pytest
from on_loop import on_loop
from served_api import PODS, ServedApi, served_api

Json = dict[str, Any]
SERVICES = "/api/v1/namespaces/default/services"
BOTH = {"metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x.y/one"]}}


async def apply(api: ServedApi, path: str, body: Any, manager: str = "me", **query: str) -> tuple[int, Json]:
    """Apply an object."""
    options = "&".join(f"{name}={value}" for name, value in {"fieldManager": manager, **query}.items())
    return await api.patch_as(f"{path}?{options}", body, "application/apply-patch+yaml")


def web(image: str = "img:1", **metadata: Any) -> Json:
    """A pod of one container."""
    port = {"containerPort": 80}
    spec = {"nodeName": "node-1", "containers": [{"name": "app", "image": image, "ports": [port]}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", **metadata}, "spec": spec}


@on_loop
async def test_object_is_created_and_changed() -> None:
    """What is not there is created; what is applied again changes nothing; what is left out goes."""
    async with served_api() as api:
        created = await apply(api, f"{PODS}/web", web(labels={"a": "1", "b": "2"}))
        await api.patch(f"{PODS}/web", {"metadata": {"labels": {"c": "3"}}})
        before = await api.ask("GET", f"{PODS}/web")
        again = await apply(api, f"{PODS}/web", web(labels={"a": "1", "b": "2"}))
        changed = await apply(api, f"{PODS}/web", web("img:2", labels={"a": "4"}))

    assert (created[0], again) == (201, before)
    assert changed[1]["metadata"]["labels"] == {"a": "4", "c": "3"}
    assert changed[1]["spec"]["containers"][0]["image"] == "img:2"
    [entry] = changed[1]["metadata"]["managedFields"]
    port: Json = {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}
    app = {".": {}, "f:name": {}, "f:image": {}, "f:ports": port}
    assert (entry["manager"], entry["operation"], entry["fieldsType"]) == ("me", "Apply", "FieldsV1")
    assert entry["fieldsV1"] == {
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {"f:nodeName": {}, "f:containers": {'k:{"name":"app"}': app}},
    }


@on_loop
async def test_items_of_lists_and_sets_go_with_their_owner() -> None:
    """An item of a keyed list, a value of a set and an object that becomes empty."""
    ports = [{"name": name, "port": port, "protocol": "TCP"} for name, port in (("a", 80), ("b", 81))]
    async with served_api() as api:
        whole = {**BOTH, "spec": {"ports": ports}}
        await apply(api, f"{SERVICES}/s", {**whole, "metadata": {**BOTH["metadata"], "name": "s"}})
        less = {"metadata": {"name": "s"}, "spec": {"ports": ports[1:]}}
        _, left = await apply(api, f"{SERVICES}/s", less)

    assert [each["port"] for each in left["spec"]["ports"]] == [81]
    assert left["spec"]["clusterIP"] == "10.96.0.1"
    assert not {"labels", "finalizers"} & left["metadata"].keys()


@on_loop
async def test_fields_of_another_manager() -> None:
    """Who sets another value is refused, unless forced; who sets the same shares the field."""
    async with served_api() as api:
        await apply(api, f"{PODS}/web", web(labels={"a": "1"}))
        shared = await apply(api, f"{PODS}/web", web(), "other")
        code, refused = await apply(api, f"{PODS}/web", web("img:2", labels={"a": "2"}), "other")
        forced = await apply(api, f"{PODS}/web", web("img:2", labels={"a": "2"}), "other", force="true")
        dropped = await apply(api, f"{PODS}/web", {"metadata": {"name": "web"}})

    assert (shared[0], code, forced[0]) == (200, 409, 200)
    assert refused["message"] == (
        'Apply failed with 2 conflicts: conflict with "me": .spec.containers[name="app"].image, '
        'conflict with "me": .metadata.labels.a'
    )
    assert [each["manager"] for each in forced[1]["metadata"]["managedFields"]] == ["me", "other"]
    assert dropped[1]["metadata"]["labels"] == {"a": "2"}
    assert dropped[1]["spec"]["containers"][0]["image"] == "img:2"


#: What cannot be applied: query, body, status and words.
REFUSED: dict[str, tuple[Json, Any, int, str]] = {
    "nobody": ({"manager": ""}, web(), 400, "fieldManager is required"),
    "fields": ({}, web(managedFields=[{"manager": "me"}]), 400, "must be nil"),
    "list": ({}, [], 400, "a merge patch is an object"),
    "invalid": ({}, {"metadata": {"name": "web"}}, 422, "spec.containers"),
    "no such subresource": ({"below": "/status"}, web(), 404, "not found"),
}


@pytest.mark.parametrize("name", REFUSED)
@on_loop
async def test_refusals(name: str) -> None:
    """Each is said."""
    query, body, code, words = REFUSED[name]
    async with served_api() as api:
        got, refused = await apply(
            api, f"{PODS}/web{query.get('below', '')}", body, query.get("manager", "me")
        )

    assert (got, words in refused["message"]) == (code, True), refused


@on_loop
async def test_update_without_managed_fields_keeps_them() -> None:
    """A client that does not know of owners takes nobody's fields."""
    async with served_api() as api:
        _, made = await apply(api, f"{PODS}/web", web(labels={"a": "1"}))
        del made["metadata"]["managedFields"]
        made["metadata"]["labels"]["b"] = "2"
        _, updated = await api.ask("PUT", f"{PODS}/web", made)
        _, changed = await apply(api, f"{PODS}/web", web())

    assert len(updated["metadata"]["managedFields"]) == 1
    assert changed["metadata"]["labels"] == {"b": "2"}
