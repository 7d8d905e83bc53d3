"""Images: when they are pulled, and how containers wait for them."""

from __future__ import annotations

from kubelet_conformance.node import Node, container, pod, witness


@witness("IMAGE-01", "IMAGE-02", "IMAGE-15", "IMAGE-16", "IMAGE-24", "START-01")
async def test_policy_decides_who_pulls(node: Node) -> None:
    """An image is pulled each time, where it is absent, or never, as the container's policy says."""
    policies = {"c1": "Always", "c2": "IfNotPresent", "c3": "Never"}
    node.runtime.add_image("registry/c3:1")
    apps = [
        container(name, image=f"registry/{name}:1", imagePullPolicy=how) for name, how in policies.items()
    ]
    web = await node.run(*apps, metadata={"name": "web", "annotations": {"example.com/mirror": "near"}})
    for name in policies:
        web.exit(name, 1)
    await web.until_running(*policies, attempt=1)


@witness("IMAGE-02")
async def test_image_that_is_never_pulled_is_waited_for(node: Node) -> None:
    """A container whose image may not be pulled waits until somebody else has brought it."""
    web = node.want(pod(container(image="registry/brought:1", imagePullPolicy="Never")))
    await web.until_waiting("c1", "ErrImageNeverPull")
    await node.wait(30)
    node.runtime.add_image("registry/brought:1")
    await web.until_running("c1")


@witness("IMAGE-03")
async def test_image_is_looked_for_before_it_is_pulled(node: Node) -> None:
    """An image with the policy Always is pulled for each instance, up to 1.26 after it was looked for."""
    web = await node.run(container(image="registry/app:1", imagePullPolicy="Always"))
    web.exit(code=1)
    await web.until_running("c1", attempt=1)


@witness("IMAGE-04", "IMAGE-19")
async def test_latest_goes_without_saying(node: Node) -> None:
    """An image without a tag is pulled as latest, and one with a digest as it is."""
    digest = f"registry/app@sha256:{'5f' * 32}"
    web = await node.run(container("c1", image="busybox"), container("c2", image=digest))
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)


@witness("IMAGE-06")
async def test_failed_look_is_no_reason_to_pull(node: Node) -> None:
    """When the runtime cannot say whether it has an image, that is told and the image not pulled."""
    with node.fault("ImageStatus", code="UNKNOWN", message="the image store is away", times=2):
        web = node.want(pod(container(image="registry/app:1", imagePullPolicy="IfNotPresent")))
        await web.until_waiting("c1", "ImageInspectError")
        await web.until_running("c1")


@witness("IMAGE-07", "IMAGE-09")
async def test_failed_pulls_back_off(node: Node) -> None:
    """After each failed pull the next one comes later, and the container tells what went wrong."""
    node.runtime.publish_image("registry/late:1", there=False)
    web = node.want(pod(container(image="registry/late:1")))
    await web.until_waiting("c1", "ErrImagePull")
    await web.until_waiting("c1", "ImagePullBackOff")
    await web.until_called("PullImage", count=5)
    node.runtime.publish_image("registry/late:1")
    await web.until_running("c1")


@witness("IMAGE-08")
async def test_back_off_is_of_a_pod_and_an_image(node: Node) -> None:
    """Containers of one pod share the back-off of an image, other pods and other images have their own."""
    node.runtime.publish_image("registry/late:1", there=False)
    both = (container("c1", image="registry/late:1"), container("c2", image="registry/late:1"))
    web = node.want(pod(*both, container("c3", image="registry/app:1"), name="web"))
    await web.until_waiting("c2", "ImagePullBackOff")
    other = node.want(pod(container(image="registry/late:1"), name="other"))
    await other.until_waiting("c1", "ErrImagePull")
    node.runtime.publish_image("registry/late:1")
    await web.until_running("c1", "c2", "c3")
    await other.until_running("c1")


@witness("IMAGE-24")
async def test_image_has_to_be_there_at_last(node: Node) -> None:
    """A container is not made while the image that was just pulled for it cannot be found."""
    with node.fault("ImageStatus", code="UNKNOWN", message="the image store is away", times=1):
        web = node.want(pod(container(image="registry/app:1", imagePullPolicy="Always")))
        await web.until_running("c1")


@witness("IMAGE-05", "IMAGE-17")
async def test_name_that_names_no_image(node: Node) -> None:
    """A container with an image name that cannot be read waits, and the others run."""
    web = node.want(pod(container("c1", image="Not/An Image"), container("c2")))
    await web.until_waiting("c1", "InvalidImageName")
    await web.until_running("c2")


@witness("IMAGE-11")
async def test_pulls_queue_up(node: Node) -> None:
    """Images are pulled one at a time."""
    with node.slow("PullImage", 4):
        pods = [node.want(pod(container(image=f"registry/{name}:1"), name=name)) for name in ("a", "b", "c")]
        for each in pods:
            await each.until_running("c1")


@witness("IMAGE-22")
async def test_image_user_has_to_be_a_number(node: Node) -> None:
    """A container that must not run as root is refused an image with a named user."""
    node.runtime.add_image("registry/named:1", user="app")
    node.runtime.add_image("registry/numbered:1", user="1000")
    images = {"c1": "registry/named:1", "c2": "registry/numbered:1"}
    web = node.want(
        pod(
            *(container(name, image=image) for name, image in images.items()),
            securityContext={"runAsNonRoot": True},
        )
    )
    await web.until_waiting("c1", "CreateContainerConfigError")
    await web.until_running("c2")
