"""Bugs of image pulls: who waits for whom, with which credentials, and what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod, Secret

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.backoff import Backoff
from kubelet_reference.events import Reason
from kubelet_reference.image_names import with_default_tag
from kubelet_reference.images import EnsuredImage, ImageManager, WantedImage
from kubelet_reference.keyring import Credential
from kubelet_reference.parts import Parts
from kubelet_reference.pods import AnyContainer
from kubelet_reference.runtime_manager import RuntimeManager
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.settings import Settings
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_result import Failure, StartError


class _AnyName(ImageManager):
    """Asks for images by whatever a manifest says."""

    def _named(self, pod: Pod, container: AnyContainer) -> cri.ImageSpec:
        try:
            with_default_tag(container.image or "")
        except ValueError:
            return cri.ImageSpec(image=container.image or "", annotations=pods.annotations(pod))
        return super()._named(pod, container)


class _KnowsNoReason(ImageManager):
    """Takes every error of a pull for an unknown one."""

    def _explained(self, wanted: WantedImage, error: grpc.RpcError) -> StartError:
        return StartError(Failure.ERR_IMAGE_PULL, str(super()._explained(wanted, error)))


class _AllAtOnce(ImageManager):
    """Pulls as many images at a time as are wanted."""

    def _make_turns(self, settings: Settings) -> asyncio.Semaphore | None:
        del settings
        return None


class _Waits(ImageManager):
    """Has pulls wait that come too often."""

    async def _let_through(self) -> None:
        while not self._throttle.accepts():
            await self._clock.sleep(0.2)


class _FirstCredential(ImageManager):
    """Tries one credential and no other."""

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        return await super()._pull(wanted, credentials[:1])


class _EverySecret(ImageManager):
    """Pulls no image unless all secrets are there."""

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


class _AllOrNone(RuntimeManager):
    """Starts no container after one that could not be started."""

    def is_needed(self, container: AnyContainer, kind: str) -> bool:
        del container, kind
        return True


class _ToldTooSoon(ImageManager):
    """Tells that an image was pulled before it tells that it will be."""

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        name = wanted.container.name
        self._recorder.normal(wanted.pod, Reason.PULLED, f'Successfully pulled image "{wanted.name}"', name)
        return await super()._pull(wanted, credentials)


class _LatestStays(ImageManager):
    """Does not pull what is there, even if it is called latest."""

    def policy(self, container: AnyContainer) -> str:
        is_latest = with_default_tag(container.image or "").endswith(":latest")
        return "IfNotPresent" if is_latest else super().policy(container)


class _AnybodysImages(ImageManager):
    """Lets every pod use every image that is there."""

    def _may_use(self, wanted: WantedImage, ref: str, credentials: Sequence[Credential]) -> bool:
        del wanted, ref, credentials
        return True


class _AsRoot(ContainerStarter):
    """Lets a container run as whatever user its image brings."""

    async def _image_of(self, into: PodToStart, container: AnyContainer, image: EnsuredImage) -> cri.Image:
        del into, container
        return await self._client.image_status(cri.ImageSpec(image=image.name)) or cri.Image()


class _FreshStart(ImageManager):
    """Ends every back-off when a pull succeeds."""

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        found = await super()._pull(wanted, credentials)
        self._backoff = Backoff(self._clock)
        return found


def _manager(wrong: type[ImageManager]) -> Parts:
    return Parts(runtime=RuntimeParts(image_manager=wrong))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-IMAGE-05",
        "The runtime is asked for images by names that name none.",
        lambda: _manager(_AnyName),
        ("IMAGE-05",),
    ),
    Bug(
        "MUT-IMAGE-10",
        "The well-known errors of pulls are told like any other.",
        lambda: _manager(_KnowsNoReason),
        ("IMAGE-10",),
    ),
    Bug(
        "MUT-IMAGE-11",
        "Images are pulled side by side, whatever the configuration says.",
        lambda: _manager(_AllAtOnce),
        ("IMAGE-11",),
    ),
    Bug(
        "MUT-IMAGE-12",
        "A pull that comes too soon waits instead of failing.",
        lambda: _manager(_Waits),
        ("IMAGE-12",),
    ),
    Bug(
        "MUT-IMAGE-13",
        "Of several credentials only the first is tried.",
        lambda: _manager(_FirstCredential),
        ("IMAGE-13",),
    ),
    Bug(
        "MUT-IMAGE-14",
        "A pull secret that is missing keeps its pod from starting.",
        lambda: _manager(_EverySecret),
        ("IMAGE-14",),
    ),
    Bug(
        "MUT-IMAGE-17",
        "A container that cannot be started keeps those after it from being tried.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_AllOrNone)),
        ("IMAGE-17",),
    ),
    Bug(
        "MUT-IMAGE-18",
        "An image is told to be there before its pull is.",
        lambda: _manager(_ToldTooSoon),
        ("IMAGE-18",),
    ),
    Bug(
        "MUT-IMAGE-19",
        "An image called latest is pulled only once.",
        lambda: _manager(_LatestStays),
        ("IMAGE-19",),
    ),
    Bug(
        "MUT-IMAGE-21",
        "A pod may use an image that another has pulled with its secrets.",
        lambda: _manager(_AnybodysImages),
        ("IMAGE-21",),
        kubernetes="1.35",
    ),
    Bug(
        "MUT-IMAGE-22",
        "A container that must not run as root is made without a look at its image's user.",
        lambda: Parts(runtime=RuntimeParts(starter=_AsRoot)),
        ("IMAGE-22",),
    ),
    Bug(
        "MUT-IMAGE-23",
        "A pull that succeeds ends the back-off of all images.",
        lambda: _manager(_FreshStart),
        ("IMAGE-23",),
    ),
)
