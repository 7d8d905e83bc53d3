"""The views: what a trace tells about the entities, and what is forgotten."""

import pytest
from trace_builder import TraceBuilder

from kubelet_conformance.trace.format.errors import BodyError
from kubelet_conformance.trace.world import world as limits


def test_life_of_a_container() -> None:
    """A container's view follows its calls: created, running, stopped, with its parents and its exit."""
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(1).stop(c1, timeout=7, code=143)
    s.container_status(c1, state="CONTAINER_EXITED", exit_code=143)
    container = s.world().containers[c1.id]

    assert container.born
    assert (container.name, container.kind, container.state) == ("c1", "app", "exited")
    assert container.exit is not None
    assert (container.exit.code, container.exit.commanded) == (143, True)
    assert [stop.timeout for stop in container.stops] == [7]
    assert container.sandbox is not None
    assert container.pod is container.sandbox.pod


def test_exit_by_itself_is_not_commanded() -> None:
    """An exit that no stop explains is the container's own."""
    s = TraceBuilder()
    web = s.pod()
    c1 = s.run_container(web, s.run_sandbox(web))
    s.wait(1).exited(c1, code=1)
    container = s.world().containers[c1.id]

    assert container.exit is not None
    assert (container.exit.code, container.exit.commanded) == (1, False)


def test_kinds_of_containers() -> None:
    """The manifest's list tells the kind; an init container with restartPolicy Always is a sidecar."""
    s = TraceBuilder()
    init = [{"name": "i1", "image": "img:1"}, {"name": "s1", "image": "img:1", "restartPolicy": "Always"}]
    debug = [{"name": "dbg", "image": "img:1"}]
    web = s.pod(initContainers=init, ephemeralContainers=debug)
    s.run_sandbox(web)
    pod = s.world().pods[web.uid]

    assert [pod.kind_of(name) for name in ("i1", "s1", "c1", "dbg", "other")] == [
        "init",
        "sidecar",
        "app",
        "ephemeral",
        "unknown",
    ]


def test_found_records_have_an_unknown_past() -> None:
    """What the runtime lists and nobody made in the trace is known, but not born, and neither is its pod."""
    s = TraceBuilder(from_start=False)
    meta = {"name": "old", "uid": "uid-old", "namespace": "default"}
    s.call("ListPodSandbox", {}, {"items": [{"id": "sb", "metadata": meta, "created_at": "5"}]})
    labels = {"io.kubernetes.pod.uid": "uid-old"}
    record = {"id": "c", "pod_sandbox_id": "sb", "metadata": {"name": "c1"}, "state": "CONTAINER_RUNNING"}
    s.call("ListContainers", {}, {"containers": [record | {"labels": labels}]})
    world = s.world()

    assert world.containers["c"].state == "running"
    assert not world.containers["c"].born
    assert not world.sandboxes["sb"].born
    assert not world.pods["uid-old"].born


def test_lost_records_vanish() -> None:
    """A container that leaves the full list without RemoveContainer has vanished; a filter shows nothing."""
    s = TraceBuilder()
    web = s.pod()
    c1 = s.run_container(web, s.run_sandbox(web))
    s.wait(1)
    s.call("ListContainers", {"filter": {"state": {}}}, {})
    before = s.world().pods[web.uid].newest("c1")
    s.call("ListContainers", {"filter": {}}, {})
    world = s.world()
    after = world.pods[web.uid].newest("c1")

    assert before is not None
    assert before.state == "running"
    assert c1.id not in world.containers
    assert after is not None
    assert (after.state, after.vanished) == ("removed", True)


def test_static_pod_is_joined_by_name() -> None:
    """A manifest without UID is joined to the sandbox of <name>-<node>, and to its mirror's status."""
    s = TraceBuilder()
    s.record("pod", op="set", source="file", pod={"metadata": {"name": "st"}, "spec": {"containers": []}})
    web = s.pod("unused")
    web.manifest["metadata"] = {"name": "st-node-1", "namespace": "default", "uid": "hash"}
    s.run_sandbox(web)
    s.record("status", uid="mirror", namespace="default", name="st-node-1", status={"phase": "Pending"})
    world = s.world()
    pod = world.pods["hash"]

    assert pod.static
    assert pod.mirror_uid == "mirror"
    assert pod.status is not None
    assert world.pod_of_object("mirror") is pod


def test_edited_manifest_is_another_pod() -> None:
    """A static pod whose file changes is to go, and another one of that name is wanted."""
    s = TraceBuilder()
    manifest = {"metadata": {"name": "st"}, "spec": {"containers": [{"name": "c1", "image": "img:1"}]}}
    s.record("pod", op="set", source="file", pod=manifest)
    old = s.pod("unused")
    old.manifest["metadata"] = {"name": "st-node-1", "namespace": "default", "uid": "hash-1"}
    s.run_sandbox(old)
    s.record("pod", op="set", source="file", pod=manifest)
    assert s.world().pods["hash-1"].wanted

    edited = manifest | {"spec": {"containers": [{"name": "c1", "image": "img:2"}]}}
    s.record("pod", op="set", source="file", pod=edited)
    world = s.world()

    assert world.pods["hash-1"].termination is not None
    assert world.names["default", "st-node-1"] is not world.pods["hash-1"]


