"""Ensures that the image of a container is on the node, just before each container is made (IMAGE-01)."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

import grpc
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod, Secret

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason
from kubelet_reference.api.go_text import duration_text
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.sync_result import Failure, StartError
from kubelet_reference.cri.errors import error_text, wrapped_text
from kubelet_reference.cri.tools import CriTools
from kubelet_reference.images.image_names import pull_policy, with_default_tag
from kubelet_reference.images.image_pull_rules import ImageFacts, ImageStep, Presence, image_decision
from kubelet_reference.images.keyring import Credential, secret_credentials
from kubelet_reference.images.pull_records import PullRecords
from kubelet_reference.util.backoff import Backoff
from kubelet_reference.util.ports import Clock
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour


class Throttle:
    """Lets `burst` through at once and then `per_second`; what comes too often is refused, not delayed.

    With 0 per second there is no limit.
    """

    def __init__(self, clock: Clock, per_second: float, burst: int) -> None:
        self._clock = clock
        self._rate = per_second
        self._burst = burst
        self._left = float(burst)
        self._since = clock.monotonic()

    def accepts(self) -> bool:
        """Whether one more may be done now; if so it counts as done."""
        if not self._rate:
            return True
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


_KNOWN_PREFIXES = {
    Failure.REGISTRY_UNAVAILABLE: "because the registry is unavailable",
    Failure.SIGNATURE_VALIDATION_FAILED: "because the signature validation failed",
}


@dataclass(frozen=True, slots=True)
class EnsuredImage:
    """An image that is there: the name asked for, with its tag, and what containers are made from."""

    name: str
    ref: str


@dataclass(frozen=True, slots=True)
class WantedImage:
    """The image that one container of a pod needs."""

    pod: Pod
    container: AnyContainer
    image: cri.ImageSpec
    sandbox_config: cri.PodSandboxConfig

    @property
    def name(self) -> str:
        """Its name, with the tag."""
        return self.image.image


@dataclass(eq=False)
class ImageManager:
    """Looks images up, pulls them one at a time, and holds back pulls that have just failed.

    `records` remember whose credentials brought an image.
    """

    tools: CriTools
    records: PullRecords
    decide: Callable[[ImageFacts], ImageStep] = image_decision

    def __post_init__(self) -> None:
        settings = self.tools.settings
        self._backoff = Backoff(self.tools.clock)
        self._throttle = Throttle(self.tools.clock, settings.registry_pull_qps, settings.registry_burst)
        self._turns = self._make_turns(settings)

    async def ensure(
        self,
        pod: Pod,
        container: AnyContainer,
        sandbox_config: cri.PodSandboxConfig,
        pull_secrets: Sequence[Secret] = (),
    ) -> EnsuredImage:
        """The image, pulled if need be; raises `StartError` if it cannot be had."""
        wanted = WantedImage(pod, container, self._named(pod, container), sandbox_config)
        policy, credentials = self.policy(container), secret_credentials(wanted.name, pull_secrets)
        presence, ref = await self._look(wanted) if self.asks_first(policy) else (Presence.NOT_ASKED, "")
        proven = presence is not Presence.PRESENT or self._may_use(wanted, ref, credentials)
        match self.decide(ImageFacts(policy, presence, self._backs_off(wanted), proven)):
            case ImageStep.USE:
                text = f'Container image "{wanted.name}" already present on machine'
                self.tools.recorder.normal(pod, Reason.PULLED, text, container.name)
                return EnsuredImage(wanted.name, ref)
            case ImageStep.PULL:
                return await self._pull(wanted, credentials)
            case ImageStep.BACK_OFF:
                raise self._refuse_by_backoff(wanted)
            case ImageStep.NEVER_PULL:
                raise self._refuse_by_policy(wanted, presence)
            case ImageStep.INSPECT_ERROR:
                raise StartError(Failure.IMAGE_INSPECT, f'Failed to inspect image "{wanted.name}": {ref}')

    def policy(self, container: AnyContainer) -> str:
        """The container's pull policy (IMAGE-19)."""
        return pull_policy(container)

    def asks_first(self, policy: str) -> bool:
        """Whether ImageStatus is asked before all else: always, but for policy Always (IMAGE-03)."""
        return policy != pods.ALWAYS or self.tools.behaviour.asks_image_status_before_always_pull

    def _named(self, pod: Pod, container: AnyContainer) -> cri.ImageSpec:
        """The image by its full name, with the pod's annotations (IMAGE-04, IMAGE-15)."""
        try:
            name = with_default_tag(container.image or "")
        except ValueError as error:
            text = f'Failed to apply default image tag "{container.image}": {error}'
            self.tools.recorder.warning(pod, Reason.INSPECT_FAILED, text, container.name)
            raise StartError(Failure.INVALID_IMAGE_NAME, text) from error
        return cri.ImageSpec(image=name, annotations=pods.annotations(pod))

    async def _look(self, wanted: WantedImage) -> tuple[Presence, str]:
        """Whether the image is there, with its id; or the text of the error."""
        try:
            found = await self.tools.client.image_status(wanted.image)
        except grpc.RpcError as error:
            text = f'Failed to inspect image "{wanted.name}": {wrapped_text(error)}'
            self.tools.recorder.warning(wanted.pod, Reason.INSPECT_FAILED, text, wanted.container.name)
            return Presence.FAILED, wrapped_text(error)
        return (Presence.ABSENT, "") if found is None else (Presence.PRESENT, found.id)

    def _key(self, wanted: WantedImage) -> str:
        """Back-off is per pod and image: shared in the pod, no other pod's business (IMAGE-08)."""
        return f"{pods.uid(wanted.pod)}_{wanted.name}"

    def _may_use(self, wanted: WantedImage, ref: str, credentials: Sequence[Credential]) -> bool:
        """Whether the pod may use the image that is there (IMAGE-21)."""
        if not self.tools.behaviour.checks_pull_credentials:
            return True
        return self.records.may_use(wanted.name, ref, credentials)

    def _backs_off(self, wanted: WantedImage) -> bool:
        return self._backoff.is_in_backoff_since_update(self._key(wanted))

    def _refuse_by_policy(self, wanted: WantedImage, presence: Presence) -> StartError:
        what = "may not be used without a pull" if presence is Presence.PRESENT else "is not present"
        text = f'Container image "{wanted.name}" {what} with pull policy of Never'
        self.tools.recorder.warning(wanted.pod, Reason.NEVER_PULL, text, wanted.container.name)
        return StartError(Failure.ERR_IMAGE_NEVER_PULL, text)

    def _refuse_by_backoff(self, wanted: WantedImage) -> StartError:
        """No call is made; from 1.32 on the message has the error of the pull before (IMAGE-09)."""
        text = f'Back-off pulling image "{wanted.name}"'
        self.tools.recorder.normal(wanted.pod, Reason.BACK_OFF, text, wanted.container.name)
        if self.tools.behaviour.keeps_previous_pull_error:
            text = f"{text}: {self._backoff.reason(self._key(wanted))}"
        return StartError(Failure.IMAGE_PULL_BACK_OFF, text)

    async def _pull(self, wanted: WantedImage, credentials: Sequence[Credential]) -> EnsuredImage:
        name, began = wanted.container.name, self.tools.clock.monotonic()
        self.tools.recorder.normal(wanted.pod, Reason.PULLING, f'Pulling image "{wanted.name}"', name)
        async with self._one_at_a_time():
            pulling = self.tools.clock.monotonic()
            try:
                ref = await self._pull_recorded(wanted, credentials)
            except grpc.RpcError as error:
                raise self._failed(wanted, self._explained(wanted, error)) from error
            except StartError as refusal:
                raise self._failed(wanted, refusal) from refusal
            now = self.tools.clock.monotonic()
        text = f'Successfully pulled image "{wanted.name}" in {duration_text(now - pulling)}'
        text += f" ({duration_text(now - began)} including waiting)"
        if self.tools.behaviour.tells_image_size:
            text += f". Image size: {await self._size(wanted)} bytes."
        self.tools.recorder.normal(wanted.pod, Reason.PULLED, text, name)
        return EnsuredImage(wanted.name, ref)

    def _make_turns(self, settings: Settings) -> asyncio.Semaphore | None:
        """How many may pull at a time; None is no limit (IMAGE-11)."""
        at_a_time = 1 if settings.serialize_image_pulls else settings.max_parallel_image_pulls
        return asyncio.Semaphore(at_a_time) if at_a_time else None

    def _one_at_a_time(self) -> AbstractAsyncContextManager[None]:
        """One pull at a time on the whole node, in the order they were asked for (IMAGE-11)."""
        return self._turns or nullcontext()

    async def _pull_recorded(self, wanted: WantedImage, credentials: Sequence[Credential]) -> str:
        """Pull, and keep on disk that a pull is under way, and whose credentials it succeeded with."""
        await self._let_through()
        if not self.tools.behaviour.checks_pull_credentials:
            return (await self._pull_with_credentials(wanted, credentials))[0]
        self.records.begin(wanted.name)
        try:
            ref, used = await self._pull_with_credentials(wanted, credentials)
        except grpc.RpcError:
            self.records.fail(wanted.name)
            raise
        self.records.succeed(wanted.name, ref, used)
        return ref

    async def _let_through(self) -> None:
        """What comes too often fails at once, without a call (IMAGE-12)."""
        if not self._throttle.accepts():
            raise StartError(Failure.ERR_IMAGE_PULL, "pull QPS exceeded")

    async def _pull_with_credentials(
        self, wanted: WantedImage, credentials: Sequence[Credential]
    ) -> tuple[str, Credential | None]:
        """Try each credential that fits until one works; without any, pull anonymously (IMAGE-13)."""
        *others, last = credentials or (None,)
        for one in others:
            try:
                return await self.tools.client.pull_image(wanted.image, one.auth, wanted.sandbox_config), one
            except grpc.RpcError:
                continue
        auth = last.auth if last else None
        return await self.tools.client.pull_image(wanted.image, auth, wanted.sandbox_config), last

    def _explained(self, wanted: WantedImage, error: grpc.RpcError) -> StartError:
        return pull_failure(wanted.name, error, self.tools.behaviour)

    def _failed(self, wanted: WantedImage, failure: StartError) -> StartError:
        text = f'Failed to pull image "{wanted.name}": {failure}'
        self.tools.recorder.warning(wanted.pod, Reason.FAILED, text, wanted.container.name)
        reason = f"{failure.reason}: {failure}"
        self._backoff.next(self._key(wanted), self.tools.clock.wall_ns(), reason)
        return failure

    async def _size(self, wanted: WantedImage) -> int:
        try:
            found = await self.tools.client.image_status(wanted.image)
        except grpc.RpcError:
            return 0
        return found.size if found is not None else 0


def pull_failure(image: str, error: grpc.RpcError, behaviour: Behaviour) -> StartError:
    """What a failed pull means: ErrImagePull, or the reason its text begins with (IMAGE-07, IMAGE-10)."""
    text = wrapped_text(error)
    if not behaviour.reads_pull_errors:
        return StartError(Failure.ERR_IMAGE_PULL, text)
    for reason, why in _KNOWN_PREFIXES.items():
        if error_text(error).startswith(reason):
            rest = error_text(error).removeprefix(reason)
            return StartError(reason, f"image pull failed for {image} {why}{rest}")
    unknown = error.code() is grpc.StatusCode.UNKNOWN
    return StartError(Failure.ERR_IMAGE_PULL, error_text(error) if unknown else text)
