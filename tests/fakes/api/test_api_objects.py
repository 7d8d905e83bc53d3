"""The fake API server keeps objects: identities, versions, and nothing that anybody else can change."""

import copy
import json
import pickle
from typing import Any

import pytest
from api_world import ApiWorld, pod, refused
from lightkube.models import core_v1

from kubelet_fakes.api import ApiCore
from kubelet_fakes.api.objects import FrozenDict, frozen, parse_time, replaced, rfc3339


def test_server_gives_identity() -> None:
    """UID, time, version and namespace are the server's, whatever a client wrote (mirror pods bring one)."""
    core = ApiWorld()
    mine = pod()
    mine["metadata"] |= {"uid": "of the manifest", "creationTimestamp": None, "deletionGracePeriodSeconds": 3}
    first, second = core.create("pods", mine), core.create("pods", pod("db"), "kube-system")

    assert first["metadata"] == {
        "name": "web",
        "namespace": "default",
        "uid": "00000000-0000-4000-8000-000000000001",
        "creationTimestamp": "2026-01-01T12:00:00Z",
        "resourceVersion": "1",
    }
    assert (second["metadata"]["namespace"], second["metadata"]["resourceVersion"]) == ("kube-system", "2")


def test_two_servers_give_the_same_uids() -> None:
    """Nothing is drawn by lot: two runs are alike."""
    made = [ApiWorld().create("pods", pod()) for _ in range(2)]

    assert made[0] == made[1]


def test_uids_come_from_outside() -> None:
    """Who makes the core says where UIDs come from."""
    core = ApiCore(lambda: 0, iter(["one", "two"]).__next__)

    assert [core.create("pods", pod(name))["metadata"]["uid"] for name in ("a", "b")] == ["one", "two"]


def test_name_can_be_generated() -> None:
    """GenerateName becomes a name that is free."""
    core = ApiWorld()
    made = [core.create("pods", {**pod(), "metadata": {"generateName": "web-"}}) for _ in range(2)]

    assert [each["metadata"]["name"] for each in made] == ["web-00001", "web-00002"]


def test_what_was_handed_out_cannot_be_changed() -> None:
    """Nobody can reach into the server: an object that comes back refuses, a copy of it does not."""
    core = ApiWorld()
    made = core.create("pods", pod())

    with pytest.raises(TypeError, match="cannot be changed in place"):
        made["spec"]["nodeName"] = "node-2"
    with pytest.raises(TypeError, match="cannot be changed in place"):
        made["spec"]["containers"].append({})
    copy.deepcopy(made)["spec"]["containers"].append({})
    pickle.loads(pickle.dumps(made))["spec"]["containers"].append({})  # noqa: S301

    assert core.get("pods", "web") is made
    assert json.loads(json.dumps(made)) == made


def test_what_was_handed_in_is_copied() -> None:
    """A manifest changed after it was sent changes nothing in the server."""
    core = ApiWorld()
    mine = pod()
    core.create("pods", mine)
    mine["spec"]["containers"][0]["image"] = "img:2"
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    core.patch("pods", "web", {"status": status}, subresource="status")
    status["conditions"].clear()  # type: ignore[attr-defined]

    stored = core.get("pods", "web")

    assert stored["spec"]["containers"][0]["image"] == "img:1"
    assert len(stored["status"]["conditions"]) == 1


def test_objects_are_what_the_models_read() -> None:
    """Lightkube reads them as they are."""
    model: Any = core_v1.Pod
    read = model.from_dict(ApiWorld().create("pods", pod()), lazy=False)

    assert read.spec.containers[0].terminationMessagePath == "/dev/termination-log"


def test_parts_that_stay_are_shared() -> None:
    """A change builds anew only what lies on its path."""
    old = frozen({"a": {"b": 1, "c": {}}, "d": [{}]})
    new = replaced(old, ("a", "b"), 2)

    assert (new["a"]["b"], new["a"]["c"] is old["a"]["c"], new["d"] is old["d"]) == (2, True, True)
    assert replaced(old, ("a", "b"), 1) is old
    assert replaced(old, ("x", "y"), None) == old
    assert replaced(old, ("a", "c"), None)["a"] == {"b": 1}
    assert isinstance(replaced(old, ("x", "y"), {"z": []})["x"]["y"], FrozenDict)


def test_every_write_has_a_version_and_no_write_has_none() -> None:
    """The resourceVersion is one series over all kinds; a request that changes nothing does not move it."""
    core = ApiWorld()
    core.create("pods", pod())
    core.create("nodes", {"metadata": {"name": "node-1"}})
    patch = {"metadata": {"labels": {"a": "b"}}}

    assert core.patch("pods", "web", patch)["metadata"]["resourceVersion"] == "3"
    assert core.patch("pods", "web", patch)["metadata"]["resourceVersion"] == "3"
    assert core.update("pods", core.get("pods", "web"))["metadata"]["resourceVersion"] == "3"
    assert core.list_objects("pods")[1] == "3"


