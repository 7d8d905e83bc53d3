"""Mirror pods: the desired set with them, and how they are kept at the API server."""

import pytest
from config_doubles import SmallApi, a_node, a_pod
from lightkube.models.core_v1 import Pod
from on_loop import in_virtual_time

from kubelet_reference.api import names, pods
from kubelet_reference.config import Source, static_pod
from kubelet_reference.config.mirror_client import MirrorClient, mirror_pod
from kubelet_reference.config.pod_manager import PodManager
from kubelet_reference.util.ports import ApiError

STATIC = static_pod(a_pod(annotations={names.CONFIG_SOURCE: "file"}), Source.FILE, "/web.yaml", "node-1", 32)
EDITED = static_pod(
    a_pod(labels={"v": "2"}, annotations={names.CONFIG_SOURCE: "file"}),
    Source.FILE,
    "/web.yaml",
    "node-1",
    32,
)
KEY = ("default", "web-node-1")


def static(uid: str) -> Pod:
    """A static pod of that UID."""
    return a_pod("web-node-1", uid=uid, annotations={names.CONFIG_HASH: uid})


def an_api(*, node: bool = True) -> SmallApi:
    """An API server that has the node's object or not."""
    api = SmallApi()
    if node:
        api.nodes["node-1"] = a_node()
    return api


def test_mirror_carries_hash_and_owner() -> None:
    """The mirror has the static pod's hash and belongs to the node (STATIC-11)."""
    mirror = mirror_pod(STATIC, a_node())

    (owner,) = pods.metadata(mirror).ownerReferences or []
    assert pods.annotations(mirror)[names.CONFIG_MIRROR] == pods.uid(STATIC)
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Node", "node-1", "node-uid", True)
    assert pods.is_mirror(mirror)
    assert not pods.is_mirror(STATIC)


@in_virtual_time
async def test_missing_mirror_is_created_once() -> None:
    """Without a mirror one is created; with one that fits nothing happens."""
    api = an_api()
    client = MirrorClient(api, "node-1")
    await client.keep(STATIC, None)
    asked = list(api.asked)
    await client.keep(STATIC, api.pods[KEY])

    assert asked == ["node node-1", "create default/web-node-1"]
    assert api.asked == asked


@pytest.mark.parametrize("outdated", [False, True], ids=["deleted", "outdated"])
@in_virtual_time
async def test_deleted_or_outdated_mirror_is_replaced(*, outdated: bool) -> None:
    """It is deleted at once, by its UID, and created anew (STATIC-13)."""
    api = an_api()
    client = MirrorClient(api, "node-1")
    await client.create(STATIC)
    old = api.pods[KEY]
    if not outdated:
        pods.metadata(old).deletionTimestamp = pods.metadata(
            a_pod(deletionTimestamp="2030-01-01T00:00:00Z")
        ).deletionTimestamp
    await client.keep(EDITED if outdated else STATIC, old)

    assert f"delete default/web-node-1 0 {pods.uid(old)}" in api.asked
    assert pods.uid(api.pods[KEY]) != pods.uid(old)


@in_virtual_time
async def test_newer_mirror_is_not_deleted_for_an_old_one() -> None:
    """News of a mirror that was replaced meanwhile do not harm the new one (STATIC-13)."""
    api = an_api()
    client = MirrorClient(api, "node-1")
    await client.create(STATIC)
    there = api.pods[KEY]

    await client.delete(mirror_pod(static("older"), a_node()))
    assert api.pods[KEY] is there


@in_virtual_time
async def test_mirror_that_is_there_already_is_success() -> None:
    """AlreadyExists is fine (STATIC-14)."""
    api = an_api()
    client = MirrorClient(api, "node-1")
    await client.create(STATIC)
    there = api.pods[KEY]
    await client.create(STATIC)

    assert api.pods[KEY] is there


@in_virtual_time
async def test_no_mirror_without_a_node() -> None:
    """A missing node has no mirrors, and one that is being deleted gets no new ones (STATIC-12)."""
    missing, leaving = an_api(node=False), an_api()
    leaving.nodes["node-1"] = a_node(deletionTimestamp="2030-01-01T00:00:00Z")

    await MirrorClient(missing, "node-1").create(STATIC)
    await MirrorClient(leaving, "node-1").create(STATIC)

    assert not missing.pods
    assert not leaving.pods


@in_virtual_time
async def test_mirrors_are_best_effort() -> None:
    """Neither an API server that is down nor none at all is an error (STATIC-10)."""
    api = an_api()
    api.down = ApiError(0, "", "unreachable")

    for client in (MirrorClient(api, "node-1"), MirrorClient(None, "node-1")):
        await client.keep(STATIC, None)
        await client.delete(STATIC)


def test_mirror_is_found_by_its_static_pod_and_never_listed() -> None:
    """The mirror stands for its static pod and is no pod of its own (CONFIG-15, STATIC-16)."""
    manager = PodManager()
    mirror = mirror_pod(static("api-1"), a_node())
    for pod in (STATIC, mirror, a_pod("other", uid="2")):
        manager.add(pod)

    assert [pods.name(pod) for pod in manager.pods()] == ["web-node-1", "other"]
    assert manager.mirror_of(STATIC) is mirror
    assert manager.static_of(mirror) is STATIC
    assert manager.by_uid("api-1") is None
    assert manager.orphaned_mirrors() == ()


def test_mirror_without_its_static_pod_is_an_orphan() -> None:
    """A static pod that goes leaves its mirror an orphan, even if an API pod has the name (STATIC-15)."""
    manager = PodManager()
    mirror = mirror_pod(static("api-1"), a_node())
    manager.add(STATIC)
    manager.add(mirror)
    manager.remove(STATIC)
    manager.add(a_pod("web-node-1", uid="api-2"))

    assert manager.orphaned_mirrors() == (mirror,)
    assert manager.static_of(mirror) is None


def test_newer_pod_of_a_name_stays_when_the_older_goes() -> None:
    """Removing the old version of a static pod does not hide the new one."""
    manager = PodManager()
    mirror = mirror_pod(static("api-1"), a_node())
    manager.add(STATIC)
    manager.update(EDITED)
    manager.remove(STATIC)

    assert manager.static_of(mirror) is EDITED
    assert manager.pods() == (EDITED,)