@pytest.mark.parametrize("name", ["c1", "c2"])
def test_status_is_of_the_version_that_has_its_containers(name: str) -> None:
    """The status of a new version goes to the mirror that the former one has left."""
    s = TraceBuilder()
    specs = {each: {"containers": [{"name": each, "image": "img:1"}]} for each in ("c1", "c2")}
    s.record("pod", op="set", source="file", pod={"metadata": {"name": "st"}, "spec": specs["c1"]})
    old = s.pod("unused")
    old.manifest["metadata"] = {"name": "st-node-1", "namespace": "default", "uid": "hash-1"}
    s.run_sandbox(old)
    mirror = {"uid": "mirror", "namespace": "default", "name": "st-node-1"}
    s.record("status", status={"phase": "Pending"}, **mirror)
    s.record("pod", op="set", source="file", pod={"metadata": {"name": "st"}, "spec": specs["c2"]})
    waits = {"name": name, "state": {"waiting": {"reason": "ContainerCreating"}}}
    s.record("status", status={"phase": "Pending", "containerStatuses": [waits]}, **mirror)
    world = s.world()
    reported = {"c1": world.pods["hash-1"], "c2": world.names["default", "st-node-1"]}[name]

    assert reported.status is not None
    assert [one.name for one in reported.status.every_container] == [name]


@pytest.mark.parametrize(
    ("seen", "image"), [("12:00:00.9", "img:1"), ("12:00:02", "img:1"), ("12:00:06", "img:2")]
)
def test_version_that_is_run_is_the_one_that_was_seen(seen: str, image: str) -> None:
    """Of a static pod that was edited before it ran, the kubelet says when it saw the manifest.

    That may be a moment before its file is on the record.
    """
    s = TraceBuilder(started="2026-01-01T12:00:00Z").wait(1)
    for number in (1, 2):
        spec = {"containers": [{"name": "c1", "image": f"img:{number}"}]}
        s.record("pod", op="set", source="file", pod={"metadata": {"name": "st"}, "spec": spec})
        s.wait(4)
    st = s.pod("unused")
    st.manifest["metadata"] = {"name": "st-node-1", "namespace": "default", "uid": "hash"}
    annotations = {"kubernetes.io/config.seen": f"2026-01-01T{seen}Z"}
    s.run_sandbox(st, config=s.sandbox_config(st, annotations=annotations))
    world = s.world()
    run = world.pods["hash"].spec

    assert run is not None
    assert run.containers[0].image == image
    assert world.pods["hash"].wanted is (image == "img:2")
    assert ("default", "st-node-1") in world.names


def test_grace_only_shrinks() -> None:
    """The termination remembers the smallest grace asked for."""
    s = TraceBuilder()
    web = s.pod()
    s.run_sandbox(web)
    for grace in (60, 5, 30):
        s.delete(web, grace)
    termination = s.world().pods[web.uid].termination

    assert termination is not None
    assert (termination.cause, termination.grace) == ("deleted", 5)


def test_finished_life_is_forgotten() -> None:
    """A pod deleted and removed at the runtime leaves nothing behind, and is known when it comes again."""
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.delete(web)
    s.stop(c1)
    s.stop_sandbox(sandbox)
    s.deleted(web)
    s.remove(c1)
    s.call("RemovePodSandbox", {"pod_sandbox_id": sandbox.id}, {})
    world = s.world()

    assert (world.pods, world.names, world.sandboxes, world.containers) == ({}, {}, {}, {})

    s.run_sandbox(web)

    assert s.world().pods[web.uid].finished_before


def test_removed_newest_record_stays_until_the_next() -> None:
    """The newest record of a name is remembered after its removal, older ones are not."""
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    for attempt in range(5):
        container = s.run_container(web, sandbox, attempt=attempt)
        s.wait(1).exited(container, code=1)
        s.remove(container)
    pod = s.world().pods[web.uid]

    assert [c.attempt for c in pod.containers["c1"]] == [4]


def test_too_many_pods_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """More live pods than the bound are bad input, not a full memory."""
    monkeypatch.setattr(limits, "PODS_MAX", 3)
    s = TraceBuilder()
    for number in range(4):
        s.pod(f"p{number}")

    with pytest.raises(BodyError, match="more than 3 pods"):
        s.world()


def test_manifest_replaces_no_pod_of_the_api() -> None:
    """A pod from a manifest stands beside the API pod of its full name, whichever goes first."""
    s = TraceBuilder()
    bound = s.pod("web-node-1")
    s.run_sandbox(bound)
    s.record("pod", op="set", source="file", pod={"metadata": {"name": "web"}, "spec": {}})
    beside = s.world().pods[bound.uid]

    assert (beside.wanted, beside.termination, beside.source) == (True, None, "api")

    own = s.pod("own-node-1")
    s.run_sandbox(own)
    s.record("pod", op="remove", source="file", namespace="default", name="own")

    assert s.world().pods[own.uid].wanted


