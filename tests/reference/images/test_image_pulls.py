"""Images on their way into the node: policy, back-off, order, credentials, and what is reported of it."""

import asyncio
import base64
import json
from typing import Any, cast

import pytest
from lightkube.models.core_v1 import Pod, Secret
from on_loop import run_by
from runtime_world import RuntimeWorld, a_container, a_pod, in_runtime_world

from kubelet_reference.api.sync_result import Failure
from kubelet_reference.images.keyring import secret_credentials
from kubelet_reference.util.settings import Settings


def _absent(name: str = "new:1", **fields: Any) -> Pod:
    return a_pod(a_container("c1", image=name, **fields))


@run_by(in_runtime_world)
async def test_absent_image_is_pulled(w: RuntimeWorld) -> None:
    """It is looked for, pulled, and used by the reference that the pull gave (IMAGE-02, 15, 18)."""
    await w.sync(_absent())

    (pull,) = w.calls("PullImage")
    assert [call.rpc for call in w.runtime.calls[4:9]] == [
        "ImageStatus",
        "PullImage",
        "ImageStatus",
        "ImageStatus",
        "CreateContainer",
    ]
    assert pull.timeout is None
    assert pull.request.sandbox_config == w.calls("RunPodSandbox")[0].request.config
    assert w.calls("CreateContainer")[0].request.config.image.image.startswith("sha256:")
    assert w.events("Pulling") == ['Pulling image "new:1"']
    assert w.events("Pulled")[0].startswith('Successfully pulled image "new:1" in 0s (0s including waiting)')


def test_always_is_not_looked_for() -> None:
    """With Always the pull comes first since 1.32; before that the image was looked for (IMAGE-03)."""

    async def first(w: RuntimeWorld) -> None:
        await w.sync(a_pod(a_container("c1", imagePullPolicy="Always")))

        assert w.runtime.calls[4].rpc == "PullImage"

    async def last(w: RuntimeWorld) -> None:
        await w.sync(a_pod(a_container("c1", imagePullPolicy="Always")))

        assert [call.rpc for call in w.runtime.calls[4:6]] == ["ImageStatus", "PullImage"]

    in_runtime_world(first)
    in_runtime_world(last, version="1.26")


@run_by(in_runtime_world)
async def test_never(w: RuntimeWorld) -> None:
    """With Never nothing is pulled (IMAGE-02)."""
    result = await w.sync(_absent(imagePullPolicy="Never"))

    text = 'Container image "new:1" is not present with pull policy of Never'
    assert [(one.reason, one.message) for one in result.failures] == [(Failure.ERR_IMAGE_NEVER_PULL, text)]
    assert w.events() == [f"ErrImageNeverPull: {text}", "Failed: Error: ErrImageNeverPull"]


@run_by(in_runtime_world)
async def test_failed_pull_backs_off(w: RuntimeWorld) -> None:
    """Pulls come at 0, 10 and 30 s; in between the refusal tells the error before (IMAGE-07, IMAGE-09)."""
    w.runtime.faults.add("PullImage", message="no route")
    pod, messages = _absent(), list[str]()
    for _ in range(32):
        result = await w.sync(pod)
        messages += [f"{one.reason}: {one.message}" for one in result.failures]
        await w.clock.sleep(1)

    assert [call.t for call in w.calls("PullImage")] == [0, 10, 30]
    assert messages[0] == "ErrImagePull: no route"
    assert messages[1] == 'ImagePullBackOff: Back-off pulling image "new:1": ErrImagePull: no route'
    assert w.events("Failed")[:3] == [
        'Failed to pull image "new:1": no route',
        "Error: ErrImagePull",
        "Error: ImagePullBackOff",
    ]


@run_by(in_runtime_world, version="1.26")
async def test_old_texts(w: RuntimeWorld) -> None:
    """Up to 1.26 pull errors kept their wrapper, and the refusal said little (START-03, IMAGE-09)."""
    w.runtime.faults.add("PullImage", message="no route")
    first, second = await w.sync(_absent()), await w.sync(_absent())

    assert first.failures[0].message == "rpc error: code = Unknown desc = no route"
    assert second.failures[0].message == 'Back-off pulling image "new:1"'


@run_by(in_runtime_world)
async def test_known_prefix(w: RuntimeWorld) -> None:
    """Two well-known prefixes of the runtime's text become reasons (IMAGE-10)."""
    w.runtime.faults.add("PullImage", message="RegistryUnavailable: 503")

    result = await w.sync(_absent())

    text = "image pull failed for new:1 because the registry is unavailable: 503"
    assert [(one.reason, one.message) for one in result.failures] == [(Failure.REGISTRY_UNAVAILABLE, text)]


@pytest.mark.parametrize(("serial", "begun"), [(True, [0, 5]), (False, [0, 0])])
def test_one_pull_at_a_time(serial: bool, begun: list[int]) -> None:  # noqa: FBT001 - a parameter
    """Pulls of different pods follow each other, unless the node allows otherwise (IMAGE-11)."""

    async def work(w: RuntimeWorld) -> None:
        w.runtime.faults.delay("PullImage", 5)
        other = a_pod(a_container("c1", image="new:2"), uid="u2", metadata={"name": "other"})

        await asyncio.gather(w.sync(_absent()), w.sync(other))

        assert [call.t for call in w.calls("PullImage")] == begun

    in_runtime_world(work, settings=Settings(serialize_image_pulls=serial))


@run_by(in_runtime_world, settings=Settings(serialize_image_pulls=False, max_parallel_image_pulls=2))
async def test_so_many_pulls_at_a_time(w: RuntimeWorld) -> None:
    """Side by side no more images are pulled than the configuration allows (IMAGE-11)."""
    w.runtime.faults.delay("PullImage", 2)
    pods = [
        a_pod(a_container("c1", image=f"new:{name}"), uid=name, metadata={"name": name}) for name in "abc"
    ]

    await asyncio.gather(*(w.sync(each) for each in pods))

    assert [call.t for call in w.calls("PullImage")] == [0, 0, 2]


@run_by(in_runtime_world, settings=Settings(registry_burst=2))
async def test_too_many_pulls(w: RuntimeWorld) -> None:
    """Beyond the registry's limit a pull fails at once, without a call (IMAGE-12)."""
    many = [a_container(f"c{number}", image=f"new:{number}") for number in range(3)]

    result = await w.sync(a_pod(*many))

    assert len(w.calls("PullImage")) == 2
    assert [one.message for one in result.failures] == ["pull QPS exceeded"]


def _secret(auths: dict[str, Any]) -> Secret:
    content = base64.b64encode(json.dumps({"auths": auths}).encode()).decode()
    data = {".dockerconfigjson": content}
    return cast("Secret", Secret.from_dict({"data": data}))  # pyright: ignore[reportUnknownMemberType]


def test_credentials() -> None:
    """Those that fit the image are found, the most specific first (IMAGE-13)."""
    both = {"quay.io": {"username": "a", "password": "p"}, "quay.io/team": {"auth": "Yjpx"}}
    known = [_secret(both), _secret({"https://index.docker.io/v1/": {"username": "hub"}})]

    assert [one.auth.username for one in secret_credentials("quay.io/team/app:1", known)] == ["b", "a"]
    assert [one.auth.username for one in secret_credentials("busybox", known)] == ["hub"]
    assert secret_credentials("gcr.io/app", known) == ()


@run_by(in_runtime_world)
async def test_each_credential_is_tried(w: RuntimeWorld) -> None:
    """A refused credential is followed by the next (IMAGE-13)."""
    w.runtime.faults.add("PullImage", times=1)
    auths = {"docker.io": {"username": "a"}, "docker.io/library": {"username": "b"}}
    pod = _absent()

    result = await w.manager.sync_pod(pod, await w.records(pod), [_secret(auths)])

    assert result.error is None
    assert [call.request.auth.username for call in w.calls("PullImage")] == ["b", "a"]
