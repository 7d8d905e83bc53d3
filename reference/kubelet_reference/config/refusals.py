"""What becomes of a refused manifest: a line in the log for each finding, and an event if it has a name."""

from __future__ import annotations

import logging

from kubelet_reference import pods
from kubelet_reference.config.problems import ManifestError
from kubelet_reference.config.static_pods import Source, static_pod
from kubelet_reference.events import Reason, Recorder

_LOG = logging.getLogger("kubelet_reference.config")


class Refusals:
    """Reports what is wrong with manifests, once for as long as it stays the same."""

    def __init__(self, events: Recorder, node_name: str) -> None:
        self._events = events
        self._node_name = node_name
        self._reported: dict[str, str] = {}

    def report(self, source: Source, origin: str, error: ManifestError | OSError) -> None:
        """Say that the manifest at `origin`, a path or URL, is refused."""
        text = str(error)
        if self._reported.get(origin) == text:
            return
        self._reported[origin] = text
        if isinstance(error, OSError):
            _LOG.error("%s: %s", origin, error.strerror or text)
            return
        for problem in error.problems:
            _LOG.error("%s: %s", origin, problem)
        if error.subject is not None:
            pod = static_pod(error.subject, source, origin, self._node_name)
            message = f"The pod {pods.key(pod)} from {origin} is refused: {text}"
            self._events.warning(pod, Reason.FAILED_VALIDATION, message)

    def forget(self, origin: str) -> None:
        """The manifest is fine, or gone: what is wrong with it next is news."""
        self._reported.pop(origin, None)
