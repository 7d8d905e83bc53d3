"""Names of annotations and labels, on pods and on what the runtime keeps."""

from typing import Final

CONFIG_SOURCE: Final = "kubernetes.io/config.source"
"""Where the kubelet got the pod from: api, file or http."""
CONFIG_SEEN: Final = "kubernetes.io/config.seen"
"""When the kubelet first saw the pod."""
CONFIG_HASH: Final = "kubernetes.io/config.hash"
"""The hash of a static pod's manifest (STATIC-03)."""
CONFIG_MIRROR: Final = "kubernetes.io/config.mirror"
"""On a mirror pod: the hash of the static pod that it shows (STATIC-11)."""

POD_NAME: Final = "io.kubernetes.pod.name"
POD_NAMESPACE: Final = "io.kubernetes.pod.namespace"
POD_UID: Final = "io.kubernetes.pod.uid"
CONTAINER_NAME: Final = "io.kubernetes.container.name"

CONTAINER_HASH: Final = "io.kubernetes.container.hash"
CONTAINER_RESTART_COUNT: Final = "io.kubernetes.container.restartCount"
TERMINATION_MESSAGE_PATH: Final = "io.kubernetes.container.terminationMessagePath"
TERMINATION_MESSAGE_POLICY: Final = "io.kubernetes.container.terminationMessagePolicy"
CONTAINER_PRE_STOP: Final = "io.kubernetes.container.preStopHandler"
CONTAINER_PORTS: Final = "io.kubernetes.container.ports"
POD_GRACE: Final = "io.kubernetes.pod.terminationGracePeriod"
