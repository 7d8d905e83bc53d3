"""Running the machine's own programs."""

import os
import subprocess

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SECONDS_MAX = 60


class ToolError(Exception):
    """A program of the machine failed; the text says which, and what it said."""


def environment(**more: str) -> dict[str, str]:
    """What a program of the machine gets to know of ours: where programs are, and nothing of proxies."""
    return {"PATH": f"{os.environ.get('PATH', '')}:{_PATH}", "LC_ALL": "C", **more}


def said_by(*command: str, stdin: str = "", **more: str) -> str:
    """Run a program to its end and return its output.

    It is in a process group of its own, so that Ctrl-C in the terminal does not reach it. Raises `ToolError`.
    """
    try:
        done = subprocess.run(  # noqa: S603 - our own words, no shell
            command,
            input=stdin,
            env=environment(**more),
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS_MAX,
            process_group=0,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{' '.join(command)}: {error}") from None
    if done.returncode != 0:
        raise ToolError(f"{' '.join(command)}: ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout
