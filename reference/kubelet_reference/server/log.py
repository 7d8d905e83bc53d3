"""The log: plain lines on standard error in the form of klog, as the kubelet writes them."""

import logging
import os
import sys
from datetime import UTC, datetime
from typing import ClassVar, TextIO

LOG = logging.getLogger("kubelet_reference.process")
"""What the process itself has to say; shown at every verbosity."""
_NEVER_DROPPED = frozenset({LOG.name, "kubelet_reference.events"})
"""Loggers whose lines are never dropped as repeated: the process's own, and events, each of which counts."""
_REPEAT_SECONDS = 60.0
_REMEMBERED = 500


def set_up_log(verbosity: int, stream: TextIO | None = None) -> None:
    """Write lines to `stream`, standard error by default.

    Warnings and what the process says of itself are always written, other information from verbosity 2
    on, details from 4 on.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_KlogFormatter())
    handler.addFilter(_OnceAMinute())
    # The reader of the log may have gone; the kubelet goes on.
    logging.raiseExceptions = False
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    ours = logging.getLogger("kubelet_reference")
    ours.setLevel(
        logging.WARNING
        if verbosity < _INFO_FROM
        else logging.INFO
        if verbosity < _DEBUG_FROM
        else logging.DEBUG
    )
    LOG.setLevel(min(logging.INFO, ours.level))


_INFO_FROM, _DEBUG_FROM = 2, 4


class _KlogFormatter(logging.Formatter):
    """Severity and date, time of day, process, place, text: `I0131 12:00:00.000000    42 life.py:7] text`."""

    _letters: ClassVar = {"DEBUG": "I", "INFO": "I", "WARNING": "W", "ERROR": "E", "CRITICAL": "F"}

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).astimezone()
        letter = self._letters.get(record.levelname, "I")
        where = f"{record.filename}:{record.lineno}"
        line = f"{letter}{moment:%m%d %H:%M:%S.%f} {os.getpid():>7} {where}] {_shown(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _shown(text: str) -> str:
    """The text in one line: a runtime or a manifest could hide lines of its own, or escapes, in it."""
    line = " ".join(text.splitlines())
    return line if line.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in line)


class _OnceAMinute(logging.Filter):
    """Drops a line that was logged in the last minute: what is tried each second fails each second."""

    def __init__(self) -> None:
        super().__init__()
        self._reported: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.INFO or record.name in _NEVER_DROPPED:
            return True
        key = record.name, record.getMessage()
        last = self._reported.get(key)
        if last is not None and record.created - last < _REPEAT_SECONDS:
            return False
        self._reported.pop(key, None)
        self._reported[key] = record.created
        if len(self._reported) > _REMEMBERED:
            del self._reported[next(iter(self._reported))]
        return True
