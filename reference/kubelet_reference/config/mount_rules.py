"""What must hold between the volumes of a pod and where its containers have them."""

from __future__ import annotations

from lightkube.models.core_v1 import Container, Pod, VolumeMount

from kubelet_reference import pods
from kubelet_reference.config.problems import Place
from kubelet_reference.config.rule_words import Rule, containers, unique

_NO_VOLUME = "the name of a volume of the pod"


def mounts(pod: Pod, place: Place) -> None:
    """What a container mounts is a volume of the pod, and no path is mounted over twice."""
    known = {volume.name for volume in pods.spec(pod).volumes or ()}
    for one, where in containers(pod, place):
        found = one.volumeMounts or ()
        at = where.field("volumeMounts")
        for i, mount in enumerate(found):
            if mount.name not in known:
                at.item(i).field("name").expected(_NO_VOLUME, mount.name)
            _mount(mount, at.item(i), is_privileged=_is_privileged(one))
        unique((at.item(i).field("mountPath"), mount.mountPath) for i, mount in enumerate(found))


def _mount(mount: VolumeMount, place: Place, *, is_privileged: bool) -> None:
    if mount.subPath and mount.subPathExpr:
        place.field("subPathExpr").wrong("not allowed beside subPath")
    if mount.mountPropagation == "Bidirectional" and not is_privileged:
        place.field("mountPropagation").wrong("Bidirectional needs a privileged container")
    if mount.recursiveReadOnly not in {None, "Disabled"}:
        if not mount.readOnly:
            place.field("recursiveReadOnly").wrong("needs readOnly")
        if mount.mountPropagation not in {None, "None"}:
            place.field("recursiveReadOnly").wrong(
                f"not allowed with mountPropagation {mount.mountPropagation}"
            )


def devices(pod: Pod, place: Place) -> None:
    """A device is a volume that is claimed; it has a path of its own, and is not mounted as well."""
    volumes = {volume.name: volume for volume in pods.spec(pod).volumes or ()}
    for one, where in containers(pod, place):
        found = one.volumeDevices or ()
        at = where.field("volumeDevices")
        mounted = one.volumeMounts or ()
        for i, device in enumerate(found):
            volume = volumes.get(device.name)
            if volume is None:
                at.item(i).field("name").expected(_NO_VOLUME, device.name)
            elif volume.persistentVolumeClaim is None and volume.ephemeral is None:
                at.item(i).field("name").expected("a volume that is claimed or ephemeral", device.name)
            if device.name in {mount.name for mount in mounted}:
                at.item(i).field("name").wrong("this volume is mounted too")
            if device.devicePath in {mount.mountPath for mount in mounted}:
                at.item(i).field("devicePath").wrong("a volume is mounted there")
        unique((at.item(i).field("name"), device.name) for i, device in enumerate(found))
        unique((at.item(i).field("devicePath"), device.devicePath) for i, device in enumerate(found))


def _is_privileged(one: Container) -> bool:
    return bool(one.securityContext and one.securityContext.privileged)


MOUNT_RULES: tuple[Rule, ...] = (mounts, devices)
