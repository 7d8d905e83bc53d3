"""Starts one container: image, config, CreateContainer, StartContainer, postStart hook (START-01).

Each step has its own waiting reason, so that a status shows which one failed (START-02). What was created and
could not be started is left for the garbage collector: the next sync makes another instance (START-04).

Volumes that show an image are pulled before any container is started, and mounted by the runtime (KEP-4639).
An image that cannot be had concerns only the containers that mount it: these wait with its reason (IMAGE-20).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import grpc
import msgspec
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, ImageVolumeSource, Pod, Secret
from msgspec.structs import replace

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason
from kubelet_reference.api.expansion import ConfigError
from kubelet_reference.api.go_text import pod_text, quoted
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import PodRecords
from kubelet_reference.api.sync_result import Failure, StartError
from kubelet_reference.cri.errors import error_text, wrapped_text
from kubelet_reference.images.image_manager import EnsuredImage, ImageManager
from kubelet_reference.kuberuntime.container.container_config import Instance, container_config
from kubelet_reference.kuberuntime.container.environment import Environment
from kubelet_reference.kuberuntime.container.hooks import HookError, Hooks
from kubelet_reference.kuberuntime.container.kill_container import ContainerKill, ContainerKiller
from kubelet_reference.kuberuntime.container.security import root_problem
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.util.versions import Behaviour


class StartContext(msgspec.Struct, frozen=True):
    """The pod whose containers are to be started, and the sandbox to start them in.

    `records` are those from before the sync; `ips` are those of the sandbox (SYNC-12, SYNC-22); `images` are
    what volumes show, or why they cannot, by the volumes' names (IMAGE-20).
    """

    pod: Pod
    records: PodRecords
    sandbox_id: str
    sandbox_config: cri.PodSandboxConfig
    ips: tuple[str, ...]
    secrets: Sequence[Secret] = ()
    images: Mapping[str, EnsuredImage | StartError] = msgspec.field(
        default_factory=dict["str", "EnsuredImage | StartError"]
    )


@dataclass(frozen=True, slots=True)
class StartParts:
    """The components that a start uses."""

    images: ImageManager
    environment: Environment
    hooks: Hooks
    container_killer: ContainerKiller


@dataclass(eq=False)
class ContainerStarter:
    """Starts containers, one at a time."""

    tools: RuntimeTools
    parts: StartParts

    async def start(self, context: StartContext, container: AnyContainer) -> None:
        """Start a new instance of the container; raises `StartError` naming the step that failed."""
        shown = list(image_mounts(context, container))
        try:
            image = await self.parts.images.ensure(
                context.pod, container, context.sandbox_config, context.secrets
            )
            config = await self._config(context, container, image)
            config.mounts.extend(shown)
            container_id = await self._create(context, container, config)
        except StartError as error:
            # A failed pull is reported by its well-known reason: the pull's own event has the text.
            cause = error.reason if error.reason in _IMAGE_FAILURES else error
            self.tools.recorder.warning(context.pod, Reason.FAILED, f"Error: {cause}", container.name)
            raise
        await self._start(context, container, container_id)
        await self._post_start(context, container, container_id)

    def restarts(self, context: StartContext, container: AnyContainer) -> int:
        """The number of the new instance (RESTART-13, RESTART-16).

        One more than the newest record's; without a record, by the logs (RESTART-14). A record counts, not a
        try: a creation that left nothing is repeated with the same number (RESTART-24).
        """
        newest = context.records.newest(container.name)
        if newest is not None:
            return newest.restart_count + 1
        return self.tools.files.restarts_in_logs(context.pod, container.name)

    async def _config(
        self, context: StartContext, container: AnyContainer, image: EnsuredImage
    ) -> cri.ContainerConfig:
        try:
            instance = await self._instance(context, container, image)
            self.tools.files.make_container_log_directory(context.pod, container.name)
        except (ConfigError, OSError) as error:
            raise StartError(Failure.CONTAINER_CONFIG, str(error)) from error
        return container_config(context.pod, container, instance, self.tools.settings, self.tools.behaviour)

    async def _instance(
        self, context: StartContext, container: AnyContainer, image: EnsuredImage
    ) -> Instance:
        restarts = self.restarts(context, container)
        target_id = self.target_id(context, container)
        known = await self._image_of(context, container, image)
        environment = await self.parts.environment.make(context.pod, container, context.ips)
        mounts = self.tools.files.mounts(context.pod, container, context.ips, environment)
        devices = (
            self.tools.resources.devices(context.pod, container) if self.tools.resources is not None else ()
        )
        return Instance(image.ref, known, restarts, environment, mounts, target_id, devices)

    def target_id(self, context: StartContext, container: AnyContainer) -> str:
        """The newest instance of the container that an ephemeral one looks into (EPH-07)."""
        name = _target_name(container)
        if not name:
            return ""
        target = context.records.newest(name)
        if target is None:
            raise ConfigError(f"unable to find target container {name}")
        return target.id

    async def _image_of(
        self, context: StartContext, container: AnyContainer, image: EnsuredImage
    ) -> cri.Image:
        """Ask for the image once more, to learn its user: it may not be root (IMAGE-22, IMAGE-24)."""
        try:
            found = await self.tools.client.image_status(cri.ImageSpec(image=image.name))
        except grpc.RpcError as error:
            raise ConfigError(wrapped_text(error)) from error
        if found is None:
            raise ConfigError(f"image {quoted(image.name)} not found")
        problem = root_problem(context.pod, container, found)
        if problem:
            where = f"pod: {quoted(pod_text(context.pod))}, container: {container.name}"
            raise ConfigError(f"{problem} ({where})")
        return found

    async def _create(
        self, context: StartContext, container: AnyContainer, config: cri.ContainerConfig
    ) -> str:
        try:
            created = await self.tools.client.create_container(
                context.sandbox_id, config, context.sandbox_config
            )
        except grpc.RpcError as error:
            raise StartError(Failure.CREATE_CONTAINER, error_text(error)) from error
        text = f"Created container: {container.name}"
        self.tools.recorder.normal(context.pod, Reason.CREATED, text, container.name)
        return created

    async def _start(self, context: StartContext, container: AnyContainer, container_id: str) -> None:
        try:
            await self.tools.client.start_container(container_id)
        except grpc.RpcError as error:
            text = error_text(error)
            self.tools.recorder.warning(
                context.pod, Reason.FAILED, f"Error: {text}", container.name, container_id=container_id
            )
            raise StartError(Failure.RUN_CONTAINER, text) from error
        text = f"Started container {container.name}"
        self.tools.recorder.normal(context.pod, Reason.STARTED, text, container.name)

    async def _post_start(self, context: StartContext, container: AnyContainer, container_id: str) -> None:
        """Run the postStart hook and wait for it, and so does the rest of the pod (HOOK-01, HOOK-02).

        If it fails, the container is stopped as any other, its preStop hook included (HOOK-03).
        """
        handler = container.lifecycle.postStart if container.lifecycle else None
        if handler is None:
            return
        try:
            await self.parts.hooks.run(context.pod, container, container_id, handler)
        except HookError as error:
            # The event does not have what the hook printed: that may be secret (EVENTS-04).
            text, reason = "PostStartHook failed", Reason.FAILED_POST_START_HOOK
            self.tools.recorder.warning(context.pod, reason, text, container.name)
            kill = ContainerKill(context.pod, container_id, container.name, message=reason)
            await self.parts.container_killer.kill_container(kill)
            raise StartError(Failure.POST_START_HOOK, str(error)) from error


_IMAGE_FAILURES = frozenset(
    {
        Failure.ERR_IMAGE_PULL,
        Failure.IMAGE_PULL_BACK_OFF,
        Failure.ERR_IMAGE_NEVER_PULL,
        Failure.IMAGE_INSPECT,
        Failure.INVALID_IMAGE_NAME,
        Failure.REGISTRY_UNAVAILABLE,
        Failure.SIGNATURE_VALIDATION_FAILED,
    }
)


def _target_name(container: AnyContainer) -> str:
    """Only ephemeral containers have a target."""
    found: str | None = getattr(container, "targetContainerName", None)
    return found or ""


def image_sources(pod: Pod) -> dict[str, ImageVolumeSource]:
    """The images that volumes of the pod show, by the volumes' names."""
    return {one.name: one.image for one in pods.spec(pod).volumes or () if one.image is not None}


