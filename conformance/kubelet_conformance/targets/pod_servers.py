"""The HTTP servers in a fake node's pods, as httpGet hooks meet them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kubelet_reference.ports import FetchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubelet_conformance.trace.recorder import Recorder

__all__ = ("PodServers",)

_OK = 200


class PodServers:
    """Answers requests to any pod: 200, unless another status was set for the path; 0 refuses."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._statuses: dict[str, int] = {}

    def answer(self, path: str, status: int) -> None:
        """From now on answer requests for this path so."""
        self._statuses[path] = status

    async def get(self, url: str, headers: Mapping[str, str]) -> int:
        """The status of the answer; see `kubelet_reference.ports.HttpGet`."""
        del headers
        status = self._statuses.get(urlsplit(url).path, _OK)
        self._recorder.record("probe", handler="httpGet", url=url, outcome=str(status))
        if status == 0:
            raise FetchError(f"Get {url!r}: connection refused")
        return status
