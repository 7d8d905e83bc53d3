"""Volumes: made before a pod's sandbox, kept up to date, mounted into its containers, removed at the end.

`paths` says where each one is on the disk, `set_up` makes them and `content` fetches what they show;
`payload` and `atomic_writer` are for those that show config maps, secrets and the pod itself. `mounts` turns
them into what a container is given, and `volume_manager` decides when they are made and removed.
"""

from kubelet_reference.volumemanager.mounts import VolumeMounts
from kubelet_reference.volumemanager.paths import pod_folder
from kubelet_reference.volumemanager.volume_manager import Volumes, VolumesNotReady

__all__ = ("VolumeMounts", "Volumes", "VolumesNotReady", "pod_folder")
