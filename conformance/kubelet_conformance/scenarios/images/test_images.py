"""Images: when they are pulled, and how containers wait for them."""

import base64
import json
from typing import Any

from kubelet_conformance.node import Node, PodHandle, container, pod, witness

Json = dict[str, Any]


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
async def test_image_that_another_container_pulls(node: Node) -> None:
    """A container that never pulls starts as soon as another one of its pod has pulled its image."""
    policies = {"c1": "Never", "c2": "IfNotPresent"}
    apps = [container(name, image="registry/both:1", imagePullPolicy=how) for name, how in policies.items()]
    await node.run(*apps)


@witness("IMAGE-02")
async def test_image_that_is_never_pulled_is_waited_for(node: Node) -> None:
    """A container whose image may not be pulled waits until the image is there by other means."""
    web = node.want(pod(container(image="registry/brought:1", imagePullPolicy="Never")))
    await web.until_waiting("c1", "ErrImageNeverPull")
    await web.until_event("ErrImageNeverPull")
    await node.wait(30)
    node.runtime.add_image("registry/brought:1")
    await web.until_running("c1")


@witness("IMAGE-03", until=(1, 31))
async def test_image_is_looked_for_before_it_is_pulled(node: Node) -> None:
    """Up to 1.31 an image with the policy Always was looked for before it was pulled for each instance."""
    web = await node.run(container(image="registry/app:1", imagePullPolicy="Always"))
    web.exit(code=1)
    await web.until_running("c1", attempt=1)


@witness("IMAGE-04")
async def test_latest_goes_without_saying(node: Node) -> None:
    """An image without a tag is pulled as latest, and one with a digest as it is."""
    digest = f"registry/app@sha256:{'5f' * 32}"
    web = await node.run(container("c1", image="busybox"), container("c2", image=digest))
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)


@witness("IMAGE-06", undisturbed="it waits for what a fault lets pass unseen")
async def test_failed_look_is_no_reason_to_pull(node: Node) -> None:
    """When the runtime cannot say whether it has an image, that is reported and the image not pulled."""
    with node.fault("ImageStatus", code="UNKNOWN", message="the image store is away", times=2):
        web = node.want(pod(container(image="registry/app:1", imagePullPolicy="IfNotPresent")))
        await web.until_waiting("c1", "ImageInspectError")
        await web.until_event("InspectFailed")
        await web.until_running("c1")


@witness("IMAGE-07", "IMAGE-09")
async def test_failed_pulls_back_off(node: Node) -> None:
    """After each failed pull the next one comes later, and the container status reports what went wrong."""
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


@witness("IMAGE-24", "START-02", undisturbed="a fault of its own comes at a call that it counts")
async def test_image_has_to_be_seen_twice(node: Node) -> None:
    """A container is not made while its image, which was there, cannot be looked at for its user."""
    node.runtime.publish_image("registry/app:1")
    app = container(image="registry/app:1")
    await node.run(app, name="first")
    with node.fault("ImageStatus", code="UNKNOWN", message="the image store is away", first=2, times=1):
        web = node.want(pod(app))
        await web.until_waiting("c1", "CreateContainerConfigError")
        await web.until_running("c1")


@witness("IMAGE-05")
async def test_name_that_names_no_image(node: Node) -> None:
    """A container with an image name that cannot be read waits, and the others run."""
    web = node.want(pod(container("c1", image="Not/An Image"), container("c2")))
    await web.until_waiting("c1", "InvalidImageName")
    await web.until_event("InspectFailed")
    await web.until_running("c2")


@witness("IMAGE-10", kubernetes=(1, 27), undisturbed="it waits for what a fault lets pass unseen")
async def test_well_known_errors_of_a_registry(node: Node) -> None:
    """The reason of a failed pull in the status is the one that the runtime's error text begins with."""
    for reason in ("RegistryUnavailable", "SignatureValidationFailed"):
        with node.fault("PullImage", code="UNKNOWN", message=f"{reason}: it said nothing"):
            web = node.want(pod(container(image="registry/app:1"), name=reason.lower()))
            await web.until_waiting("c1", reason)
            await web.until_waiting("c1", "ImagePullBackOff")


