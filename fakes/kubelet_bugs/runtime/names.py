"""Runtimes that keep the names of what they did not make, or make what they must not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_bugs.bug import Bug
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_reference.parts import Parts

if TYPE_CHECKING:
    from cri_api.v1 import api_pb2 as cri

__all__ = ("BUGS",)


class _AnySandbox(RuntimeCore):
    """Makes containers in a sandbox whatever its state."""

    def create_container(self, request: cri.CreateContainerRequest) -> cri.CreateContainerResponse:
        sandbox = self.sandbox(request.pod_sandbox_id)
        was_ready, sandbox.ready = sandbox.ready, True
        try:
            return super().create_container(request)
        finally:
            sandbox.ready = was_ready


BUGS = (
    Bug(
        id="CTRD-13599",
        title="A container can be made in a sandbox that was stopped.",
        parts=Parts,
        runtime=lambda: RuntimeParts(core=_AnySandbox),
        breaks=("CRI-11",),
        aliases=("R26",),
    ),
)
