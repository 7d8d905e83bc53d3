"""What is done about a container, as far as a trace shows what decides."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from kubelet_conformance.contracts.tables.table import Row, Table

AppAct: TypeAlias = Literal["start", "nothing", "stop", "stop and start"]
InitAct: TypeAlias = Literal["start", "wait", "go on", "stop and start", "end the pod"]
"""`go on` is to leave it, since it is done: the one after it is next, or else the app containers."""
ImageAct: TypeAlias = Literal["use", "pull", "refuse"]


class AppSeen(NamedTuple):
    """Inputs for an app container: the state of the newest record, the policy, and how it ended, if it did.

    `changed` says that the spec has another definition than that of the instance, `given_up` that its
    liveness or startup probe failed too often.
    """

    record: Literal["running", "exited"]
    policy: str
    code: int | None = None
    changed: bool = False
    given_up: bool = False


class InitSeen(NamedTuple):
    """Inputs for an init container: the state of the newest record, the policy, and its result.

    `failed` is said of one that has ended, `started` and `given_up` by its probe of a sidecar that runs.
    """

    record: Literal["running", "exited", "unknown"]
    policy: str
    sidecar: bool = False
    failed: bool = False
    started: bool = False
    given_up: bool = False


class ImageSeen(NamedTuple):
    """Inputs for an image; `unproven` says that the pod has yet to prove its right to it."""

    policy: str
    present: bool
    unproven: bool = False


APPS = Table[AppSeen, AppAct](
    Row("B9", lambda c: c.record == "running" and c.changed, "stop and start", "its definition has changed"),
    Row(
        "B11, B13",
        lambda c: c.record == "running" and c.given_up and c.policy == "Never",
        "stop",
        "its probe gave it up, and it has had its run",
    ),
    Row("B10, B12", lambda c: c.record == "running" and c.given_up, "stop and start", "its probe gave it up"),
    Row("B15", lambda c: c.record == "running", "nothing", "it runs as it should"),
    Row("B5", lambda c: c.policy == "Always", "start", "it always comes again"),
    Row("B7", lambda c: c.policy == "OnFailure" and c.code == 0, "nothing", "it has succeeded"),
    Row("B6", lambda c: c.policy == "OnFailure", "start", "it has failed"),
    Row("B8", lambda _: True, "nothing", "it has had its run"),
    remembered=1024,
)
"""What is done about an app container in a sandbox that stays."""
INITS = Table[InitSeen, InitAct](
    Row(
        "N3",
        lambda c: c.record == "running" and c.sidecar and c.given_up,
        "stop and start",
        "its probe gave it up, and a sidecar always comes again",
    ),
    Row("N4", lambda c: c.record == "running" and c.sidecar and c.started, "go on", "a sidecar runs beside"),
    Row("N5", lambda c: c.record == "running", "wait", "it has not done its part"),
    Row("N6", lambda c: c.record == "exited" and c.sidecar, "start", "a sidecar always comes again"),
    Row("N7", lambda c: c.record == "exited" and not c.failed, "go on", "it has succeeded"),
    Row("N8", lambda c: c.policy == "Never" and not c.sidecar, "end the pod", "it failed, and had its run"),
    Row("N9", lambda c: c.record == "exited", "start", "it failed, and is tried again"),
    Row("N10", lambda c: c.record == "unknown", "stop and start", "it is not known whether it runs"),
    remembered=1024,
)
"""What is done about an init container whose turn it is (27.4 and 27.5)."""
IMAGES = Table[ImageSeen, ImageAct](
    Row("I3", lambda i: i.policy == "Always", "pull", "it is pulled each time"),
    Row("I4", lambda i: i.present and not i.unproven, "use", "it is there"),
    Row("I5", lambda i: i.policy == "Never", "refuse", "it is not there for it, and must not be pulled"),
    Row("I7", lambda _: True, "pull", "it is not there for this pod"),
)
"""What is done about an image that the runtime was asked for, where no pull of it has just failed."""