@witness("IMAGE-17")
async def test_missing_image_holds_up_nobody_else(node: Node) -> None:
    """An app container whose image cannot be had keeps none after it from running."""
    node.runtime.publish_image("registry/none:1", there=False)
    node.runtime.add_image("registry/sibling:1")
    await (node.want(pod(container("c1"), name="first"))).until_running("c1")
    web = node.want(pod(container("c1", image="registry/none:1"), container("c2")))
    await web.until_waiting("c1", "ErrImagePull")
    await web.until_running("c2")
    await node.wait(6)


@witness("IMAGE-18")
async def test_way_to_a_container_is_told(node: Node) -> None:
    """A pull is reported by an event before it, and one after it with time and size, then its container."""
    with node.slow("PullImage", 2):
        web = await node.run(container("c1", image="registry/app:1"), container("c2"))
    web.exit("c1", 1)
    await web.until_running("c1", attempt=1)


@witness("IMAGE-11")
async def test_pulls_queue_up(node: Node) -> None:
    """Images are pulled one at a time."""
    with node.slow("PullImage", 4):
        pods = [node.want(pod(container(image=f"registry/{name}:1"), name=name)) for name in ("a", "b", "c")]
        for each in pods:
            await each.until_running("c1")


@witness("IMAGE-11", kubernetes=(1, 27), serialize_image_pulls=False, max_parallel_image_pulls=2)
async def test_so_many_pulls_at_a_time(node: Node) -> None:
    """Where pulls may run side by side, no more do than the configuration says."""
    with node.slow("PullImage", 4):
        pods = [node.want(pod(container(image=f"registry/{name}:1"), name=name)) for name in "abcde"]
        for each in pods:
            await each.until_running("c1")


@witness("IMAGE-12", serialize_image_pulls=False, registry_pull_qps=1, registry_burst=2)
async def test_pull_too_many_fails(node: Node) -> None:
    """A pull that comes too soon after others fails at once, and is made up for later."""
    with node.slow("PullImage", 3):
        pods = [node.want(pod(container(image=f"registry/{name}:1"), name=name)) for name in "abcde"]
        for each in pods:
            await each.until_running("c1")


@witness("IMAGE-12", serialize_image_pulls=False)
async def test_pulls_have_their_usual_limits(node: Node) -> None:
    """Ten images are pulled at once, of more that come at the same time only ten, and then five a second."""
    webs: list[PodHandle] = []
    for seconds, count in ((0, 10), (5, 12), (1, 8)):
        await node.wait(seconds)
        names = [f"web{len(webs) + each}" for each in range(count)]
        webs += [node.want(pod(container(image=f"registry/{name}:1"), name=name)) for name in names]
    for web in webs:
        await web.until_running("c1")


def registry_secret(name: str, **users: str) -> Json:
    """A pull secret with a user for each registry, whose password is the user's name."""
    text = json.dumps(
        {"auths": {where: {"username": user, "password": user} for where, user in users.items()}}
    )
    return {
        "metadata": {"name": name, "namespace": "default"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(text.encode()).decode()},
    }


@witness("IMAGE-13")
async def test_each_credential_is_tried(node: Node) -> None:
    """When the first credential that fits does not help, the next is tried at once."""
    node.runtime.protect_image("registry.local/app:1", "right", "right")
    for name in ("wrong", "right"):
        node.api.put("Secret", registry_secret(name, **{"registry.local": name}))
    both = [{"name": "wrong"}, {"name": "right"}]
    app = container(image="registry.local/app:1", imagePullPolicy="Always")
    web = node.want(pod(app, imagePullSecrets=both))
    await web.until_called("PullImage", count=2, within=2, contract="IMAGE-13")
    await web.until_running("c1")
    bare = await node.run(container(image="registry/free:1"), name="bare")
    await bare.until_running("c1")


_FITTING_KEYS = (
    *("registry.local", "https://registry.local/v1/", "http://registry.local/v2/", "*.local"),
    *("registry.local/team", "registry.local/team/app", "https://registry.local/team/", "registry.local/te"),
)
_OTHER_KEYS = ("registry", "local", "other.local", "registry.local/other", "registry.local/v3/", "*.other")


