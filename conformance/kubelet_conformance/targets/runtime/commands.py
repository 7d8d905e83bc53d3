"""Commands for containers and for ExecSync: in the script language of a fake, and for images with a shell."""

from typing import TypeAlias

_FOR_EVER = "while :; do sleep 3600 & wait $!; done"
"""A signal's handler runs as soon as the wait is broken off."""
_STARVING_BYTES = "1G"


class FakeCommands:
    """The fake's scripts, which make a container, or what is executed in it, do what a scenario needs."""

    def run(self, *, stop_delay: float = 0, stop_code: int = 0, says: str = "") -> list[str]:
        """Run until asked to stop, and then end with `stop_code` after `stop_delay` seconds."""
        options = [f"stopdelay={stop_delay:g}", f"stopcode={stop_code}"]
        return ["run", *options, *([f"say={says}"] if says else [])]

    def exit(self, code: int, after: float = 0, says: str = "") -> list[str]:
        """End by itself after some seconds."""
        return ["exit", str(code), f"{after:g}", *([f"say={says}"] if says else [])]

    def nothing(self) -> list[str]:
        """Refuse to be started, as a program that is not there."""
        return ["nostart"]

    def starve(self) -> list[str]:
        """Wait: in a fake, lack of memory is a runtime event (`DirectRuntime.starve`)."""
        return ["run"]

    def execute(self, code: int, seconds: float = 0, output_bytes: int = 0) -> list[str]:
        """End with a code after some seconds, with so much output; perhaps by way of other processes."""
        return ["x", str(code), f"{seconds:g}", *([f"bytes={output_bytes}"] if output_bytes else [])]

    def last(self, seconds: float) -> list[str]:
        """Last some seconds, as one process."""
        return ["x", "0", f"{seconds:g}"]

    def memory_limit(self) -> list[str] | None:
        """Print the limit on memory in bytes; a fake has no command that does."""
        return None


class ShellCommands:
    """Words for `sh` that do the same as `FakeCommands`.

    It is the first process of its container, so what it does not handle is ignored.
    """

    def run(self, *, stop_delay: float = 0, stop_code: int = 0, says: str = "") -> list[str]:
        """Run until asked to stop."""
        nap = f"sleep {stop_delay:g}; " if stop_delay else ""
        return _shell(f"{_echo(says)}trap 'trap \"\" TERM; {nap}exit {stop_code}' TERM; {_FOR_EVER}")

    def exit(self, code: int, after: float = 0, says: str = "") -> list[str]:
        """End by itself."""
        nap = f"sleep {after:g}; " if after else ""
        return _shell(f"{_echo(says)}{nap}exit {code}")

    def nothing(self) -> list[str]:
        """Name a program that is not there."""
        return ["/no/such/program"]

    def starve(self) -> list[str]:
        """Fill a buffer that is larger than any limit of a scenario, in the place of the shell.

        Not at once: of a process that ends before its start has returned, runtimes may miss why it ended.
        """
        return _shell(f"sleep 0.5; exec dd if=/dev/zero of=/dev/null bs={_STARVING_BYTES} count=1")

    def execute(self, code: int, seconds: float = 0, output_bytes: int = 0) -> list[str]:
        """End with a code."""
        nap = f"sleep {seconds:g}; " if seconds else ""
        output = f"head -c {output_bytes} /dev/zero; " if output_bytes else ""
        return _shell(f"{nap}{output}exit {code}")

    def last(self, seconds: float) -> list[str]:
        """Last some seconds, in the place of the shell."""
        return _shell(f"exec sleep {seconds:g}")

    def memory_limit(self) -> list[str] | None:
        """Where version 2 of cgroups has it, or version 1."""
        folder = "/sys/fs/cgroup"
        return _shell(f"cat {folder}/memory.max || cat {folder}/memory/memory.limit_in_bytes")


Commands: TypeAlias = FakeCommands | ShellCommands


def _shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def _echo(text: str) -> str:
    return f"echo '{text}'; " if text else ""
