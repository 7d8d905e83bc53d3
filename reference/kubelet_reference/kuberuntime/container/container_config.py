"""The config of a container, as CreateContainer gets it: from the spec, and from what the sync found out."""

from collections.abc import Mapping, Sequence

import msgspec
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_reference.api.expansion import expand
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.resources import container_resources
from kubelet_reference.cri.labels import container_annotations, container_labels
from kubelet_reference.kuberuntime.actions.container_hash import container_hash
from kubelet_reference.kuberuntime.container.security import container_security
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour


class Instance(msgspec.Struct, frozen=True):
    """A container that is about to be made: everything about it that the spec does not say.

    `image_ref` is what the container is made from (IMAGE-16), `image` what the node knows about that image,
    `restarts` the number of the instance, `target_id` the container an ephemeral one looks into, and
    `devices` are the CDI names of its devices.
    """

    image_ref: str
    image: cri.Image
    restarts: int
    environment: Mapping[str, str]
    mounts: Sequence[cri.Mount]
    target_id: str = ""
    devices: Sequence[str] = ()


def log_path(container: str, restarts: int) -> str:
    """The log of an instance below the pod's log folder (START-07)."""
    return f"{container}/{restarts}.log"


def container_config(
    pod: Pod, container: AnyContainer, instance: Instance, settings: Settings, behaviour: Behaviour
) -> cri.ContainerConfig:
    """The config of one instance of a container.

    Its number is written three times, and is the same each time: attempt, annotation and log file (START-14).
    """
    digest = container_hash(container, behaviour)
    named = container.image or "" if behaviour.sends_user_specified_image else ""
    return cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name=container.name, attempt=instance.restarts),
        image=cri.ImageSpec(image=instance.image_ref, user_specified_image=named),
        command=_expanded(container.command, instance.environment),
        args=_expanded(container.args, instance.environment),
        working_dir=container.workingDir or "",
        envs=[cri.KeyValue(key=key, value=value) for key, value in instance.environment.items()],
        mounts=instance.mounts,
        labels=container_labels(pod, container),
        annotations=container_annotations(pod, container, instance.restarts, digest),
        log_path=log_path(container.name, instance.restarts),
        stdin=bool(container.stdin),
        stdin_once=bool(container.stdinOnce),
        tty=bool(container.tty),
        CDI_devices=[cri.CDIDevice(name=name) for name in instance.devices],
        stop_signal=stop_signal(container, behaviour),
        linux=cri.LinuxContainerConfig(
            resources=container_resources(pod, container, settings.memory_bytes),
            security_context=container_security(
                pod, container, instance.image, instance.target_id, settings.root_dir
            ),
        ),
    )


def stop_signal(container: AnyContainer, behaviour: Behaviour) -> cri.Signal.ValueType:
    """The signal that asks the container to end, 0 for the one of its image (TERM-28)."""
    wanted = container.lifecycle.stopSignal if container.lifecycle else None
    return cri.Signal.Value(wanted) if wanted and behaviour.sends_stop_signals else cri.RUNTIME_DEFAULT


def _expanded(words: Sequence[str] | None, environment: Mapping[str, str]) -> list[str]:
    return [expand(word, environment) for word in words or ()]