@witness("IMAGE-13", registry_pull_qps=0)
async def test_credentials_are_for_a_place_in_a_registry(node: Node) -> None:
    """A credential fits the images of its registry, or of its place in it, however the key is written."""
    hub = "docker.io/library/app:1"
    secrets = {key: registry_secret("name", **{key: "right"}) for key in (*_FITTING_KEYS, *_OTHER_KEYS)}
    secrets["old"] = _old_secret("registry.local", "right")
    secrets[hub] = registry_secret("hub", **{"https://index.docker.io/v1/": "right"})
    pulling: dict[str, PodHandle] = {}
    for number, (key, secret) in enumerate(secrets.items()):
        app = container(
            image=hub if key == hub else f"registry.local/team/app{number}:1", imagePullPolicy="Always"
        )
        node.runtime.protect_image(app["image"], "right", "right")
        node.api.put("Secret", {**secret, "metadata": {"name": f"s{number}", "namespace": "default"}})
        pulling[key] = node.want(pod(app, name=f"p{number}", imagePullSecrets=[{"name": f"s{number}"}]))
    for key in (*_FITTING_KEYS, "old", hub):
        await pulling[key].until_running("c1", within=60, contract="IMAGE-13")
    for key in _OTHER_KEYS:
        await pulling[key].until_called("PullImage", within=60, contract="IMAGE-13")
    given = [key for key in _OTHER_KEYS if pulling[key].calls("PullImage")[0].request.auth.username]
    await node.expect("credentials for other places are not used", lambda: given, "IMAGE-13")


def _old_secret(where: str, user: str) -> Json:
    """A pull secret of the older kind."""
    entry = {"auth": base64.b64encode(f"{user}:{user}".encode()).decode()}
    text = json.dumps({where: entry})
    return {
        "type": "kubernetes.io/dockercfg",
        "data": {".dockercfg": base64.b64encode(text.encode()).decode()},
    }


@witness("IMAGE-14", "LOOP-22")
async def test_missing_secret_keeps_nothing_from_being_pulled(node: Node) -> None:
    """A pod that names a pull secret that is not there is started all the same."""
    app = container(image="registry/app:1", imagePullPolicy="Always")
    web = node.want(pod(app, imagePullSecrets=[{"name": "none"}]))
    await web.until_running("c1")
    await node.wait(6)


@witness("IMAGE-19")
async def test_policy_of_static_pods_follows_from_the_tag(node: Node) -> None:
    """A manifest without a pull policy has its image pulled each time if its tag is latest, or missing."""
    node.runtime.add_image("registry/there:1")
    node.runtime.add_image("registry/newest:latest")
    images = {"c1": "registry/there:1", "c2": "registry/newest", "c3": "registry/absent:1"}
    web = node.want_static(pod(*(container(name, image=image) for name, image in images.items())))
    await web.until_running(*images)
    for name in images:
        web.exit(name, 1)
    await web.until_running(*images, attempt=1)


@witness(
    "IMAGE-21",
    kubernetes=(1, 35),
    undisturbed="an image whose pull failed after all is one that was there before",
)
async def test_image_of_another_has_to_be_earned(node: Node) -> None:
    """An image that one pod pulled with its secret is for others only if the registry gives it to them."""
    node.runtime.protect_image("registry.local/app:1", "right", "right")
    node.api.put("Secret", registry_secret("right", **{"registry.local": "right"}))
    app = container(image="registry.local/app:1", imagePullPolicy="IfNotPresent")
    owner = await node.run(app, name="owner", imagePullSecrets=[{"name": "right"}])
    thief = node.want(pod(app, name="thief"))
    await thief.until_waiting("c1", "ErrImagePull")
    strict = node.want(pod(container(image="registry.local/app:1", imagePullPolicy="Never"), name="strict"))
    await strict.until_waiting("c1", "ErrImageNeverPull")
    await node.restart_kubelet()
    late = node.want(pod(app, name="late"))
    await late.until_waiting("c1", "ErrImagePull")
    friend = await node.run(app, name="friend", imagePullSecrets=[{"name": "right"}])
    owner.exit(code=1)
    await owner.until_running("c1", attempt=1)
    await friend.until_running("c1")
    # The same credential from another secret is as good.
    node.api.put("Secret", registry_secret("twin", **{"registry.local": "right"}))
    twin = await node.run(app, name="twin", imagePullSecrets=[{"name": "twin"}])
    await _expect_no_pulls(node, twin)