def test_lists_are_in_order_and_selected() -> None:
    """A list goes by namespace and name and takes what the selectors fit."""
    core = ApiWorld()
    for namespace, name, node in (("b", "x", "n1"), ("a", "z", "n1"), ("a", "y", "")):
        core.create(
            "pods", pod(name, node=node) | {"metadata": {"name": name, "labels": {"app": name}}}, namespace
        )

    def names(**options: dict[str, str] | str) -> list[str]:
        return [each["metadata"]["name"] for each in core.list_objects("pods", **options)[0]]  # type: ignore[arg-type]

    assert names() == ["y", "z", "x"]
    assert names(namespace="a") == ["y", "z"]
    assert names(fields={"spec.nodeName": "n1"}) == ["z", "x"]
    assert names(fields={"spec.nodeName": ""}) == ["y"]
    assert names(labels={"app": "x"}) == ["x"]


def test_what_is_not_there_is_404() -> None:
    """An unknown object, namespace or kind is NotFound, as a Status that HTTP can carry."""
    core = ApiWorld()
    core.create("pods", pod())
    error = refused(core.get, "pods", "db")

    assert (error.code, error.reason, str(error)) == (404, "NotFound", 'pods "db" not found')
    assert error.status()["kind"] == "Status"
    assert refused(core.get, "pods", "web", "elsewhere").code == 404
    assert refused(core.get, "gadgets", "web").code == 404
    assert refused(core.patch, "pods", "web", {}, subresource="scale").code == 404


def test_conflicts_are_409() -> None:
    """A second object of a name, and an update of an old version, are conflicts."""
    core = ApiWorld()
    old = core.create("pods", pod())
    core.patch("pods", "web", {"metadata": {"labels": {"a": "b"}}})
    again, stale = refused(core.create, "pods", pod()), refused(core.update, "pods", old)

    assert (again.code, again.reason) == (409, "AlreadyExists")
    assert (stale.code, stale.reason) == (409, "Conflict")
    assert "the object has been modified" in str(stale)


def test_senseless_requests_are_400() -> None:
    """What can be meant by no object is a bad request that says why."""
    core = ApiWorld()
    core.create("pods", pod())
    versioned = {**pod("db"), "metadata": {"name": "db", "resourceVersion": "1"}}

    assert "resourceVersion should not be set" in str(refused(core.create, "pods", versioned))
    assert refused(core.create, "pods", {**pod(), "metadata": {"namespace": "a"}}, "b").code == 400
    assert refused(core.patch, "pods", "web", {"metadata": {"name": "db"}}).code == 400
    assert "$.spec.containers" in str(
        refused(core.create, "pods", {"metadata": {"name": "a"}, "spec": {"containers": "x"}})
    )


def test_nodes_config_maps_and_secrets() -> None:
    """The other kinds live by the same rules: nodes have no namespace and keep the status they bring."""
    core = ApiWorld()
    core.create("nodes", {"metadata": {"name": "node-1"}, "status": {"capacity": {"pods": "110"}}})
    core.create("secrets", {"metadata": {"name": "s"}, "stringData": {"password": "x"}})
    core.create("configmaps", {"metadata": {"name": "c"}, "data": {"a": "b"}, "immutable": True})
    heart = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    node = core.patch("nodes", "node-1", heart, subresource="status")

    assert node["status"] == {"capacity": {"pods": "110"}, **heart["status"]}
    assert "namespace" not in node["metadata"]
    assert core.get("secrets", "s")["data"] == {"password": "eA=="}
    assert refused(core.patch, "configmaps", "c", {"data": {"a": "c"}}).code == 422


def test_runtime_classes() -> None:
    """A runtime class has no namespace, is of a group of its own, and keeps its handler, which has a name."""
    core = ApiWorld()
    made = core.create("runtimeclasses", {"metadata": {"name": "strong"}, "handler": "kata"})

    assert made["apiVersion"] == "node.k8s.io/v1"
    assert "namespace" not in made["metadata"]
    assert refused(core.create, "runtimeclasses", {"metadata": {"name": "odd"}, "handler": ""}).code == 422
    assert refused(core.create, "runtimeclasses", {"metadata": {"name": "odd"}}).code == 422
    assert refused(core.patch, "runtimeclasses", "strong", {"handler": "runc"}).code == 422


def test_time_is_written_in_whole_seconds() -> None:
    """Moments are RFC 3339 in UTC; the fraction goes."""
    assert rfc3339(1_767_268_800_999_999_999) == "2026-01-01T12:00:00Z"
    assert parse_time("2026-01-01T12:00:00Z") == 1_767_268_800_000_000_000
