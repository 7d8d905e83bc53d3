"""What may be done to a node from outside, as values: the stimulus of a trace is a list of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CreatePod:
    """A pod is created at the API server, bound to the node."""

    manifest: Json


@dataclass(frozen=True, slots=True)
class UpdatePod:
    """Its spec, labels or annotations are changed."""

    namespace: str
    name: str
    changes: Json


@dataclass(frozen=True, slots=True)
class AddEphemeral:
    """An ephemeral container is added to it."""

    namespace: str
    name: str
    container: Json


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Its deletion is asked for; 0 seconds force it."""

    namespace: str
    name: str
    grace_seconds: int


@dataclass(frozen=True, slots=True)
class WriteManifest:
    """A manifest appears in the folder, or its file is replaced."""

    manifest: Json


@dataclass(frozen=True, slots=True)
class RemoveManifest:
    """The file of a static pod goes; `name` is the one in the manifest."""

    name: str


@dataclass(frozen=True, slots=True)
class FailCalls:
    """The next `times` calls of an rpc fail without effect."""

    rpc: str
    code: str
    message: str
    times: int


@dataclass(frozen=True, slots=True)
class SetFile:
    """A file that `xf NAME` looks for is there from now on, or no longer."""

    name: str
    there: bool


@dataclass(frozen=True, slots=True)
class KillSandbox:
    """A pod's sandbox of that attempt is no longer ready."""

    pod: str
    attempt: int


@dataclass(frozen=True, slots=True)
class LoseSandbox:
    """All records of the latest sandbox of a pod vanish."""

    pod: str


@dataclass(frozen=True, slots=True)
class EndContainer:
    """The process of a container ends by itself, as no script in its command foretells."""

    pod: str
    container: str
    attempt: int
    code: int


@dataclass(frozen=True, slots=True)
class EndKubelet:
    """The kubelet is killed, or asked to stop."""

    kill: bool


@dataclass(frozen=True, slots=True)
class StartKubelet:
    """It starts again."""


Deed = (
    CreatePod
    | UpdatePod
    | AddEphemeral
    | DeletePod
    | WriteManifest
    | RemoveManifest
    | FailCalls
    | SetFile
    | KillSandbox
    | LoseSandbox
    | EndContainer
    | EndKubelet
    | StartKubelet
)