async def _expect_no_pulls(node: Node, *pods: PodHandle) -> None:
    pulled = [each.name for each in pods if each.calls("PullImage")]
    await node.expect("nothing is pulled again", lambda: pulled, "IMAGE-21")


@witness("IMAGE-21", kubernetes=(1, 35))
async def test_image_that_nobody_pulled_or_anybody_may_is_for_all(node: Node) -> None:
    """An image that was on the node before, or was pulled without any secret, is for every pod."""
    node.runtime.add_image("registry/loaded:1")
    loaded = await node.run(container(image="registry/loaded:1"), name="loaded")
    await node.run(container(image="registry/free:1"), name="first")
    await node.restart_kubelet()
    second = await node.run(container(image="registry/free:1"), name="second")
    await _expect_no_pulls(node, loaded, second)


@witness("IMAGE-21", kubernetes=(1, 35), image_pull_credentials_verification_policy="AlwaysVerify")
async def test_image_that_was_there_may_have_to_be_earned(node: Node) -> None:
    """With the policy AlwaysVerify an image that was on the node before has to be pulled too."""
    node.runtime.add_image("registry/loaded:1")
    loaded = await node.run(container(image="registry/loaded:1"))
    await node.expect("it is pulled", lambda: () if loaded.calls("PullImage") else ("it is not",), "IMAGE-21")


@witness(
    "IMAGE-21",
    kubernetes=(1, 35),
    image_pull_credentials_verification_policy="NeverVerifyAllowlistedImages",
    preloaded_images_verification_allowlist=("registry.local/free/*", "img"),
)
async def test_only_listed_images_that_were_there_are_for_all(node: Node) -> None:
    """Of images that were on the node before those that are listed need no pull, and others do."""
    images = {"free": "registry.local/free/app:1", "img": "img:1", "other": "registry.local/app:1"}
    for each in images.values():
        node.runtime.add_image(each)
    every = [await node.run(container(image=image), name=name) for name, image in images.items()]
    pulled = [each.name for each in every if each.calls("PullImage")]
    await node.expect("one is pulled", lambda: pulled if pulled != ["other"] else [], "IMAGE-21")


@witness(
    "IMAGE-21",
    kubernetes=(1, 35),
    image_pull_credentials_verification_policy="NeverVerifyAllowlistedImages",
    preloaded_images_verification_allowlist=("registry.local/app",),
)
async def test_listed_image_of_another_is_for_all(node: Node) -> None:
    """An image that is listed is for every pod, also where one pod pulled it with its secret."""
    await _image_of_another_is_used(node)


@witness("IMAGE-21", kubernetes=(1, 35), image_pull_credentials_verification_policy="NeverVerify")
async def test_image_of_another_may_be_for_all(node: Node) -> None:
    """With the policy NeverVerify an image that one pod pulled with its secret is for every pod."""
    await _image_of_another_is_used(node)


async def _image_of_another_is_used(node: Node) -> None:
    node.runtime.protect_image("registry.local/app:1", "right", "right")
    node.api.put("Secret", registry_secret("right", **{"registry.local": "right"}))
    app = container(image="registry.local/app:1", imagePullPolicy="IfNotPresent")
    await node.run(app, name="owner", imagePullSecrets=[{"name": "right"}])
    other = node.want(pod(app, name="other"))
    await other.until_running("c1", contract="IMAGE-21")
    await _expect_no_pulls(node, other)


@witness("IMAGE-23")
async def test_good_pull_ends_no_other_back_off(node: Node) -> None:
    """An image that came does not make another come sooner that has just failed."""
    node.runtime.publish_image("registry/late:1", there=False)
    node.runtime.publish_image("registry/later:1", there=False)
    web = node.want(pod(container("c1", image="registry/late:1"), container("c2", image="registry/later:1")))
    await web.until_called("PullImage", count=4)
    node.runtime.publish_image("registry/late:1")
    await web.until_running("c1")
    await web.until_called("PullImage", count=6)
    node.runtime.publish_image("registry/later:1")
    await web.until_running("c2")


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


