"""Bugs of image pulls: who waits for whom, with which credentials, and what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod, Secret

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.backoff import Backoff
from kubelet_reference.events import Reason
from kubelet_reference.image_names import with_default_tag
from kubelet_reference.images import EnsuredImage, ImageManager, WantedImage
from kubelet_reference.keyring import Credential
from kubelet_reference.pods import AnyContainer
from kubelet_reference.runtime_manager import RuntimeManager
from kubelet_reference.settings import Settings
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_result import Failure, StartError


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
    """The well-known errors of pulls are told like any other."""

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
            await self._clock.sleep(0.2)


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
class AllOrNone(RuntimeManager):
    """A container that cannot be started keeps those after it from being tried."""

    def is_needed(self, container: AnyContainer, kind: str) -> bool:
        return True


@bug("MUT-IMAGE-18", breaks="IMAGE-18")
class ToldTooSoon(ImageManager):
    """An image is told to be there before its pull is."""

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        name = wanted.container.name
        self._recorder.normal(wanted.pod, Reason.PULLED, f'Successfully pulled image "{wanted.name}"', name)
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

    async def _image_of(self, into: PodToStart, container: AnyContainer, image: EnsuredImage) -> cri.Image:
        return await self._client.image_status(cri.ImageSpec(image=image.name)) or cri.Image()


@bug("MUT-IMAGE-23", breaks="IMAGE-23")
class FreshStart(ImageManager):
    """A pull that succeeds ends the back-off of all images."""

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        found = await super()._pull(wanted, credentials)
        self._backoff = Backoff(self._clock)
        return found
