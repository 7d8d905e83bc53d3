"""What a kubelet that starts again keeps of the probes of the one before: nothing up to 1.34 (PROBE-25)."""

from typing import cast

import pytest
from lightkube.models.core_v1 import ContainerStatus, Pod

from kubelet_reference.api.results import ProbeKind
from kubelet_reference.prober.results import kept_by_probe, kept_status

BEGAN = 1_767_225_700.0
"""When the kubelet started: 100 s after the new year."""


def _status(container_id: str = "fake://a", started_at: str = "2026-01-01T00:00:00Z") -> dict[str, object]:
    running = {"running": {"startedAt": started_at}}
    more = {"image": "img:1", "imageID": "img", "restartCount": 0}
    return {
        "name": "c1",
        "ready": True,
        "started": True,
        "containerID": container_id,
        "state": running,
        **more,
    }


def _shown(container_id: str = "fake://a", started_at: str = "2026-01-01T00:00:00Z") -> ContainerStatus:
    found = ContainerStatus.from_dict(_status(container_id, started_at))  # pyright: ignore[reportUnknownMemberType]
    return cast("ContainerStatus", found)


def _pod(**status: object) -> Pod:
    data = {"metadata": {"name": "web"}, "status": status}
    return cast("Pod", Pod.from_dict(data))  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.parametrize(
    ("container_id", "started_at", "kept"),
    [
        ("fake://a", "2026-01-01T00:00:00Z", True),
        ("fake://b", "2026-01-01T00:00:00Z", False),
        ("fake://a", "2026-01-01T00:01:35Z", False),
    ],
)
def test_only_the_same_instance_counts(container_id: str, started_at: str, *, kept: bool) -> None:
    """It has to be that very instance, and to have started well before the kubelet (K8S-141473)."""
    pod = _pod(containerStatuses=[_status("fake://a", started_at)])

    assert (kept_status(pod, _shown(container_id, started_at), BEGAN) is not None) is kept


def test_nothing_sent_is_nothing_kept() -> None:
    """A pod without a status, and a container that does not run, have nothing to keep."""
    waiting = _shown()
    waiting.state = None

    assert kept_status(Pod(), _shown(), BEGAN) is None
    assert kept_status(_pod(containerStatuses=[_status()]), waiting, BEGAN) is None


def test_liveness_begins_anew() -> None:
    """Readiness and startup are read from the API server, liveness is not."""
    pod = _pod(containerStatuses=[_status()])

    assert [kept_by_probe(kind, pod, _shown(), BEGAN) for kind in ProbeKind] == [False, True, True]
