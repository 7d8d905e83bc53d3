"""What is done about a container, as far as a trace shows what decides."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from kubelet_conformance.contracts.facts.timing import ROUNDING
from kubelet_conformance.contracts.tables.table import Row, Table

Recorded: TypeAlias = Literal["none", "created", "running", "exited", "unknown"]
"""The state of a container's newest record, as the runtime reports it."""
AppAct: TypeAlias = Literal["start", "nothing", "stop", "stop and start"]
InitAct: TypeAlias = Literal["start", "wait", "go on", "stop and start", "end the pod"]
"""`go on` is to leave it, since it is done: the one after it is next, or else the app containers."""
Presence: TypeAlias = Literal["present", "absent", "error", "not asked"]
"""What ImageStatus said of the image."""
ProbeAct: TypeAlias = Literal["execute", "wait"]


class AppSeen(NamedTuple):
    """Inputs for an app container: the state of the newest record, the policy, and how it ended, if it did.

    `changed` says that the spec has another definition than that of the instance, `given_up` that its
    liveness or startup probe failed too often.
    """

    record: Recorded
    policy: str
    code: int | None = None
    changed: bool = False
    given_up: bool = False
    deleting: bool = False


class InitSeen(NamedTuple):
    """Inputs for an init container: the state of the newest record, the policy, and its result.

    `failed` is said of one that has ended, `started` and `given_up` by its probe of a sidecar that runs.
    """

    record: Recorded
    policy: str
    sidecar: bool = False
    failed: bool = False
    started: bool = False
    given_up: bool = False


class ImageSeen(NamedTuple):
    """Inputs for an image; `unproven` says that the pod has yet to prove its right to it."""

    policy: str
    presence: Presence
    backing_off: bool = False
    unproven: bool = False


class ImageStep(NamedTuple):
    """What is done about an image, and the reason for which the container waits then."""

    step: Literal["use", "pull", "wait", "refuse"]
    reason: str = ""


class ProbeSeen(NamedTuple):
    """A container and its pod at an execution of one of its probes.

    `age` is how long it has run, `delay` initialDelaySeconds; `started` says that its startup probe has
    succeeded or that it has none, `given_up` that this probe has failed as often as its threshold says.
    """

    name: Literal["liveness", "readiness", "startup"]
    ended: bool = False
    running: bool = True
    given_up: bool = False
    going: bool = False
    age: float = 0.0
    delay: float = 0.0
    started: bool = True


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
    Row("B2", lambda c: c.deleting, "nothing", "the pod is being terminated"),
    Row("B1", lambda c: c.record == "none", "start", "it has to be created"),
    Row("B3", lambda c: c.record == "created", "start", "it was created and never started"),
    Row("B4", lambda c: c.record == "unknown", "stop and start", "it is not known whether it runs"),
    Row("B5", lambda c: c.policy == "Always", "start", "it always comes again"),
    Row("B7", lambda c: c.policy == "OnFailure" and c.code == 0, "nothing", "it has succeeded"),
    Row("B6", lambda c: c.policy == "OnFailure", "start", "it has failed"),
    Row("B8", lambda _: True, "nothing", "it has had its run"),
    remembered=1024,
)
"""What is done about an app container in a sandbox that stays."""
INITS = Table[InitSeen, InitAct](
    Row("N1", lambda c: c.record == "none", "start", "it has to be created"),
    Row("N2", lambda c: c.record == "created", "start", "it was created and never started"),
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
_INSPECT_ERROR = ImageStep("refuse", "ImageInspectError")
_NEVER_PULL = ImageStep("refuse", "ErrImageNeverPull")
_BACK_OFF = ImageStep("wait", "ImagePullBackOff")
_PULL = ImageStep("pull", "ErrImagePull")
IMAGES = Table[ImageSeen, ImageStep](
    Row("I1", lambda i: i.presence == "error", _INSPECT_ERROR, "it is not known whether it is there"),
    Row("I2", lambda i: i.policy == "Always" and i.backing_off, _BACK_OFF, "a pull has just failed"),
    Row("I3", lambda i: i.policy == "Always", _PULL, "it is pulled each time"),
    Row("I4", lambda i: i.presence == "present" and not i.unproven, ImageStep("use"), "it is there"),
    Row(
        "I5",
        lambda i: i.policy == "Never",
        _NEVER_PULL,
        "it is not there for this pod, and must not be pulled",
    ),
    Row("I6", lambda i: i.backing_off, _BACK_OFF, "a pull has just failed"),
    Row("I7", lambda _: True, _PULL, "it is not there for this pod"),
)
"""What is done about an image before a container is created from it."""
TICKS = Table[ProbeSeen, ProbeAct](
    Row("T1", lambda p: p.ended, "wait", "its pod has ended"),
    Row(
        "T2",
        lambda p: p.given_up and p.name != "readiness",
        "wait",
        "it has failed, and waits for another instance",
    ),
    Row("T3", lambda p: not p.running, "wait", "its container does not run"),
    Row(
        "T4",
        lambda p: p.going and p.name != "readiness",
        "wait",
        "its pod is being terminated, and nothing is killed for a probe any more",
    ),
    Row("T5", lambda p: p.age < p.delay - ROUNDING, "wait", "its initial delay is not over"),
    Row("T6", lambda p: p.started and p.name == "startup", "wait", "its container has started"),
    Row("T7", lambda p: not p.started and p.name != "startup", "wait", "its container has not started yet"),
    Row("T8", lambda _: True, "execute", "nothing speaks against it"),
)
"""Whether a probe may be executed now."""
