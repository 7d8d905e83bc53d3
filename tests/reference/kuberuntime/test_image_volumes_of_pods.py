"""Volumes that show images: who pulls them, and who is held up by one that is missing (IMAGE-20)."""

from typing import cast

import pytest
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, ImageVolumeSource, Pod, PodSpec, Volume, VolumeMount

from kubelet_fakes.clock import run
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import PodRecords
from kubelet_reference.api.sync_result import Failure, StartError
from kubelet_reference.images.image_manager import EnsuredImage, ImageManager
from kubelet_reference.kuberuntime.container.start_container import ImageVolumes, StartContext, image_mounts
from kubelet_reference.util.versions import Behaviour

NEW, OLD = Behaviour.of("1.36"), Behaviour.of("1.30")


class Images:
    """Has every image but `late:1`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def ensure(self, pod: Pod, container: AnyContainer, *_: object) -> EnsuredImage:
        """The image."""
        del pod
        self.asked.append(f"{container.image} {container.imagePullPolicy}")
        if container.image == "late:1":
            raise StartError(Failure.ERR_IMAGE_PULL, "no such image")
        return EnsuredImage(container.image or "", f"sha256:{container.image}")


def mounting(volume: str, path: str = "/data") -> Container:
    """A container that mounts the volume."""
    return Container(name="c1", volumeMounts=[VolumeMount(name=volume, mountPath=path, subPath="some")])


def begun(*containers: Container) -> StartContext:
    """A pod whose sandbox is there."""
    data = ImageVolumeSource(reference="data:1", pullPolicy="Always")
    volumes = [
        Volume(name="data", image=data),
        Volume(name="late", image=ImageVolumeSource(reference="late:1")),
        Volume(name="empty"),
    ]
    pod = Pod(spec=PodSpec(containers=list(containers), volumes=volumes))
    return StartContext(pod, PodRecords("u1"), "s1", cri.PodSandboxConfig(), ())


def ready(images: Images, behaviour: Behaviour) -> StartContext:
    """The same with its images."""
    return run(ImageVolumes(cast("ImageManager", images), behaviour).ready(begun()))


def test_images_are_had_before_containers() -> None:
    """Each image of a volume is asked for by its own policy; other volumes are none."""
    images = Images()
    context = ready(images, NEW)

    assert images.asked == ["data:1 Always", "late:1 None"]
    assert context.images["data"] == EnsuredImage("data:1", "sha256:data:1")


def test_image_is_mounted_by_the_runtime() -> None:
    """The runtime gets the image, the part of it and the mount's place."""
    [mount] = image_mounts(ready(Images(), NEW), mounting("data"))

    assert (mount.image.image, mount.container_path, mount.readonly) == ("sha256:data:1", "/data", True)
    assert mount.image_sub_path == "some"


def test_missing_image_holds_its_users_up() -> None:
    """Who mounts it gets its reason, who does not gets nothing."""
    context = ready(Images(), NEW)
    with pytest.raises(StartError, match="no such image"):
        list(image_mounts(context, mounting("late")))

    assert not list(image_mounts(context, mounting("empty")))
    assert not list(image_mounts(context, Container(name="c1")))


def test_gate_is_off() -> None:
    """A kubelet without image volumes asks for none."""
    images = Images()

    assert not ready(images, OLD).images
    assert not images.asked
