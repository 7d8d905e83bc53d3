"""Values as messages show them, and the pull secrets that a pod names."""

from typing import cast

import pytest
from lightkube.models.core_v1 import Secret
from runtime_world import EventList, a_pod

from kubelet_fakes.clock import run
from kubelet_reference.api.events import Recorder
from kubelet_reference.api.go_text import duration_text, pod_text, quoted
from kubelet_reference.api.sync_result import Action, ActionResult, Failure, SyncResult
from kubelet_reference.images.keyring import pull_secrets
from kubelet_reference.util.ports import ApiError, ApiServer


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (1.5, "1.5s"),
        (10, "10s"),
        (80, "1m20s"),
        (300, "5m0s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    """Durations are written as Go writes them."""
    assert duration_text(seconds) == text


def test_names() -> None:
    """Pods are named with their UID, texts in quotes."""
    assert pod_text(a_pod()) == "web_default(u1)"
    assert quoted('a "b"\n') == '"a \\"b\\"\\n"'


def test_results_in_one_text() -> None:
    """A pass that succeeded has no error; one failure stands by itself, several in brackets (SYNC-23)."""
    good = ActionResult(Action.START_CONTAINER, "c1")
    bad = ActionResult(Action.START_CONTAINER, "c2", Failure.CRASH_LOOP_BACK_OFF, "wait")
    reported = 'failed to "StartContainer" for "c2" with CrashLoopBackOff: "wait"'

    assert SyncResult((good,)).error is None
    assert SyncResult((good, bad)).error == reported
    assert SyncResult((bad,), problem="no status").error == f"[no status, {reported}]"


class Secrets:
    """An API server with one secret."""

    async def get_secret(self, namespace: str, name: str) -> Secret:
        """The secret named there, if it is asked for."""
        if name != "there":
            raise ApiError(404, "NotFound", f"no secret {name} in {namespace}")
        return Secret(data={})


def test_missing_pull_secret() -> None:
    """A pull secret that is missing is reported, and the others are used (IMAGE-14)."""
    sink = EventList()
    pod = a_pod(imagePullSecrets=[{"name": "there"}, {"name": "away"}])
    server = cast("ApiServer", Secrets())

    found = run(pull_secrets(server, Recorder(sink), pod))

    assert len(found) == 1
    assert [event.message for event in sink.events] == [
        "Unable to retrieve some image pull secrets (away); attempting to pull the image may not succeed."
    ]