@pytest.mark.parametrize("number", [1, 2])
def test_mirror_tells_which_of_two_versions_is_run(number: int) -> None:
    """Two versions that were sent at one time are distinguished by what the mirror shows."""
    s = TraceBuilder(started="2026-01-01T12:00:00Z")
    specs = {each: {"containers": [{"name": "c1", "image": f"img:{each}"}]} for each in (1, 2)}
    for spec in specs.values():
        s.record("pod", op="set", source="file", pod={"metadata": {"name": "st"}, "spec": spec})
    st = s.pod("unused")
    st.manifest["metadata"] = {"name": "st-node-1", "namespace": "default", "uid": "hash"}
    seen = {"kubernetes.io/config.seen": f"2026-01-01T12:00:{s.now:02.0f}Z"}
    shown = st.manifest["metadata"] | {"annotations": {**seen, "kubernetes.io/config.mirror": "hash"}}
    body = {"metadata": shown, "spec": specs[number]}
    s.record("api", verb="create", resource="pods", uid="mirror", code=201, body=body)
    s.run_sandbox(st, config=s.sandbox_config(st, annotations=seen))
    run = s.world().pods["hash"]

    assert run.spec is not None
    assert run.spec.containers[0].image == f"img:{number}"
    assert run.mirror_uid == "mirror"


def test_pod_is_known_as_long_as_a_call_makes_its_sandbox() -> None:
    """What a call under way makes is found while nobody wants the pod any more, and is the pod's own."""
    s = TraceBuilder()
    web = s.pod()
    config = s.sandbox_config(web)
    call = s.begin("RunPodSandbox", {"config": config})
    s.deleted(web)
    record = {"id": "sb", "metadata": config["metadata"], "created_at": "5"}
    s.wait(1).call("ListPodSandbox", {}, {"items": [record]})
    s.end("RunPodSandbox", call, {"pod_sandbox_id": "sb"})
    world = s.world()

    assert world.sandboxes["sb"].born
    assert world.pods[web.uid].sandbox is world.sandboxes["sb"]


@pytest.mark.parametrize("how", ["fails", "is not answered"])
def test_pod_is_forgotten_once_nothing_is_made_for_it(how: str) -> None:
    """A call that comes to nothing leaves nothing of a pod that is gone."""
    s = TraceBuilder()
    web = s.pod()
    call = s.begin("RunPodSandbox", {"config": s.sandbox_config(web)})
    s.deleted(web)
    if how == "fails":
        s.wait(1).end("RunPodSandbox", call, error="UNAVAILABLE")
    else:
        s.wait(1).record("kubelet", op="killed")

    assert s.world().pods == {}


@pytest.mark.parametrize(("created_at", "newest"), [(10**19, True), (5, False)])
def test_sandboxes_are_as_old_as_the_runtime_says(created_at: int, *, newest: bool) -> None:
    """One that nobody is known to have made may be newer than one that was made in the trace."""
    s = TraceBuilder()
    web = s.pod()
    own = s.run_sandbox(web)
    meta = {"name": web.name, "uid": web.uid, "namespace": web.namespace, "attempt": 1}
    found = {"id": "sb", "metadata": meta, "created_at": str(created_at)}
    s.call("ListPodSandbox", {"filter": {"id": "sb"}}, {"items": [found]})
    sandboxes = s.world().pods[web.uid].sandboxes

    assert [one.id for one in sandboxes] == ([own.id, "sb"] if newest else ["sb", own.id])


@pytest.mark.parametrize(("uid", "reported"), [("hash", True), ("other", False)])
def test_pod_that_comes_again_has_its_mirror_back(uid: str, *, reported: bool) -> None:
    """A mirror that was left is that of the same content, and not of whatever has the name."""
    s = TraceBuilder()
    manifest = {"metadata": {"name": "st"}, "spec": {"containers": [{"name": "c1", "image": "img:1"}]}}
    s.record("pod", op="set", source="file", pod=manifest)
    st = s.pod("unused")
    st.manifest["metadata"] = {"name": "st-node-1", "namespace": "default", "uid": "hash"}
    sandbox = s.run_sandbox(st)
    mirror = {"uid": "mirror", "namespace": "default", "name": "st-node-1"}
    s.record("status", status={"phase": "Running"}, **mirror)
    s.record("pod", op="remove", source="file", namespace="default", name="st")
    s.stop_sandbox(sandbox)
    s.call("RemovePodSandbox", {"pod_sandbox_id": sandbox.id}, {})
    s.record("pod", op="set", source="file", pod=manifest)
    st.manifest["metadata"]["uid"] = uid
    s.run_sandbox(st)
    s.record("status", status={"phase": "Pending"}, **mirror)
    status = s.world().pods[uid].status

    assert (status is not None) is reported