class ImageVolumes:
    """Pulls the images that volumes of a pod mount."""

    def __init__(self, images: ImageManager, behaviour: Behaviour) -> None:
        self._images = images
        self._behaviour = behaviour

    async def ready(self, context: StartContext) -> StartContext:
        """The same, with what has become of each image."""
        if not self._behaviour.mounts_images:
            return context
        sources = image_sources(context.pod)
        return replace(
            context, images={name: await self._image(context, one) for name, one in sources.items()}
        )

    async def _image(self, context: StartContext, source: ImageVolumeSource) -> EnsuredImage | StartError:
        # Events about it are the pod's: no container is to blame.
        wanted = Container(name="", image=source.reference, imagePullPolicy=source.pullPolicy)
        try:
            return await self._images.ensure(context.pod, wanted, context.sandbox_config, context.secrets)
        except StartError as error:
            return error


def image_mounts(context: StartContext, container: AnyContainer) -> Iterator[cri.Mount]:
    """What the container mounts of them; raises the `StartError` of an image that could not be had."""
    for wanted in container.volumeMounts or ():
        image = context.images.get(wanted.name)
        if isinstance(image, StartError):
            raise image
        if image is not None:
            yield cri.Mount(
                container_path=wanted.mountPath,
                image=cri.ImageSpec(image=image.ref, user_specified_image=image.name),
                image_sub_path=wanted.subPath or "",
                readonly=True,
            )
