"""Bugs of images: when one is pulled, who waits for whom, with which credentials, and what is reported."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import grpc
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod, Secret

from kubelet_bugs.bug import bug
from kubelet_bugs.kuberuntime.needed_containers import NeedsContainers
from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.sync_result import Failure, StartError
from kubelet_reference.cri.client import CriClient
from kubelet_reference.images.image_manager import EnsuredImage, ImageManager, WantedImage
from kubelet_reference.images.image_names import with_default_tag
from kubelet_reference.images.image_pull_rules import ImageFacts, ImageStep, Presence, image_decision
from kubelet_reference.images.keyring import Credential
from kubelet_reference.kuberuntime.container.start_container import ContainerStarter, StartContext
from kubelet_reference.util.backoff import Backoff
from kubelet_reference.util.settings import Settings


@bug("MUT-IMAGE-01", breaks="IMAGE-01")
class RemembersImages(CriClient):
    """An image that was found once is not looked for again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._known: dict[str, cri.Image] = {}

    async def image_status(self, image: cri.ImageSpec) -> cri.Image | None:
        found = self._known.get(image.image) or await super().image_status(image)
        if found is not None:
            self._known[image.image] = found
        return found


@bug("MUT-IMAGE-02", breaks="IMAGE-02")
class AlwaysIsOnce(ImageManager):
    """An image with the policy Always is pulled only where it is absent."""

    def policy(self, container: AnyContainer) -> str:
        found = super().policy(container)
        return "IfNotPresent" if found == "Always" else found


@bug("MUT-IMAGE-03", breaks="IMAGE-03", kubernetes="1.26")
class NeverAsksForAlways(ImageManager):
    """An image with the policy Always is pulled without being looked for."""

    def asks_first(self, policy: str) -> bool:
        return policy != "Always"


@bug("MUT-IMAGE-04", breaks="IMAGE-04")
class FullyNamed(ImageManager):
    """Short names of images are completed by a registry."""

    def _named(self, pod: Pod, container: AnyContainer) -> cri.ImageSpec:
        found = super()._named(pod, container)
        if "/" not in found.image:
            found.image = f"docker.io/library/{found.image}"
        return found


@bug("MUT-IMAGE-08", breaks="IMAGE-08")
class OneBackOffForAll(ImageManager):
    """Every pod waits because one of them could not pull an image."""

    def _key(self, wanted: WantedImage) -> str:
        return wanted.name


@bug("MUT-IMAGE-08-B", breaks=("IMAGE-08", "IMAGE-07"))
class BackOffForEach(ImageManager):
    """Two containers of a pod pull the same image, though it has just failed for the first."""

    def _key(self, wanted: WantedImage) -> str:
        return f"{super()._key(wanted)}_{wanted.container.name}"


@bug("MUT-IMAGE-09", breaks="IMAGE-09")
class SaysNoMore(ImageManager):
    """The status of a container that waits for its image does not say why the pull has failed."""

    def _refuse_by_backoff(self, wanted: WantedImage) -> StartError:
        refusal = super()._refuse_by_backoff(wanted)
        return StartError(Failure.IMAGE_PULL_BACK_OFF, str(refusal).partition(": ")[0])


@bug("MUT-IMAGE-15", breaks="IMAGE-15")
class WithoutSandbox(ImageManager):
    """A pull request does not say for which sandbox the image is."""

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        return await super()._pull(replace(wanted, sandbox_config=cri.PodSandboxConfig()), credentials)


@bug("MUT-IMAGE-16", breaks="IMAGE-16")
class ByItsTag(ImageManager):
    """Containers are made from the image's tag instead of what was found under it."""

    async def ensure(
        self,
        pod: Pod,
        container: AnyContainer,
        sandbox_config: cri.PodSandboxConfig,
        pull_secrets: Sequence[Secret] = (),
    ) -> EnsuredImage:
        found = await super().ensure(pod, container, sandbox_config, pull_secrets)
        return EnsuredImage(found.name, found.name)


@bug("MUT-IMAGE-24", breaks="IMAGE-24")
class AnyUser(ContainerStarter):
    """The user of an image is never checked."""

    async def _image_of(
        self, context: StartContext, container: AnyContainer, image: EnsuredImage
    ) -> cri.Image:
        return cri.Image(id=image.ref)


