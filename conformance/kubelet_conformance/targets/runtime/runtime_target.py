"""What runtime scenarios may ask of a runtime beside its calls, whichever runtime it is."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from kubelet_conformance.targets.runtime.commands import Commands

Need = Literal["events", "files", "state_loss", "registry", "restart", "stamps", "starvation"]
"""What some runtime scenarios cannot do without.

- `events`: the runtime answers GetContainerEvents.
- `files`: its log files can be read here.
- `state_loss`: it can be made to lose track of containers and sandboxes.
- `registry`: it pulls from a registry of ours.
- `restart`: it can be restarted.
- `stamps`: its PodSandboxStatus has a timestamp.
- `starvation`: a container in it can be killed for lack of memory.
"""


class LogFiles(Protocol):
    """Where the runtime writes its logs, as seen from here."""

    @property
    def folder(self) -> str:
        """Where the logs of all runtime scenarios go."""
        ...

    def read(self, path: str) -> str | None:
        """What a file holds; None if it is not there."""
        ...

    def move(self, path: str, to: str) -> None:
        """Rename a file, as log rotation does."""
        ...


class Registry(Protocol):
    """Gives the runtime an image that has two tags."""

    async def names(self) -> tuple[str, str]:
        """Two names of one image, which the runtime can pull."""
        ...

    @property
    def was_asked(self) -> bool:
        """Whether the runtime has come here since `set_away`, and not to a mirror."""
        ...

    def set_away(self, *, away: bool) -> None:
        """Answer every pull as one who cannot serve; or serve again."""
        ...

    @property
    def absent(self) -> str:
        """The name of an image that is nowhere."""
        ...


class StateLoss(Protocol):
    """Controls that make a fake runtime lose its state."""

    def lose_track(self, container_id: str) -> None:
        """The container's state becomes UNKNOWN."""
        ...

    def kill_sandbox(self, sandbox_id: str) -> None:
        """The sandbox becomes NOTREADY by itself."""
        ...

    def reboot(self) -> None:
        """The node goes down and up: nothing runs, all records remain."""
        ...


@dataclass(frozen=True, slots=True)
class DirectRuntime:
    """A runtime to be called directly.

    Attributes:
        services: the methods of both services by name, as a `grpc.aio` stub has them.
        name: what it calls itself.
        version: its version, in its own words.
        image: an image that it has, with a shell unless the runtime is a fake.
        commands: what its containers can be made to run.
        files: where its logs are, if that is here.
        registry: where it can pull from.
        now: the time in seconds.
        sleep: waits so many seconds.
        starve: lets a container that runs `Commands.starve` be killed for lack of memory.
        shared: others use it at the same time; what is theirs is no part of a record.
        lacks: by need, why it cannot be met.
        state_loss: makes it lose its state; None where that is not possible.
        restart: stops it and starts it again, and returns when it answers.
        slow: makes calls of an rpc so many seconds late, while a context is open.
        listen: receives runtime events: op, container id, sandbox id, name, exit code.
    """

    services: Any
    name: str
    version: str
    image: str
    commands: Commands
    files: LogFiles
    registry: Registry
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    starve: Callable[[str], None]
    shared: bool
    lacks: Mapping[str, str]
    state_loss: StateLoss | None = None
    restart: Callable[[], Awaitable[None]] | None = None
    slow: Callable[[str, float], AbstractContextManager[object]] | None = None
    listen: Callable[[Callable[..., None]], None] | None = None
