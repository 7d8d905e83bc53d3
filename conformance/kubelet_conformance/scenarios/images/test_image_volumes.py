"""Image volumes: images that containers mount."""

from kubelet_conformance.node import Node, container, pod, witness

GATES = {"ImageVolume": True}


@witness("IMAGE-20", kubernetes=(1, 31), feature_gates=GATES, needs="image volumes")
async def test_image_is_mounted(node: Node) -> None:
    """A container mounts an image; one whose image is missing waits for it, and the others start."""
    node.runtime.publish_image("registry/late:1", there=False)
    volumes = [
        {"name": "data", "image": {"reference": "registry/data:1"}},
        {"name": "late", "image": {"reference": "registry/late:1", "pullPolicy": "IfNotPresent"}},
    ]
    reads = container("c1", volumeMounts=[{"name": "data", "mountPath": "/data"}])
    waits = container("c2", volumeMounts=[{"name": "late", "mountPath": "/late"}])
    web = node.want(pod(reads, waits, container("c3"), volumes=volumes))
    await web.until_running("c1", "c3", contract="IMAGE-20")
    await node.wait(30)
    node.runtime.publish_image("registry/late:1")
    await web.until_running("c2", contract="IMAGE-20")


@witness("IMAGE-20", kubernetes=(1, 35), needs="image volumes")
async def test_images_are_mounted_by_default(node: Node) -> None:
    """From 1.35 on no feature gate has to be opened to mount an image."""
    mounts = [{"name": "data", "mountPath": "/data"}]
    volumes = [{"name": "data", "image": {"reference": "registry/data:1"}}]
    await node.run(container("c1", volumeMounts=mounts), volumes=volumes)


@witness("IMAGE-20", kubernetes=(1, 33), feature_gates=GATES, needs="image volumes")
async def test_part_of_an_image_is_mounted(node: Node) -> None:
    """Of an image a container mounts all, or the part that it names."""
    mounts = [
        {"name": "data", "mountPath": "/all"},
        {"name": "data", "mountPath": "/part", "subPath": "bin"},
    ]
    volumes = [{"name": "data", "image": {"reference": "registry/data:1"}}]
    web = await node.run(container("c1", volumeMounts=mounts), volumes=volumes)
    given = {
        each.container_path: each.image_sub_path
        for each in web.calls("CreateContainer", "c1")[0].request.config.mounts
    }
    expected = {"/all": "", "/part": "bin"}
    wrong = [
        f"{path} is of {given.get(path)!r}" for path, part in expected.items() if given.get(path) != part
    ]
    await node.expect("it has these parts", lambda: wrong, "IMAGE-20")
