"""What a container's process does, written in its command: a script that crosses any socket.

The main process (command and arguments together are its words):

- `run`: runs until it is stopped. So does any command that is no script, so that ordinary pods run.
- `exit CODE AFTER`: ends by itself with `CODE` after `AFTER` seconds.
- `seq STEP...`: one step for each attempt of the container, the last one for all later ones; a step is
  `CODE@AFTER` or `run`.
- `nostart`: cannot be started, like a command that is not in its image.

Options may follow, in any order:

- `stopdelay=S`: takes S seconds to end after it was asked to stop; one longer than the grace is killed.
- `stopcode=N`: the code it then ends with; 0 if not given.
- `say=TEXT`: writes a line to its log when it starts; may be given several times.
- `message=TEXT`: writes the text to the termination message file when it ends.

What is executed in a container:

- `x CODE SECONDS [bytes=N]`: ends with `CODE` after `SECONDS`, with N bytes of output.
- `xf FILE`: ends at once, with 0 if the runtime has the file and 1 if not.
- `end CODE`: lets the container's main process end with `CODE`, and goes with it.
- `echo TEXT`: ends at once with this output.
- Anything else ends at once with 0.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

_NS = 1_000_000_000


class ScriptError(ValueError):
    """A command that begins like a script and is none."""


@dataclass(frozen=True, slots=True)
class Script:
    """What a process does: `ends_after_ns` is None for one that runs until it is stopped."""

    ends_after_ns: int | None = None
    code: int = 0
    stop_delay_ns: int = 0
    stop_code: int = 0
    says: tuple[str, ...] = ()
    message: str = ""
    starts: bool = True


@dataclass(frozen=True, slots=True)
class Execution:
    """What an executed command does; `file` is the file whose presence decides, if one does.

    `ends_with` is the code with which the main process ends at once, None where the command leaves it alone.
    """

    code: int = 0
    takes_ns: int = 0
    output: bytes = b""
    file: str = ""
    ends_with: int | None = None

    def exit_code(self, files: Container[str]) -> int:
        """The code it ends with when the runtime has these files."""
        if self.file:
            return 0 if self.file in files else 1
        return self.code


@lru_cache(maxsize=4096)
def parse_script(words: tuple[str, ...], attempt: int) -> Script:
    """The script of a container's command, for one of its attempts; `ScriptError` if it is ill-formed."""
    if not words or words[0] not in {"run", "exit", "seq", "nostart"}:
        return Script()
    plain = [word for word in words[1:] if "=" not in word]
    options = [word for word in words[1:] if "=" in word]
    try:
        return _with_options(_main(words[0], plain, attempt), options)
    except ValueError as error:
        raise ScriptError(f"no script: {' '.join(words)!r}: {error}") from None


def _main(kind: str, words: Sequence[str], attempt: int) -> Script:
    match kind, words:
        case "run", []:
            return Script()
        case "exit", [code]:
            return Script(ends_after_ns=0, code=int(code))
        case "exit", [code, after]:
            return Script(ends_after_ns=_ns(after), code=int(code))
        case "nostart", []:
            return Script(starts=False)
        case "seq", [*steps] if steps:
            return [_step(step) for step in steps][min(attempt, len(steps) - 1)]
        case _:
            raise ValueError("expected `run`, `exit CODE AFTER`, `seq CODE@AFTER...` or `nostart`")


def _step(step: str) -> Script:
    if step == "run":
        return Script()
    code, _, after = step.partition("@")
    return Script(ends_after_ns=_ns(after or "0"), code=int(code))


def _with_options(script: Script, options: Sequence[str]) -> Script:
    for option in options:
        name, _, value = option.partition("=")
        match name:
            case "stopdelay":
                script = replace(script, stop_delay_ns=_ns(value))
            case "stopcode":
                script = replace(script, stop_code=int(value))
            case "say":
                script = replace(script, says=(*script.says, value))
            case "message":
                script = replace(script, message=value)
            case _:
                raise ValueError(f"no option {name!r}: expected stopdelay, stopcode, say or message")
    return script


@lru_cache(maxsize=4096)
def parse_execution(words: tuple[str, ...]) -> Execution:
    """The script of an executed command; `ScriptError` if it is ill-formed."""
    try:
        return _execution(words)
    except ValueError as error:
        raise ScriptError(f"no script: {' '.join(words)!r}: {error}") from None


def _execution(words: tuple[str, ...]) -> Execution:
    match words:
        case ("x", code, seconds):
            return Execution(int(code), _ns(seconds), b"out\n")
        case ("x", code, seconds, size) if size.startswith("bytes="):
            return Execution(int(code), _ns(seconds), bytes(int(size.removeprefix("bytes="))))
        case ("xf", file):
            return Execution(file=file)
        case ("end", code):
            return Execution(ends_with=int(code))
        case ("echo", *said):
            return Execution(output=f"{' '.join(said)}\n".encode())
        case ("x" | "xf" | "end", *_):
            raise ValueError("expected `x CODE SECONDS [bytes=N]`, `xf FILE` or `end CODE`")
        case _:
            return Execution()


def _ns(seconds: str) -> int:
    """Seconds, as a number that is not negative, in nanoseconds."""
    value = round(float(seconds) * _NS)
    if value < 0:
        raise ValueError(f"{seconds} s is less than nothing")
    return value
