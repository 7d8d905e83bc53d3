"""Volumes: made before a pod's sandbox, kept up to date, shown to its containers, cleared away at the end.

`places` says where on the disk each one lies, `host_path`, `content` and `set_up` make them, `payload` and
`atomic_writer` are for those that show config maps, secrets and the pod itself, `mounts` turns them into what
a container is given, `removal` clears away, and `manager` decides when.
"""

from kubelet_reference.volumemanager.content import needed_objects
from kubelet_reference.volumemanager.mounts import VolumeMounts
from kubelet_reference.volumemanager.paths import pod_folder
from kubelet_reference.volumemanager.volume_manager import Volumes, VolumesNotReady, VolumeTools

__all__ = ("VolumeMounts", "VolumeTools", "Volumes", "VolumesNotReady", "needed_objects", "pod_folder")
