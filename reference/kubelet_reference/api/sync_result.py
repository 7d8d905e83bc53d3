"""The results of the actions of one sync of a pod (SYNC-23)."""

from enum import StrEnum

import msgspec

from kubelet_reference.api.go_text import quoted


class Action(StrEnum):
    """What a sync does."""

    START_CONTAINER = "StartContainer"
    KILL_CONTAINER = "KillContainer"
    KILL_SANDBOX = "KillPodSandbox"


class Failure(StrEnum):
    """Well-known reasons of failed actions; for starts they become the waiting reason (START-02)."""

    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
    CONTAINER_CONFIG = "CreateContainerConfigError"
    CREATE_CONTAINER = "CreateContainerError"
    RUN_CONTAINER = "RunContainerError"
    POST_START_HOOK = "PostStartHookError"
    KILL_CONTAINER = "KillContainerError"
    KILL_SANDBOX = "KillPodSandboxError"
    ERR_IMAGE_PULL = "ErrImagePull"
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
    ERR_IMAGE_NEVER_PULL = "ErrImageNeverPull"
    IMAGE_INSPECT = "ImageInspectError"
    INVALID_IMAGE_NAME = "InvalidImageName"
    REGISTRY_UNAVAILABLE = "RegistryUnavailable"
    SIGNATURE_VALIDATION_FAILED = "SignatureValidationFailed"


class StartError(Exception):
    """A container was not started: a well-known reason, what went wrong, and the seconds until it may be."""

    def __init__(self, reason: Failure, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.wait = wait


class ActionResult(msgspec.Struct, frozen=True):
    """One action: `target` is a container's name or a pod; `reason` is None if it succeeded.

    `wait` is how many seconds it has to wait before it is worth another try, None where that is unknown.
    """

    action: Action
    target: str
    reason: Failure | None = None
    message: str = ""
    wait: float | None = None

    def __str__(self) -> str:
        what = f"failed to {quoted(self.action)} for {quoted(self.target)}"
        return f"{what} with {self.reason}: {quoted(self.message)}"


class SyncResult(msgspec.Struct, frozen=True):
    """What became of the actions of a sync, in order; `problem` is what ended it outside any of them."""

    results: tuple[ActionResult, ...] = ()
    problem: str = ""

    @property
    def failures(self) -> tuple[ActionResult, ...]:
        """The actions that failed."""
        return tuple(result for result in self.results if result.reason is not None)

    @property
    def error(self) -> str | None:
        """What went wrong, in one text; None if nothing did."""
        texts = [*([self.problem] if self.problem else []), *map(str, self.failures)]
        text = ", ".join(texts)
        return f"[{text}]" if len(texts) > 1 else text or None

    @property
    def wait(self) -> float | None:
        """The shortest of the waits that its actions know, in seconds (WORK-16)."""
        return min((one.wait for one in self.results if one.wait is not None), default=None)