@bug("MUT-IMAGE-06", breaks="IMAGE-06", part="image_decision")
def unsure_is_absent(facts: ImageFacts) -> ImageStep:
    """An image is pulled because the runtime could not say whether it is there."""
    absent = Presence.ABSENT if facts.presence is Presence.FAILED else facts.presence
    return image_decision(replace(facts, presence=absent))


@bug("MUT-IMAGE-05", breaks="IMAGE-05")
class AnyName(ImageManager):
    """The runtime is asked for images by names that name none."""

    def _named(self, pod: Pod, container: AnyContainer) -> cri.ImageSpec:
        try:
            with_default_tag(container.image or "")
        except ValueError:
            return cri.ImageSpec(image=container.image or "", annotations=pods.annotations(pod))
        return super()._named(pod, container)


@bug("MUT-IMAGE-10", breaks="IMAGE-10")
class KnowsNoReason(ImageManager):
    """The well-known errors of pulls are reported like any other."""

    def _explained(self, wanted: WantedImage, error: grpc.RpcError) -> StartError:
        return StartError(Failure.ERR_IMAGE_PULL, str(super()._explained(wanted, error)))


@bug("MUT-IMAGE-11", breaks="IMAGE-11")
class AllAtOnce(ImageManager):
    """Images are pulled side by side, whatever the configuration says."""

    def _make_turns(self, settings: Settings) -> asyncio.Semaphore | None:
        return None


@bug("MUT-IMAGE-12", breaks="IMAGE-12")
class Waits(ImageManager):
    """A pull that comes too soon waits instead of failing."""

    async def _let_through(self) -> None:
        while not self._throttle.accepts():
            await self.tools.clock.sleep(0.2)


@bug("MUT-IMAGE-13", breaks="IMAGE-13")
class FirstCredential(ImageManager):
    """Of several credentials only the first is tried."""

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        return await super()._pull(wanted, credentials[:1])


@bug("MUT-IMAGE-14", breaks="IMAGE-14")
class EverySecret(ImageManager):
    """A pull secret that is missing keeps its pod from starting."""

    async def ensure(
        self,
        pod: Pod,
        container: AnyContainer,
        sandbox_config: cri.PodSandboxConfig,
        pull_secrets: Sequence[Secret] = (),
    ) -> EnsuredImage:
        if len(pull_secrets) < len(pods.spec(pod).imagePullSecrets or ()):
            raise StartError(Failure.CONTAINER_CONFIG, "a pull secret is missing")
        return await super().ensure(pod, container, sandbox_config, pull_secrets)


@bug("MUT-IMAGE-17", breaks="IMAGE-17")
class AllOrNone(NeedsContainers):
    """A container that cannot be started keeps those after it from being tried."""

    def is_needed(self, container: AnyContainer, kind: str) -> bool:
        return True


@bug("MUT-IMAGE-18", breaks="IMAGE-18")
class ToldTooSoon(ImageManager):
    """An image is reported as present before its pull is."""

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        name = wanted.container.name
        self.tools.recorder.normal(
            wanted.pod, Reason.PULLED, f'Successfully pulled image "{wanted.name}"', name
        )
        return await super()._pull(wanted, credentials)


@bug("MUT-IMAGE-19", breaks="IMAGE-19")
class LatestStays(ImageManager):
    """An image called latest is pulled only once."""

    def policy(self, container: AnyContainer) -> str:
        is_latest = with_default_tag(container.image or "").endswith(":latest")
        return "IfNotPresent" if is_latest else super().policy(container)


@bug("MUT-IMAGE-21", breaks="IMAGE-21", kubernetes="1.35")
class AnybodysImages(ImageManager):
    """A pod may use an image that another has pulled with its secrets."""

    def _may_use(self, wanted: WantedImage, ref: str, credentials: Sequence[Credential]) -> bool:
        return True


@bug("MUT-IMAGE-22", breaks="IMAGE-22")
class AsRoot(ContainerStarter):
    """A container that must not run as root is made without a look at its image's user."""

    async def _image_of(
        self, context: StartContext, container: AnyContainer, image: EnsuredImage
    ) -> cri.Image:
        return await self.tools.client.image_status(cri.ImageSpec(image=image.name)) or cri.Image()


@bug("MUT-IMAGE-23", breaks="IMAGE-23")
class FreshStart(ImageManager):
    """A pull that succeeds ends the back-off of all images."""

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        found = await super()._pull(wanted, credentials)
        self._backoff = Backoff(self.tools.clock)
        return found
