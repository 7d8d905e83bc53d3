"""The pods that are desired on this node, and which API object is the mirror of which static pod."""

from __future__ import annotations

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods


class PodManager:
    """The desired set: what the config queue said, as of the updates that the sync loop has taken.

    A mirror pod is the API server's image of a static pod: it has the same full name and a UID of its own, is
    never run, and only its static pod is ever listed (CONFIG-15).
    """

    def __init__(self) -> None:
        self._wanted = _Register()
        self._mirrors = _Register()

    def add(self, pod: Pod) -> None:
        """Take a pod or a mirror pod in, or its new version."""
        self._register(pod).put(pod)

    def update(self, pod: Pod) -> None:
        """The same as `add`: the newest version is the one that holds."""
        self.add(pod)

    def remove(self, pod: Pod) -> None:
        """Forget a pod or a mirror pod; one that is not there is fine."""
        self._register(pod).drop(pod)

    def pods(self) -> tuple[Pod, ...]:
        """The pods that are wanted, in the order they came; no mirror pods."""
        return tuple(self._wanted.by_uid.values())

    def by_uid(self, uid: str) -> Pod | None:
        """The desired pod of that UID; not a mirror pod."""
        return self._wanted.by_uid.get(uid)

    def mirror_of(self, pod: Pod) -> Pod | None:
        """The mirror pod of a static pod, once it exists."""
        return self._mirrors.by_full_name.get(pods.full_name(pod)) if pods.is_static(pod) else None

    def static_of(self, mirror: Pod) -> Pod | None:
        """The static pod that a mirror pod shows, if it is still wanted."""
        pod = self._wanted.by_full_name.get(pods.full_name(mirror))
        return pod if pod is not None and pods.is_static(pod) else None

    def mirrors(self) -> tuple[Pod, ...]:
        """All mirror pods, in the order they came."""
        return tuple(self._mirrors.by_uid.values())

    def orphaned_mirrors(self) -> tuple[Pod, ...]:
        """The mirror pods whose static pod is no longer desired (STATIC-15)."""
        return tuple(mirror for mirror in self.mirrors() if self.static_of(mirror) is None)

    def _register(self, pod: Pod) -> _Register:
        return self._mirrors if pods.is_mirror(pod) else self._wanted


class _Register:
    """Pods by UID and by full name; the latest of a full name holds it."""

    def __init__(self) -> None:
        self.by_uid: dict[str, Pod] = {}
        self.by_full_name: dict[str, Pod] = {}

    def put(self, pod: Pod) -> None:
        self.by_uid[pods.uid(pod)] = pod
        self.by_full_name[pods.full_name(pod)] = pod

    def drop(self, pod: Pod) -> None:
        self.by_uid.pop(pods.uid(pod), None)
        holder = self.by_full_name.get(pods.full_name(pod))
        # A newer pod of that name stays.
        if holder is not None and pods.uid(holder) == pods.uid(pod):
            del self.by_full_name[pods.full_name(pod)]