@witness(
    "IMAGE-21",
    kubernetes=(1, 35),
    undisturbed="an image whose pull failed after all is one that was there before",
)
async def test_credential_that_was_replaced_counts_no_more(node: Node) -> None:
    """Of a secret that has brought an image twice only what it held the last time is remembered."""
    image = "registry.local/app:1"
    app = container(image=image, imagePullPolicy="IfNotPresent")
    for user in ("old", "new"):
        node.runtime.protect_image(image, user, user)
        node.api.put("Secret", registry_secret("own", **{"registry.local": user}))
        node.api.put("Secret", registry_secret(user, **{"registry.local": user}))
        await node.run(app, name=f"with-{user}", imagePullSecrets=[{"name": "own"}])
    late = node.want(pod(app, name="late", imagePullSecrets=[{"name": "old"}]))
    await late.until_waiting("c1", "ErrImagePull", contract="IMAGE-21")
    twin = await node.run(app, name="twin", imagePullSecrets=[{"name": "new"}])
    await _expect_no_pulls(node, twin)


@witness("IMAGE-13")
async def test_secret_of_another_kind_gives_no_credentials(node: Node) -> None:
    """A pod that names a secret which is for no registry has its image pulled without credentials."""
    node.api.put("Secret", {"metadata": {"namespace": "default", "name": "other"}, "data": {"a": "Yg=="}})
    app = container(image="registry/app:1", imagePullPolicy="Always")
    web = node.want(pod(app, imagePullSecrets=[{"name": "other"}]))
    await web.until_running("c1", contract="IMAGE-13")


@witness("IMAGE-14", kubernetes=(1, 32))
async def test_missing_secret_is_reported(node: Node) -> None:
    """An event says which pull secrets of a pod are missing."""
    app = container(image="registry/app:1", imagePullPolicy="Always")
    # What a pull is said to take may be less than a second.
    with node.slow("PullImage", 0.25):
        web = node.want(pod(app, imagePullSecrets=[{"name": "none"}]))
        await web.until_event("FailedToRetrieveImagePullSecret", contract="EVENTS-01")
        await web.until_running("c1")


@witness("IMAGE-21", kubernetes=(1, 35))
async def test_pull_that_failed_claims_no_image(node: Node) -> None:
    """An image that could not be pulled, and came by other means, is for every pod."""
    node.runtime.publish_image("registry/late:1", there=False)
    app = container(image="registry/late:1", imagePullPolicy="IfNotPresent")
    web = node.want(pod(app))
    await web.until_waiting("c1", "ImagePullBackOff")
    node.runtime.add_image("registry/late:1")
    await web.until_running("c1", contract="IMAGE-21")
    other = await node.run(app, name="other")
    await _expect_no_pulls(node, other)


@witness("START-02")
async def test_image_of_root_is_refused(node: Node) -> None:
    """A container that must not run as root is refused an image whose user is root, or that names none."""
    node.runtime.add_image("registry/root:1", user="0")
    images = {"c1": "registry/root:1", "c2": "registry/bare:1"}
    web = node.want(
        pod(
            *(container(name, image=image) for name, image in images.items()),
            container("c3", image="registry/root:1", securityContext={"runAsUser": 1000}),
            securityContext={"runAsNonRoot": True},
        )
    )
    for name in images:
        await web.until_waiting(name, "CreateContainerConfigError", contract="START-02")
    await web.until_running("c3", contract="START-02")


@witness("IMAGE-22", undisturbed="it looks at a moment that a fault puts off")
async def test_why_root_is_refused(node: Node) -> None:
    """A container that must not run as root, and would or might, waits with the reason."""
    node.runtime.add_image("registry/root:1", user="0")
    node.runtime.add_image("registry/named:1", user="app")
    cases = {
        "image": (container("image", image="registry/root:1"), "image will run as root"),
        "named": (container("named", image="registry/named:1"), "image has non-numeric user (app)"),
        "own": (container("own", securityContext={"runAsUser": 0}), "runAsUser breaks non-root policy"),
    }
    every = [one for one, _ in cases.values()]
    web = node.want(pod(*every, securityContext={"runAsNonRoot": True}))
    for name in cases:
        await web.until_waiting(name, "CreateContainerConfigError", within=60)
    said = {name: web.container_status(name)["state"]["waiting"]["message"] for name in cases}
    wrong = [f"{name}: {said[name]}" for name, (_, why) in cases.items() if why not in said[name]]
    await node.expect("they say why", lambda: wrong, "IMAGE-22")
