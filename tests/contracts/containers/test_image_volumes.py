"""IMAGE-20: volumes that show an image."""

from typing import Any

import pytest
from trace_builder import PodHandle, TraceBuilder
from twice import detects

GATES = {"ImageVolume": True}
MOUNT = {"container_path": "/data", "image": {"image": "sha256:data"}, "readonly": True}


def begin() -> tuple[TraceBuilder, PodHandle]:
    """A pod with a container that mounts an image, and one that does not."""
    s = TraceBuilder(featureGates=GATES)
    reads = {"name": "c1", "image": "img:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volumes = [{"name": "data", "image": {"reference": "data:1"}}]
    return s, s.pod(containers=[reads, {"name": "c2", "image": "img:1"}], volumes=volumes)


def pull(s: TraceBuilder, web: PodHandle, error: str | None = None) -> None:
    """PullImage of what the volume shows."""
    request = {"image": {"image": "data:1"}, "sandbox_config": s.sandbox_config(web)}
    s.call("PullImage", request, {"image_ref": "sha256:data"}, error=error)


def waits(s: TraceBuilder, web: PodHandle, reason: str) -> None:
    """The status of c1."""
    statuses: list[dict[str, Any]] = [{"name": "c1", "state": {"waiting": {"reason": reason}}}]
    s.status(web, "Pending", containerStatuses=statuses)


@pytest.mark.parametrize("wrong", ["unmounted", "absent", "silent", "alone"])
@detects("IMAGE-20", begin=begin)
def test_image_volumes(s: TraceBuilder, web: PodHandle, wrong: str, *, right: bool) -> None:
    """IMAGE-20 breaks when a container is made without its image, without an event, or while all wait."""
    sandbox = s.run_sandbox(web)
    pull(s, web, "NOT_FOUND")
    if right or wrong != "alone":
        s.run_container(web, sandbox, "c2")
    if not right and wrong == "absent":
        s.create(web, sandbox, "c1", config=s.container_config(web, "c1", mounts=[MOUNT]))
    waits(s, web, "ErrImagePull" if right or wrong != "silent" else "ContainerCreating")
    if right or wrong == "unmounted":
        s.wait(15)
        pull(s, web)
        config = s.container_config(web, "c1", mounts=[MOUNT] if right else [])
        s.create(web, sandbox, "c1", config=config)
