"""Bugs of images: when they are looked for and pulled, and what is made of what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod, Secret

from kubelet_bugs.bug import Bug
from kubelet_reference.cri_client import CriClient, OperationMeter
from kubelet_reference.image_decision import ImageFacts, ImageStep, Presence, image_decision
from kubelet_reference.images import EnsuredImage, ImageManager, WantedImage
from kubelet_reference.keyring import Credential
from kubelet_reference.parts import Parts
from kubelet_reference.pods import AnyContainer
from kubelet_reference.ports import ImageService, RuntimeService
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.settings import Settings
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_result import Failure, StartError


class _RemembersImages(CriClient):
    """Takes an image that has been there once for one that stays there."""

    def __init__(
        self,
        runtime: RuntimeService,
        images: ImageService,
        settings: Settings,
        meter: OperationMeter | None = None,
    ) -> None:
        super().__init__(runtime, images, settings, meter)
        self._known: dict[str, cri.Image] = {}

    async def image_status(self, image: cri.ImageSpec) -> cri.Image | None:
        found = self._known.get(image.image) or await super().image_status(image)
        if found is not None:
            self._known[image.image] = found
        return found


class _AlwaysIsOnce(ImageManager):
    """Takes the policy Always for IfNotPresent."""

    def policy(self, container: AnyContainer) -> str:
        found = super().policy(container)
        return "IfNotPresent" if found == "Always" else found


class _NeverAsksForAlways(ImageManager):
    """Does not look for an image that is pulled anyhow."""

    def asks_first(self, policy: str) -> bool:
        return policy != "Always"


class _FullyNamed(ImageManager):
    """Completes short names by a registry."""

    def _named(self, pod: Pod, container: AnyContainer) -> cri.ImageSpec:
        found = super()._named(pod, container)
        if "/" not in found.image:
            found.image = f"docker.io/library/{found.image}"
        return found


class _OneBackOffForAll(ImageManager):
    """Holds back every pod when one could not pull an image."""

    def _key(self, wanted: WantedImage) -> str:
        return wanted.name


class _BackOffForEach(ImageManager):
    """Gives each container of a pod a back-off of its own."""

    def _key(self, wanted: WantedImage) -> str:
        return f"{super()._key(wanted)}_{wanted.container.name}"


class _SaysNoMore(ImageManager):
    """Does not repeat why the pull before has failed."""

    def _refuse_by_backoff(self, wanted: WantedImage) -> StartError:
        refusal = super()._refuse_by_backoff(wanted)
        return StartError(Failure.IMAGE_PULL_BACK_OFF, str(refusal).partition(": ")[0])


class _WithoutSandbox(ImageManager):
    """Does not tell the runtime for which sandbox it pulls."""

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        return await super()._pull(replace(wanted, sandbox_config=cri.PodSandboxConfig()), credentials)


class _ByItsTag(ImageManager):
    """Has containers made from the image's name, whatever that means by now."""

    async def ensure(
        self,
        pod: Pod,
        container: AnyContainer,
        sandbox_config: cri.PodSandboxConfig,
        pull_secrets: Sequence[Secret] = (),
    ) -> EnsuredImage:
        found = await super().ensure(pod, container, sandbox_config, pull_secrets)
        return EnsuredImage(found.name, found.name)


class _AnyUser(ContainerStarter):
    """Does not ask which user an image brings."""

    async def _image_of(self, into: PodToStart, container: AnyContainer, image: EnsuredImage) -> cri.Image:
        del into, container
        return cri.Image(id=image.ref)


def _unsure_is_absent(facts: ImageFacts) -> ImageStep:
    """Pulls an image that the runtime could not look for."""
    absent = Presence.ABSENT if facts.presence is Presence.FAILED else facts.presence
    return image_decision(replace(facts, presence=absent))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-IMAGE-01",
        "An image that was found once is not looked for again.",
        lambda: Parts(cri_client=_RemembersImages),
        ("IMAGE-01",),
    ),
    Bug(
        "MUT-IMAGE-02",
        "An image with the policy Always is pulled only where it is absent.",
        lambda: Parts(runtime=RuntimeParts(image_manager=_AlwaysIsOnce)),
        ("IMAGE-02",),
    ),
    Bug(
        "MUT-IMAGE-03",
        "An image with the policy Always is pulled without being looked for.",
        lambda: Parts(runtime=RuntimeParts(image_manager=_NeverAsksForAlways)),
        ("IMAGE-03",),
        kubernetes="1.26",
    ),
    Bug(
        "MUT-IMAGE-04",
        "Short names of images are completed by a registry.",
        lambda: Parts(runtime=RuntimeParts(image_manager=_FullyNamed)),
        ("IMAGE-04",),
    ),
    Bug(
        "MUT-IMAGE-06",
        "An image is pulled because the runtime could not say whether it is there.",
        lambda: Parts(runtime=RuntimeParts(image_decision=_unsure_is_absent)),
        ("IMAGE-06",),
    ),
    Bug(
        "MUT-IMAGE-08",
        "Every pod waits because one of them could not pull an image.",
        lambda: Parts(runtime=RuntimeParts(image_manager=_OneBackOffForAll)),
        ("IMAGE-08",),
    ),
    Bug(
        "MUT-IMAGE-08-B",
        "Two containers of a pod pull the same image, though it has just failed for the first.",
        lambda: Parts(runtime=RuntimeParts(image_manager=_BackOffForEach)),
        ("IMAGE-08", "IMAGE-07"),
    ),
    Bug(
        "MUT-IMAGE-09",
        "A container that waits for its image does not tell why the pull has failed.",
        lambda: Parts(runtime=RuntimeParts(image_manager=_SaysNoMore)),
        ("IMAGE-09",),
    ),
    Bug(
        "MUT-IMAGE-15",
        "The runtime is not told for which sandbox it pulls an image.",
        lambda: Parts(runtime=RuntimeParts(image_manager=_WithoutSandbox)),
        ("IMAGE-15",),
    ),
    Bug(
        "MUT-IMAGE-16",
        "Containers are made from the image's tag instead of what was found under it.",
        lambda: Parts(runtime=RuntimeParts(image_manager=_ByItsTag)),
        ("IMAGE-16",),
    ),
    Bug(
        "MUT-IMAGE-24",
        "Nobody asks which user an image brings.",
        lambda: Parts(runtime=RuntimeParts(starter=_AnyUser)),
        ("IMAGE-24",),
    ),
)
