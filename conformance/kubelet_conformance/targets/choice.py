"""What a user chose to play on, and what is raised where it cannot be used."""

from dataclasses import dataclass, replace
from typing import Self

from kubelet_conformance.trace.format.errors import BadInputError

_PROCESS = "reference-process"
_TARGET_FILE = ".toml"


class TargetError(BadInputError):
    """The target cannot be played on; the message says why and what to do."""


class UnknownTargetError(BadInputError, LookupError):
    """No kubelet, runtime or version of that name can be chosen; the message says which can."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a user chose.

    Attributes:
        kubelet: `reference` or `bug:ID`; for one in its own process `reference-process`, the path of a
            kubelet's binary or of a target file.
        runtime: `fake`; `containerd` for a private one; `unix:///PATH` for the one at that socket.
        kubernetes: the version whose behaviour is expected, such as "1.32"; where it is left open each
            scenario is played as one that it is meant for.
        seed: of every choice that chance makes.
        gates: feature gates for a kubelet in its own process, such as "AllBeta=true".
        config: a file with fields for the configuration of such a kubelet, "" for none.
        then_kubelet: the kubelet that takes turns with it on the same node, start by start: a version of one
            of ours as `reference@1.36`, else as `kubelet`; "" for none.
        kill_foreign_pods: play on a runtime that has pods of others too, which the kubelet will kill.
    """

    kubelet: str = "reference"
    runtime: str = "fake"
    kubernetes: str = ""
    seed: int = 0
    gates: tuple[str, ...] = ()
    config: str = ""
    then_kubelet: str = ""
    kill_foreign_pods: bool = False

    @property
    def then(self) -> Self | None:
        """The choice of the kubelet that takes turns with this one, None where none does."""
        if not self.then_kubelet:
            return None
        name, at, version = self.then_kubelet.rpartition("@")
        if not at or "/" in version or version.endswith(_TARGET_FILE):
            name, version = self.then_kubelet, ""
        return replace(self, kubelet=name, kubernetes=version, then_kubelet="")

    @property
    def is_live(self) -> bool:
        """It is played on wall time, all scenarios that can share a node side by side."""
        in_process = self.runtime == "fake" or self.runtime.startswith("bug:")
        return not in_process or self.is_process

    @property
    def is_process(self) -> bool:
        """The kubelet is a process of its own."""
        return self.kubelet == _PROCESS or self.is_foreign

    @property
    def is_foreign(self) -> bool:
        """The kubelet is none of ours."""
        return self.has_target_file or self.is_binary

    @property
    def is_binary(self) -> bool:
        """The kubelet is named by the path of its binary, which has a slash."""
        return "/" in self.kubelet and not self.has_target_file

    @property
    def has_target_file(self) -> bool:
        """A target file describes the kubelet."""
        return self.kubelet.endswith(_TARGET_FILE)
